"""A shell text read as the shell will: every command in it, in order, with its words, place and input worked out."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tooling.safety.shell.assignments import AssignmentReader
from tooling.safety.shell.command import HOLE, Command, Finding, block, doubt, unparsable
from tooling.safety.shell.constant_output import Output
from tooling.safety.shell.nested import InnerReader
from tooling.safety.shell.parse import (
    CONDITIONAL,
    REDIRECTS,
    SILENT,
    VALUES,
    CommandParts,
    has_false_comment,
    last_command,
    parsed,
    passed_over,
    source_of,
)
from tooling.safety.shell.parse_audit import doubts
from tooling.safety.shell.redirects import Redirections, RedirectReader
from tooling.safety.shell.state import Context, Made, Scope
from tooling.safety.shell.words import WordReader, command_lines, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 40
_MOST_CALLS = 400
# To the shell these are keywords, to the grammar they are programs; and what is no arithmetic is a nested subshell.
_KEYWORDS = re.compile(r"(?<![\w./-])(?:time(?:\s+-p)?|coproc|!)\s+")
_PARENTHESES = re.compile(r"(?<=\()(?=\()|(?<=\))(?=\))")
_CONTINUED = "\\\n"
_ESCAPED_IN_BACKTICKS = re.compile(r"\\([\\`$])")
_PLAIN = re.compile(rb"[\w@%+:,./ -]+")
_LOST_WORDS = re.compile(rb"\s*-+[\w./-]*\s*")
_Task: TypeAlias = "tuple[Node, Context] | Callable[[], None]"


class ShellReader:
    """Reads one shell text; afterwards `commands`, `assigned` and `findings` say what is in it."""

    def __init__(self, cwd: str) -> None:
        self.commands: list[Command] = []
        self.assigned: list[str] = []
        self.findings: list[Finding] = []
        self.words = WordReader(self._substituted, self._inside)
        self.made = Made()
        self.depth = 0
        self._cwd = cwd
        self._redirects = RedirectReader(self.words)
        self._assignments = AssignmentReader(self.words, self.assigned)
        self._inner = InnerReader(self)
        self._level = 0
        self._given: dict[int, Redirections] = {}
        self._calls: tuple[str, ...] = ()
        self._calls_left = _MOST_CALLS
        self._uncalled: dict[int, tuple[Node, Context]] = {}

    def read(self, text: str) -> None:
        """Read a whole text, and again where the grammar and the shell may differ: no reading may hide anything."""
        joined = text.replace(_CONTINUED, "")
        for reading in dict.fromkeys((text, joined)):
            self._whole(reading)
        if self.findings:
            bare = _KEYWORDS.sub("", joined)
            for reading in {bare, _PARENTHESES.sub(" ", bare)} - {text, joined}:
                self._whole(reading)
        for problem in sorted(self.words.problems):
            self.findings.append(doubt("unparsable", problem))

    def _whole(self, text: str) -> None:
        self.text(text, Context(scope=Scope(self._cwd, made=self.made)))
        while self._uncalled:
            _, (body, context) = self._uncalled.popitem()
            context.scope.positional = None
            self.run(body, context)

    def text(self, text: str, context: Context) -> None:
        """Read a text inside the text."""
        if self._level >= _DEEPEST:
            self.findings.append(doubt("too-deep", "it is nested too deeply to be judged"))
            return
        root = parsed(text)
        if root.has_error or has_false_comment(text, root):
            self.findings.append(unparsable())
        elif problem := doubts(source_of(text), root):
            self.findings.append(doubt("unread", problem))
        self._level += 1
        self.run(root, context)
        self._level -= 1

    def run(self, node: "Node", context: Context) -> None:
        """Read a statement and everything in it; nesting costs no stack."""
        tasks: list[_Task] = [(node, context)]
        while tasks:
            task = tasks.pop()
            if callable(task):
                task()
            else:
                tasks.extend(reversed(list(self._steps(*task))))

    def _steps(self, node: "Node", context: Context) -> "Iterator[_Task]":
        kind = node.type
        if kind == "command":
            yield from self._command(node, context, Redirections())
            return
        if kind not in VALUES and kind != "redirected_statement" and passed_over(node):
            self.findings.append(unparsable())
        match kind:
            case "pipeline":
                yield from self._pipeline([child for child in node.children if child.is_named], context)
            case "list":
                yield from self._list(node, context)
            case "redirected_statement":
                yield from self._redirected(node, context)
            case "subshell":
                yield from self._sequence(node, self._in_subshell(context))
            case "function_definition":
                yield from self._define(node, context)
            case "for_statement":
                yield from self._for(node, context)
            case "while_statement" | "c_style_for_statement":
                yield from self._loop(node, context)
            case "variable_assignment":
                self._assignments.assign(node, context.scope, may_skip=context.may_skip)
            case "declaration_command" | "unset_command":
                self._emit(
                    self._assignments.declare(node, context.scope, may_skip=context.may_skip), Redirections(), context
                )
            case kind if kind in VALUES:
                self.words.visit(node, context.scope)
            case kind if kind in SILENT:
                pass
            case kind if kind in REDIRECTS:
                self._emit((), self._redirects.read([node], context.scope), context)
            case kind if kind in CONDITIONAL:
                yield from self._sequence(node, replace(context, may_skip=True))
            case _:
                yield from self._sequence(node, context)

    def _sequence(self, node: "Node", context: Context) -> "Iterator[_Task]":
        children = node.children
        for at, child in enumerate(children):
            if child.is_named:
                is_parallel = at + 1 < len(children) and children[at + 1].type == "&"
                yield child, replace(context, is_parallel=True) if is_parallel else context

    def _in_subshell(self, context: Context) -> Context:
        if context.scope.is_too_deep:
            self.findings.append(doubt("too-deep", "it is nested too deeply to be judged"))
            return context
        return replace(context, scope=context.scope.child())

    def _list(self, node: "Node", context: Context) -> "Iterator[_Task]":
        scope, was_certain = context.scope, context.scope.is_certain
        children = node.children
        is_both = any(child.type == "&&" for child in children)
        right = replace(context, may_skip=True)
        for at, child in enumerate(children):
            if child.is_named:
                yield child, right if at else context
                if is_both and not at:
                    yield lambda: setattr(scope, "is_certain", was_certain or is_both)

    def _pipeline(self, parts: "list[Node]", context: Context, first: Output | None = None) -> "Iterator[_Task]":
        feed = first
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            sink = context.sink if is_last else Output()
            is_fed = at > 0 or first is not None
            inside = self._in_subshell(context)
            yield (
                part,
                replace(
                    inside,
                    stdin=None if is_fed else context.stdin,
                    feed=feed if is_fed else context.feed,
                    is_fed=is_fed or context.is_fed,
                    sink=sink,
                    is_parallel=True,
                ),
            )
            feed = sink

    def _redirected(self, node: "Node", context: Context) -> "Iterator[_Task]":
        body = node.child_by_field_name("body")
        parts = [child for child in node.children if child.type in REDIRECTS]
        for child in node.children:
            if child.type == "ERROR":
                yield child, context
        redirections = self._redirects.read(parts, context.scope)
        lost = passed_over(node)
        if _LOST_WORDS.fullmatch(lost):
            # The grammar drops a dash before a redirection.
            redirections.words[:0] = lost.decode().split()
        elif lost:
            self.findings.append(unparsable())
        last = last_command(body)
        if last is not None and last is not body:
            # The grammar ties a redirection to the whole line; the shell ties it to the last command.
            self._given[last.id] = Redirections(
                redirects=redirections.redirects, stdin=redirections.stdin, words=redirections.words
            )
            redirections = Redirections(
                pipeline=redirections.pipeline,
                statements=redirections.statements,
                is_doubtful=redirections.is_doubtful,
            )
        yield from self._followed(body, redirections, context)

    def _followed(self, body: "Node | None", redirections: Redirections, context: Context) -> "Iterator[_Task]":
        """Read a statement with its redirections, and what a here-document's first line says after it."""
        if redirections.is_doubtful:
            self.findings.append(unparsable())
        printed = Output() if redirections.pipeline else context.sink
        inside = replace(context, sink=printed)
        if body is None:
            self._emit((), redirections, inside)
        elif body.type == "command":
            yield from self._command(body, inside, redirections)
        else:
            self._emit((), Redirections(redirects=redirections.redirects), inside)
            is_fed = redirections.stdin is None and any(not part.writes for part in redirections.redirects)
            yield (
                body,
                replace(
                    inside,
                    stdin=redirections.stdin if redirections.stdin is not None else inside.stdin,
                    feed=None if redirections.stdin is not None else inside.feed,
                    is_fed=is_fed or inside.is_fed,
                ),
            )
        if redirections.pipeline:
            yield from self._pipeline(redirections.pipeline, context, first=printed)
        for statement in redirections.statements:
            yield statement, replace(context, may_skip=True)

    def _command(self, node: "Node", context: Context, outer: Redirections) -> "Iterator[_Task]":
        scope = context.scope
        raw = node.text or b""
        if node.id not in self._given and _PLAIN.fullmatch(raw):
            # Most commands are plain words; their text says all.
            self._emit((*raw.decode().split(), *outer.words), outer, context, reads=outer.reads)
            return
        if passed_over(node):
            self.findings.append(unparsable())
        outer = self._given.pop(node.id, outer)
        reads, self.words.reads = self.words.reads, set()
        parts = CommandParts(node)
        if parts.is_torn:
            self.findings.append(unparsable())
        redirections = outer.joined(self._redirects.read(parts.redirects, scope)) if parts.redirects else outer
        if redirections.is_doubtful:
            self.findings.append(unparsable())
        lines, is_complete = command_lines(parts.words, scope, self.words)
        if not is_complete:
            self.findings.append(doubt("too-large", "it expands to more commands than can be judged"))
        assigned = [pair for prefix in parts.assignments for pair in self._assignments.values(prefix, scope)]
        known, self.words.reads = redirections.reads.union(self.words.reads), reads
        for line in lines:
            self._emit((*line, *redirections.words), redirections, context, reads=known, assigned=assigned)
        if not lines:
            self._emit(tuple(redirections.words), redirections, context, reads=known)
            for name, values in assigned:
                scope.assign(name, values, may_keep=context.may_skip)
        for other in parts.others:
            yield other, context

    def _emit(
        self,
        words: tuple[str, ...],
        redirections: Redirections,
        context: Context,
        *,
        reads: frozenset[str] = frozenset(),
        assigned: "list[tuple[str, list[str]]] | None" = None,
    ) -> None:
        stdin = redirections.stdin if redirections.stdin is not None else context.input
        redirects = redirections.redirects
        if not words and not redirects:
            return
        if redirections.stdin is None and any(not redirect.writes for redirect in redirects):
            stdin = None
        command = Command(
            words=words,
            cwd=context.scope.cwd,
            redirects=redirects,
            stdin=stdin,
            is_fed=context.is_fed and redirections.stdin is None,
            is_place_certain=context.scope.is_certain,
            reads=reads,
            depth=self.depth,
        )
        self._inner.take(command, context, assigned or [])

    def call(self, name: str, words: tuple[str, ...], context: Context) -> None:
        """Read the body of a function where it is called, with its arguments."""
        body = context.scope.function(name)
        if body is None:
            return
        if name in self._calls:
            if context.is_parallel:
                self.findings.append(block("fork-bomb", "it is a fork bomb"))
            return
        self._uncalled.pop(body.id, None)
        self._calls_left -= 1
        if self._calls_left < 0 or self._level >= _DEEPEST:
            self.findings.append(doubt("too-large", "it calls its functions more often than can be judged"))
            return
        calls, self._calls = self._calls, (*self._calls, name)
        kept, context.scope.positional = context.scope.positional, words[1:]
        self._level += 1
        self.run(body, replace(context, is_parallel=False))
        self._level -= 1
        context.scope.positional, self._calls = kept, calls

    def _define(self, node: "Node", context: Context) -> "Iterator[_Task]":
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            context.scope.functions[text_of(name)] = body
            self._uncalled[body.id] = (body, self._in_subshell(replace(context, is_parallel=False, may_skip=True)))
        for child in node.children:
            if child.type in REDIRECTS:
                yield child, context

    def _for(self, node: "Node", context: Context) -> "Iterator[_Task]":
        scope = context.scope
        name = node.child_by_field_name("variable")
        given = node.children_by_field_name("value")
        values = [field for value in given for field in self.words.fields((value,), scope)]
        if name is not None:
            scope.assign(text_of(name), values or scope.positional or (HOLE,), may_keep=context.may_skip)
        body = node.child_by_field_name("body")
        if body is not None:
            yield from self._again(body, context)

    def _loop(self, node: "Node", context: Context) -> "Iterator[_Task]":
        if node.type == "c_style_for_statement":
            self.words.visit(node.children[0], context.scope)
            for start in node.children_by_field_name("initializer"):
                if start.type == "variable_assignment" and start.children:
                    context.scope.forget(text_of(start.children[0]))
            for child in node.children:
                if child.is_named and child.type not in ("do_group", "compound_statement", "variable_assignment"):
                    self.words.visit(child, context.scope)
            body = node.child_by_field_name("body")
            if body is not None:
                yield from self._again(body, context)
            return
        yield from self._again(node, context)

    def _again(self, body: "Node", context: Context) -> "Iterator[_Task]":
        """Read the body of a loop; once more when it changed what it had begun with."""
        inside = replace(context, may_skip=True)
        version = context.scope.version
        rounds = [(child, inside) for child in body.children if child.is_named]
        yield from self._sequence(body, inside)

        def second() -> None:
            if context.scope.version != version:
                for task in self._sequence(body, inside):
                    if not callable(task):
                        self.run(*task)

        if rounds:
            yield second

    def _inside(self, text: str, scope: Scope) -> None:
        self.text(text, Context(scope=scope.child()))

    def _substituted(self, node: "Node", scope: Scope) -> str:
        """Read what stands in a substitution and return what it puts in its place."""
        if self._level >= _DEEPEST or scope.is_too_deep:
            self.findings.append(doubt("too-deep", "it is nested too deeply to be judged"))
            return HOLE
        output = Output()
        context = Context(scope=scope.child(), sink=output)
        raw = text_of(node)
        if raw.startswith("`") and "\\" in raw:
            self.text(_ESCAPED_IN_BACKTICKS.sub(r"\1", raw[1:-1]), context)
            return output.value
        self._level += 1
        for task in self._sequence(node, context):
            if not callable(task):
                self.run(*task)
        self._level -= 1
        return output.value
