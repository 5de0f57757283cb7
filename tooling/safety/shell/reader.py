"""Read a shell text like the shell: every simple command in order, with its words, folder and input."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.assignments import AssignmentReader
from tooling.safety.shell.command import FORK_BOMB_REASON, UNKNOWN, Command, block, doubt, too_deep, unparsable
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
    is_fork_bomb,
    is_too_large,
    last_command,
    parse,
    skipped_text,
)
from tooling.safety.shell.parse_audit import find_parse_gap
from tooling.safety.shell.redirects import Redirections, RedirectReader
from tooling.safety.shell.state import Context, Scope, ShellReading
from tooling.safety.shell.words import WordReader, command_lines, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 40
_MAX_CALLS = 400
_TOO_MANY_CALLS_REASON = "it calls functions too often to be judged"
_TOO_LONG_REASON = "it is too long to be judged"
_TOO_MANY_COMMANDS_REASON = "it expands to more commands than can be judged"
# Keywords that the grammar takes for programs, and parentheses that it takes for arithmetic.
_KEYWORDS = lazy_pattern(r"(?<![\w./-])(?:time(?:\s+-p)?|coproc|!)\s+")
_PARENTHESES = lazy_pattern(r"(?<=\()(?=\()|(?<=\))(?=\))")
_LINE_CONTINUATION = "\\\n"
_ESCAPED_IN_BACKTICKS = lazy_pattern(r"\\([\\`$])")
_PLAIN_COMMAND = lazy_pattern(rb"[\w@%+:,./ -]+")
_SKIPPED_OPTIONS = lazy_pattern(rb"\s*-+[\w./-]*\s*")
_Task: TypeAlias = "tuple[Node, Context] | Callable[[], None]"


class ShellReader:
    """Reads one shell text into `reading`."""

    def __init__(self, cwd: str) -> None:
        self.reading = ShellReading()
        self._cwd = cwd
        self._words = WordReader(self._substitute, self._read_in_subshell)
        self._words.assigned = self.reading.assigned
        self._redirects = RedirectReader(self._words)
        self._assignments = AssignmentReader(self._words, self.reading.assigned)
        self._nested = NestedReader(self.reading, read_text=self._read_text, call_function=self._call_function)
        self._level = 0
        self._pending_redirects: dict[int, Redirections] = {}
        self._calls: tuple[str, ...] = ()
        self._calls_left = _MAX_CALLS
        self._uncalled_functions: dict[int, tuple[Node, Context]] = {}

    def read(self, text: str) -> None:
        """Read a text, and variants of it if the grammar may differ from the shell, so that no command is missed."""
        joined = text.replace(_LINE_CONTINUATION, "")
        for variant in dict.fromkeys((text, joined)):
            self._read_variant(variant)
        if self.reading.findings:
            bare = _KEYWORDS.sub("", joined)
            for variant in {bare, _PARENTHESES.sub(" ", bare)} - {text, joined}:
                self._read_variant(variant)
        for problem in sorted(self._words.problems):
            self.reading.findings.append(doubt("unparsable", problem))

    def _read_variant(self, text: str) -> None:
        self._read_text(text, Context(scope=Scope(self._cwd, effects=self.reading.effects)))
        while self._uncalled_functions:
            _, (body, context) = self._uncalled_functions.popitem()
            context.scope.positional = None
            self._read_node(body, context)
        self._nested.read_command_variables(Context(scope=Scope(self._cwd, effects=self.reading.effects)))

    def _read_text(self, text: str, context: Context) -> None:
        if self._level >= _MAX_DEPTH:
            self.reading.findings.append(too_deep())
            return
        if is_too_large(text):
            self.reading.findings.append(doubt("too-large", _TOO_LONG_REASON))
            return
        root = parse(text)
        if root.has_error or has_false_comment(text, root):
            self.reading.findings.append(unparsable())
        elif problem := find_parse_gap(encode_source(text), root):
            self.reading.findings.append(doubt("unread", problem))
        if is_fork_bomb(text, root):
            self.reading.findings.append(block("fork-bomb", FORK_BOMB_REASON))
        self._level += 1
        self._read_node(root, context)
        self._level -= 1

    def _read_node(self, node: "Node", context: Context) -> None:
        """Read a statement and everything in it, without recursion for nested statements."""
        tasks: list[_Task] = [(node, context)]
        while tasks:
            task = tasks.pop()
            if callable(task):
                task()
            else:
                tasks.extend(reversed(list(self._read_statement(*task))))

    def _read_statement(self, node: "Node", context: Context) -> "Iterator[_Task]":
        kind = node.type
        if kind == "command":
            yield from self._command(node, context, Redirections())
            return
        if kind not in WORD_NODES and kind != "redirected_statement" and skipped_text(node):
            self.reading.findings.append(unparsable())
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
                self._words.visit(node, context.scope)
            case kind if kind in IGNORED_NODES:
                pass
            case kind if kind in REDIRECT_NODES:
                self._add_bare(self._redirects.read([node], context.scope), context)
            case kind if kind in CONDITIONAL_NODES:
                yield from self._sequence(node, replace(context, may_skip=True))
            case _:
                yield from self._sequence(node, context)

    def _sequence(self, node: "Node", context: Context) -> "Iterator[tuple[Node, Context]]":
        children = node.children
        for at, child in enumerate(children):
            if child.is_named:
                is_parallel = at + 1 < len(children) and children[at + 1].type == "&"
                yield child, replace(context, is_parallel=True) if is_parallel else context

    def _read_sequence(self, node: "Node", context: Context) -> None:
        for child, inside in self._sequence(node, context):
            self._read_node(child, inside)

    def _in_subshell(self, context: Context) -> Context:
        if context.scope.is_too_deep:
            self.reading.findings.append(too_deep())
            return context
        return replace(context, scope=context.scope.child())

    def _list(self, node: "Node", context: Context) -> "Iterator[_Task]":
        scope, was_certain = context.scope, context.scope.is_cwd_certain
        children = node.children
        is_and_list = any(child.type == "&&" for child in children)
        output = context.output if is_and_list or context.output is None else context.output.alternative()
        right = replace(context, may_skip=True, output=output)
        for at, child in enumerate(children):
            if child.is_named:
                yield child, right if at else context
                if is_and_list and not at:
                    # After `cd x &&` the next command only runs if `cd` succeeded.
                    yield lambda: setattr(scope, "is_cwd_certain", was_certain or is_and_list)

    def _pipeline(self, parts: "list[Node]", context: Context, first: Output | None = None) -> "Iterator[_Task]":
        feed = first
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            sink = context.output if is_last else Output()
            is_fed = at > 0 or first is not None
            inside = self._in_subshell(context)
            fed = replace(
                inside,
                stdin=None if is_fed else context.stdin,
                piped_input=feed if is_fed else context.piped_input,
                has_piped_stdin=is_fed or context.has_piped_stdin,
                output=sink,
                is_parallel=True,
            )
            yield part, fed
            feed = sink

    def _redirected(self, node: "Node", context: Context) -> "Iterator[_Task]":
        body = node.child_by_field_name("body")
        parts = [child for child in node.children if child.type in REDIRECT_NODES]
        for child in node.children:
            if child.type == "ERROR":
                yield child, context
        redirections = self._redirects.read(parts, context.scope)
        skipped = skipped_text(node)
        if _SKIPPED_OPTIONS.fullmatch(skipped):
            # The grammar drops a dash before a redirection.
            redirections.words[:0] = skipped.decode().split()
        elif skipped:
            self.reading.findings.append(unparsable())
        last = last_command(body)
        if last is not None and last is not body:
            # The grammar attaches a redirection to the entire list, the shell to its last command.
            redirects, words = redirections.redirects, redirections.words
            self._pending_redirects[last.id] = Redirections(redirects=redirects, stdin=redirections.stdin, words=words)
            pipeline, statements = redirections.pipeline, redirections.statements
            redirections = Redirections(pipeline=pipeline, statements=statements, is_doubtful=redirections.is_doubtful)
        yield from self._redirected_body(body, redirections, context)

    def _redirected_body(self, body: "Node | None", redirections: Redirections, context: Context) -> "Iterator[_Task]":
        """Read a statement with its redirections, then the rest of the first line of a here-document."""
        if redirections.is_doubtful:
            self.reading.findings.append(unparsable())
        output = Output() if redirections.pipeline else context.output
        inside = replace(context, output=output)
        if body is None:
            self._add_bare(redirections, inside)
        elif body.type == "command":
            yield from self._command(body, inside, redirections)
        else:
            self._add_command((), Redirections(redirects=redirections.redirects), inside)
            is_fed = redirections.stdin is None and any(not part.writes for part in redirections.redirects)
            fed = replace(
                inside,
                stdin=redirections.stdin if redirections.stdin is not None else inside.stdin,
                piped_input=None if redirections.stdin is not None else inside.piped_input,
                has_piped_stdin=is_fed or inside.has_piped_stdin,
            )
            yield body, fed
        if redirections.pipeline:
            yield from self._pipeline(redirections.pipeline, context, first=output)
        for statement in redirections.statements:
            yield statement, replace(context, may_skip=True)

    def _command(self, node: "Node", context: Context, outer: Redirections) -> "Iterator[_Task]":
        scope = context.scope
        raw = node.text or b""
        if node.id not in self._pending_redirects and _PLAIN_COMMAND.fullmatch(raw):
            # Fast path: most commands are plain words.
            self._add_command((*raw.decode().split(), *outer.words), outer, context, reads=outer.variables_read)
            return
        if skipped_text(node):
            self.reading.findings.append(unparsable())
        outer = self._pending_redirects.pop(node.id, outer)
        reads, self._words.variables_read = self._words.variables_read, set()
        parts = CommandParts(node)
        if parts.is_ambiguous:
            self.reading.findings.append(unparsable())
        redirections = outer.merge(self._redirects.read(parts.redirects, scope)) if parts.redirects else outer
        if redirections.is_doubtful:
            self.reading.findings.append(unparsable())
        lines, is_complete = command_lines(parts.words, scope, self._words)
        if not is_complete:
            self.reading.findings.append(doubt("too-large", _TOO_MANY_COMMANDS_REASON))
        assigned = [pair for prefix in parts.assignments for pair in self._assignments.values(prefix, scope)]
        known, self._words.variables_read = redirections.variables_read.union(self._words.variables_read), reads
        for line in lines:
            self._add_command((*line, *redirections.words), redirections, context, reads=known, assigned=assigned)
        if not lines:
            self._add_command(tuple(redirections.words), redirections, context, reads=known)
            for name, values in assigned:
                scope.assign(name, values, keep_old=context.may_skip)
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
            is_cwd_certain=context.scope.is_cwd_certain,
            variables_read=reads,
            depth=self.reading.depth,
            root=self._cwd,
        )
        self._nested.add_command(command, context, assigned or [])

    def _add_bare(self, redirections: Redirections, context: Context) -> None:
        """Add redirections without a command; `> file` is the same as `: > file`."""
        writes = any(redirect.writes for redirect in redirections.redirects)
        self._add_command((":",) if writes else (), redirections, context)

    def _call_function(self, words: tuple[str, ...], context: Context) -> None:
        """Read the body of a function where it is called, with its arguments."""
        name = words[0]
        body = context.scope.function(name)
        if body is None:
            return
        if name in self._calls:
            if context.is_parallel:
                self.reading.findings.append(block("fork-bomb", FORK_BOMB_REASON))
            return
        self._uncalled_functions.pop(body.id, None)
        self._calls_left -= 1
        if self._calls_left < 0 or self._level >= _MAX_DEPTH:
            self.reading.findings.append(doubt("too-large", _TOO_MANY_CALLS_REASON))
            return
        calls, self._calls = self._calls, (*self._calls, name)
        outer, context.scope.positional = context.scope.positional, words[1:]
        self._level += 1
        self._read_node(body, replace(context, is_parallel=False))
        self._level -= 1
        context.scope.positional, self._calls = outer, calls

    def _define(self, node: "Node", context: Context) -> "Iterator[_Task]":
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            context.scope.functions[node_text(name)] = body
            inside = self._in_subshell(replace(context, is_parallel=False, may_skip=True))
            self._uncalled_functions[body.id] = (body, inside)
        for child in node.children:
            if child.type in REDIRECT_NODES:
                yield child, context

    def _for(self, node: "Node", context: Context) -> "Iterator[_Task]":
        scope = context.scope
        name = node.child_by_field_name("variable")
        given = node.children_by_field_name("value")
        values = [field for value in given for field in self._words.fields((value,), scope)]
        if name is not None:
            scope.assign(node_text(name), values or scope.positional or (UNKNOWN,), keep_old=context.may_skip)
        body = node.child_by_field_name("body")
        if body is not None:
            yield from self._loop_body(body, context)

    def _loop(self, node: "Node", context: Context) -> "Iterator[_Task]":
        if node.type == "c_style_for_statement":
            self._words.visit(node.children[0], context.scope)
            for start in node.children_by_field_name("initializer"):
                if start.type == "variable_assignment" and start.children:
                    context.scope.set_unknown(node_text(start.children[0]))
            for child in node.children:
                if child.is_named and child.type not in ("do_group", "compound_statement", "variable_assignment"):
                    self._words.visit(child, context.scope)
            body = node.child_by_field_name("body")
            if body is not None:
                yield from self._loop_body(body, context)
            return
        yield from self._loop_body(node, context)

    def _loop_body(self, body: "Node", context: Context) -> "Iterator[_Task]":
        """Read the body of a loop, and once more if it changed a variable it had started with."""
        inside = replace(context, may_skip=True)
        version = context.scope.version
        yield from self._sequence(body, inside)

        def read_again() -> None:
            if context.scope.version != version:
                self._read_sequence(body, inside)

        if any(child.is_named for child in body.children):
            yield read_again

    def _read_in_subshell(self, text: str, scope: Scope) -> None:
        self._read_text(text, Context(scope=scope.child()))

    def _substitute(self, node: "Node", scope: Scope) -> str:
        """Read the commands of a substitution and return the text it expands to."""
        if self._level >= _MAX_DEPTH or scope.is_too_deep:
            self.reading.findings.append(too_deep())
            return UNKNOWN
        output = Output()
        context = Context(scope=scope.child(), output=output)
        raw = node_text(node)
        if raw.startswith("`") and "\\" in raw:
            self._read_text(_ESCAPED_IN_BACKTICKS.sub(r"\1", raw[1:-1]), context)
            return output.value
        self._level += 1
        self._read_sequence(node, context)
        self._level -= 1
        return output.value
