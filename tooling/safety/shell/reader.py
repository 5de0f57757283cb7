"""A shell text read as the shell will: every command in it, in order, with its words, place and input worked out."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tooling.safety.shell.assignments import AssignmentReader
from tooling.safety.shell.command import UNKNOWN, Command, Finding, block, doubt, unparsable
from tooling.safety.shell.constant_output import Output
from tooling.safety.shell.nested import NestedReader
from tooling.safety.shell.parse import (
    CONDITIONAL_NODES,
    IGNORED_NODES,
    REDIRECT_NODES,
    WORD_NODES,
    CommandParts,
    encode_source,
    has_false_comment,
    last_command,
    parse,
    skipped_text,
)
from tooling.safety.shell.parse_audit import find_parse_gap
from tooling.safety.shell.redirects import Redirections, RedirectReader
from tooling.safety.shell.state import Context, Scope, SideEffects
from tooling.safety.shell.words import WordReader, command_lines, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 40
_MAX_CALLS = 400
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
        self.words = WordReader(self._substitute, self._read_in_subshell)
        self.effects = SideEffects()
        self.depth = 0
        self._cwd = cwd
        self._redirects = RedirectReader(self.words)
        self._assignments = AssignmentReader(self.words, self.assigned)
        self._nested = NestedReader(self)
        self._level = 0
        self._pending_redirects: dict[int, Redirections] = {}
        self._calls: tuple[str, ...] = ()
        self._calls_left = _MAX_CALLS
        self._uncalled_functions: dict[int, tuple[Node, Context]] = {}

    def read(self, text: str) -> None:
        """Read a whole text, and again where the grammar and the shell may differ: no reading may hide anything."""
        joined = text.replace(_CONTINUED, "")
        for reading in dict.fromkeys((text, joined)):
            self._read_all(reading)
        if self.findings:
            bare = _KEYWORDS.sub("", joined)
            for reading in {bare, _PARENTHESES.sub(" ", bare)} - {text, joined}:
                self._read_all(reading)
        for problem in sorted(self.words.problems):
            self.findings.append(doubt("unparsable", problem))

    def _read_all(self, text: str) -> None:
        self.read_nested(text, Context(scope=Scope(self._cwd, made=self.effects)))
        while self._uncalled_functions:
            _, (body, context) = self._uncalled_functions.popitem()
            context.scope.positional = None
            self.read_node(body, context)

    def read_nested(self, text: str, context: Context) -> None:
        """Read a text inside the text."""
        if self._level >= _MAX_DEPTH:
            self.findings.append(doubt("too-deep", "it is nested too deeply to be judged"))
            return
        root = parse(text)
        if root.has_error or has_false_comment(text, root):
            self.findings.append(unparsable())
        elif problem := find_parse_gap(encode_source(text), root):
            self.findings.append(doubt("unread", problem))
        self._level += 1
        self.read_node(root, context)
        self._level -= 1

    def read_node(self, node: "Node", context: Context) -> None:
        """Read a statement and everything in it; nesting costs no stack."""
        tasks: list[_Task] = [(node, context)]
        while tasks:
            task = tasks.pop()
            if callable(task):
                task()
            else:
                tasks.extend(reversed(list(self._statement(*task))))

    def _statement(self, node: "Node", context: Context) -> "Iterator[_Task]":
        kind = node.type
        if kind == "command":
            yield from self._command(node, context, Redirections())
            return
        if kind not in WORD_NODES and kind != "redirected_statement" and skipped_text(node):
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
                self._add_command(
                    self._assignments.declare(node, context.scope, may_skip=context.may_skip), Redirections(), context
                )
            case kind if kind in WORD_NODES:
                self.words.visit(node, context.scope)
            case kind if kind in IGNORED_NODES:
                pass
            case kind if kind in REDIRECT_NODES:
                self._add_command((), self._redirects.read([node], context.scope), context)
            case kind if kind in CONDITIONAL_NODES:
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
            sink = context.output if is_last else Output()
            is_fed = at > 0 or first is not None
            inside = self._in_subshell(context)
            yield (
                part,
                replace(
                    inside,
                    stdin=None if is_fed else context.stdin,
                    piped_input=feed if is_fed else context.piped_input,
                    has_piped_stdin=is_fed or context.has_piped_stdin,
                    output=sink,
                    is_parallel=True,
                ),
            )
            feed = sink

    def _redirected(self, node: "Node", context: Context) -> "Iterator[_Task]":
        body = node.child_by_field_name("body")
        parts = [child for child in node.children if child.type in REDIRECT_NODES]
        for child in node.children:
            if child.type == "ERROR":
                yield child, context
        redirections = self._redirects.read(parts, context.scope)
        lost = skipped_text(node)
        if _LOST_WORDS.fullmatch(lost):
            # The grammar drops a dash before a redirection.
            redirections.words[:0] = lost.decode().split()
        elif lost:
            self.findings.append(unparsable())
        last = last_command(body)
        if last is not None and last is not body:
            # The grammar ties a redirection to the whole line; the shell ties it to the last command.
            self._pending_redirects[last.id] = Redirections(
                redirects=redirections.redirects, stdin=redirections.stdin, words=redirections.words
            )
            redirections = Redirections(
                pipeline=redirections.pipeline,
                statements=redirections.statements,
                is_doubtful=redirections.is_doubtful,
            )
        yield from self._redirected_body(body, redirections, context)

    def _redirected_body(self, body: "Node | None", redirections: Redirections, context: Context) -> "Iterator[_Task]":
        """Read a statement with its redirections, and what a here-document's first line says after it."""
        if redirections.is_doubtful:
            self.findings.append(unparsable())
        printed = Output() if redirections.pipeline else context.output
        inside = replace(context, output=printed)
        if body is None:
            self._add_command((), redirections, inside)
        elif body.type == "command":
            yield from self._command(body, inside, redirections)
        else:
            self._add_command((), Redirections(redirects=redirections.redirects), inside)
            is_fed = redirections.stdin is None and any(not part.writes for part in redirections.redirects)
            yield (
                body,
                replace(
                    inside,
                    stdin=redirections.stdin if redirections.stdin is not None else inside.stdin,
                    piped_input=None if redirections.stdin is not None else inside.piped_input,
                    has_piped_stdin=is_fed or inside.has_piped_stdin,
                ),
            )
        if redirections.pipeline:
            yield from self._pipeline(redirections.pipeline, context, first=printed)
        for statement in redirections.statements:
            yield statement, replace(context, may_skip=True)

    def _command(self, node: "Node", context: Context, outer: Redirections) -> "Iterator[_Task]":
        scope = context.scope
        raw = node.text or b""
        if node.id not in self._pending_redirects and _PLAIN.fullmatch(raw):
            # Most commands are plain words; their text says all.
            self._add_command((*raw.decode().split(), *outer.words), outer, context, reads=outer.variables_read)
            return
        if skipped_text(node):
            self.findings.append(unparsable())
        outer = self._pending_redirects.pop(node.id, outer)
        reads, self.words.variables_read = self.words.variables_read, set()
        parts = CommandParts(node)
        if parts.is_ambiguous:
            self.findings.append(unparsable())
        redirections = outer.merge(self._redirects.read(parts.redirects, scope)) if parts.redirects else outer
        if redirections.is_doubtful:
            self.findings.append(unparsable())
        lines, is_complete = command_lines(parts.words, scope, self.words)
        if not is_complete:
            self.findings.append(doubt("too-large", "it expands to more commands than can be judged"))
        assigned = [pair for prefix in parts.assignments for pair in self._assignments.values(prefix, scope)]
        known, self.words.variables_read = redirections.variables_read.union(self.words.variables_read), reads
        for line in lines:
            self._add_command((*line, *redirections.words), redirections, context, reads=known, assigned=assigned)
        if not lines:
            self._add_command(tuple(redirections.words), redirections, context, reads=known)
            for name, values in assigned:
                scope.assign(name, values, may_keep=context.may_skip)
        for other in parts.others:
            yield other, context

    def _add_command(
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
            has_piped_stdin=context.has_piped_stdin and redirections.stdin is None,
            is_cwd_certain=context.scope.is_certain,
            variables_read=reads,
            depth=self.depth,
        )
        self._nested.add_command(command, context, assigned or [])

    def call_function(self, name: str, words: tuple[str, ...], context: Context) -> None:
        """Read the body of a function where it is called, with its arguments."""
        body = context.scope.function(name)
        if body is None:
            return
        if name in self._calls:
            if context.is_parallel:
                self.findings.append(block("fork-bomb", "it is a fork bomb"))
            return
        self._uncalled_functions.pop(body.id, None)
        self._calls_left -= 1
        if self._calls_left < 0 or self._level >= _MAX_DEPTH:
            self.findings.append(doubt("too-large", "it calls functions too often to be judged"))
            return
        calls, self._calls = self._calls, (*self._calls, name)
        kept, context.scope.positional = context.scope.positional, words[1:]
        self._level += 1
        self.read_node(body, replace(context, is_parallel=False))
        self._level -= 1
        context.scope.positional, self._calls = kept, calls

    def _define(self, node: "Node", context: Context) -> "Iterator[_Task]":
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            context.scope.functions[node_text(name)] = body
            self._uncalled_functions[body.id] = (
                body,
                self._in_subshell(replace(context, is_parallel=False, may_skip=True)),
            )
        for child in node.children:
            if child.type in REDIRECT_NODES:
                yield child, context

    def _for(self, node: "Node", context: Context) -> "Iterator[_Task]":
        scope = context.scope
        name = node.child_by_field_name("variable")
        given = node.children_by_field_name("value")
        values = [field for value in given for field in self.words.fields((value,), scope)]
        if name is not None:
            scope.assign(node_text(name), values or scope.positional or (UNKNOWN,), may_keep=context.may_skip)
        body = node.child_by_field_name("body")
        if body is not None:
            yield from self._loop_body(body, context)

    def _loop(self, node: "Node", context: Context) -> "Iterator[_Task]":
        if node.type == "c_style_for_statement":
            self.words.visit(node.children[0], context.scope)
            for start in node.children_by_field_name("initializer"):
                if start.type == "variable_assignment" and start.children:
                    context.scope.set_unknown(node_text(start.children[0]))
            for child in node.children:
                if child.is_named and child.type not in ("do_group", "compound_statement", "variable_assignment"):
                    self.words.visit(child, context.scope)
            body = node.child_by_field_name("body")
            if body is not None:
                yield from self._loop_body(body, context)
            return
        yield from self._loop_body(node, context)

    def _loop_body(self, body: "Node", context: Context) -> "Iterator[_Task]":
        """Read the body of a loop; once more when it changed what it had begun with."""
        inside = replace(context, may_skip=True)
        version = context.scope.version
        rounds = [(child, inside) for child in body.children if child.is_named]
        yield from self._sequence(body, inside)

        def second() -> None:
            if context.scope.version != version:
                for task in self._sequence(body, inside):
                    if not callable(task):
                        self.read_node(*task)

        if rounds:
            yield second

    def _read_in_subshell(self, text: str, scope: Scope) -> None:
        self.read_nested(text, Context(scope=scope.child()))

    def _substitute(self, node: "Node", scope: Scope) -> str:
        """Read what stands in a substitution and return what it puts in its place."""
        if self._level >= _MAX_DEPTH or scope.is_too_deep:
            self.findings.append(doubt("too-deep", "it is nested too deeply to be judged"))
            return UNKNOWN
        output = Output()
        context = Context(scope=scope.child(), output=output)
        raw = node_text(node)
        if raw.startswith("`") and "\\" in raw:
            self.read_nested(_ESCAPED_IN_BACKTICKS.sub(r"\1", raw[1:-1]), context)
            return output.value
        self._level += 1
        for task in self._sequence(node, context):
            if not callable(task):
                self.read_node(*task)
        self._level -= 1
        return output.value
