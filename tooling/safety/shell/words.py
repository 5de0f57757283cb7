"""Expand words of a shell text into fields: literal, computed from variables the text sets, or unknown."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import HIDDEN, UNKNOWN, is_unknown, program_name
from tooling.safety.shell.expand import (
    MAX_FIELDS,
    TooManyFields,
    decode_ansi_c,
    expand_braces,
    replace_pattern,
    strip_pattern,
    substring,
    unescape,
    unescape_double_quoted,
)
from tooling.safety.shell.state import Scope, Values
from tooling.safety.shell.unwrap import RUNNERS

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERAL, _QUOTED, _EXPANDED = range(3)
_Piece: TypeAlias = tuple[Values, int]
_SPLIT = "\ufdd2"
_HIDE_BRACES = str.maketrans("{,}", "\ufdd3\ufdd4\ufdd5")
_SHOW_BRACES = str.maketrans("\ufdd3\ufdd4\ufdd5", "{,}")
_EXPANSIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)
_FROM_ENVIRONMENT: dict[str, Values] = {
    "HOME": ("~",),
    "IFS": (" \t\n",),
    "SHELL": ("/bin/bash",),
    "BASH": ("/bin/bash",),
    "TMPDIR": ("/tmp",),
}
_PARAMETER = lazy_pattern(r"([#!]?)([A-Za-z_]\w*|[0-9]+|[@*#?$!_-])(?:\[([^\]]*)\])?(.*)", re.DOTALL)
_OPERATOR = lazy_pattern(r":?[-=+?]|##?|%%?|//?[#%]?|\^\^?|,,?|@|:")
_SUBSTITUTION_START = lazy_pattern(r"(?<!\\)(?:\\\\)*(?:\$[({]|`)")
_BACKTICKS = lazy_pattern(r"(?<!\\)`((?:\\.|[^`\\])*)`", re.DOTALL)
_SPECIAL_PARAMETERS = frozenset("#?$!-_0")
_MAX_LINES = 64
_TOO_MANY_WORDS_REASON = "it expands to more words than can be judged"
_HEREDOC_REASON = "a here-document in it contains commands that cannot be parsed reliably"


def node_text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


class WordReader:
    """Expands word nodes into fields.

    `substitute` reads the commands of a substitution node and returns its output; `read_text` reads commands from text.
    """

    def __init__(self, substitute: "Callable[[Node, Scope], str]", read_text: "Callable[[str, Scope], None]") -> None:
        self._substitute = substitute
        self._read_text = read_text
        self.variables_read: set[str] = set()
        self.problems: set[str] = set()
        self.assigned: list[str] = []

    def fields(self, nodes: "Sequence[Node]", scope: Scope) -> list[str]:
        """Return the fields of one word, given as its adjacent nodes."""
        if len(nodes) == 1 and nodes[0].type in ("word", "number"):
            raw = node_text(nodes[0])
            if "\\" not in raw and "{" not in raw:
                return [raw]
        return self._expand(nodes, scope, splits=True)

    def alternatives(self, nodes: "Sequence[Node]", scope: Scope) -> list[list[str]]:
        """Return every list of fields that a word may expand to."""
        if len(nodes) == 1 and nodes[0].type in ("word", "number", "string", "raw_string", "brace_expression"):
            fields = self.fields(nodes, scope)
            if len(fields) <= 1:
                return [fields]
        pieces: list[_Piece] = []
        for node in nodes:
            self._collect(node, scope, pieces)
        choices: list[list[_Piece]] = [[]]
        for values, kind in pieces:
            if len(values) == 1:
                for choice in choices:
                    choice.append((values, kind))
                continue
            choices = [[*choice, ((value,), kind)] for choice in choices for value in values]
            if len(choices) > MAX_FIELDS:
                self.problems.add(_TOO_MANY_WORDS_REASON)
                return [[HIDDEN]]
        return [self._build_fields(choice, scope, splits=True) for choice in choices]

    def texts(self, node: "Node", scope: Scope) -> list[str]:
        """Return the possible values of a word that is not split, as in assignments."""
        if node.type in ("word", "number") and b"\\" not in (node.text or b""):
            return [node_text(node)]
        return self._expand((node,), scope, splits=False)

    def visit(self, node: "Node", scope: Scope) -> None:
        """Read every substitution below a node without using its value."""
        pending = [node]
        while pending:
            inner = pending.pop()
            if inner.type in ("command_substitution", "process_substitution"):
                self._substitute(inner, scope)
            elif inner.type == "simple_expansion":
                self._variable(node_text(inner)[1:], scope)
            else:
                pending.extend(reversed(inner.children))

    def _expand(self, nodes: "Sequence[Node]", scope: Scope, *, splits: bool) -> list[str]:
        pieces: list[_Piece] = []
        for node in nodes:
            self._collect(node, scope, pieces)
        return self._build_fields(pieces, scope, splits=splits)

    def _build_fields(self, pieces: list[_Piece], scope: Scope, *, splits: bool) -> list[str]:
        try:
            return _join_pieces(pieces, scope.value("IFS") if splits else None, splits=splits)
        except (TooManyFields, RecursionError):
            self.problems.add(_TOO_MANY_WORDS_REASON)
            return [HIDDEN]

    def _collect(self, node: "Node", scope: Scope, pieces: list[_Piece]) -> None:
        kind = node.type
        if kind in ("concatenation", "command_name"):
            end = node.start_byte
            for child in node.children:
                if child.start_byte != end:
                    # The grammar joins words across a blank that the shell keeps separate.
                    pieces.append(((_SPLIT,), _QUOTED))
                self._collect(child, scope, pieces)
                end = child.end_byte
        elif kind in ("string", "translated_string"):
            self._collect_quoted(node, scope, pieces)
        elif kind == "raw_string":
            pieces.append(((node_text(node)[1:-1],), _QUOTED))
        elif kind == "ansi_c_string":
            pieces.append(((decode_ansi_c(node_text(node)[2:-1]),), _QUOTED))
        elif kind in _EXPANSIONS:
            pieces.append((self._expansion(node, scope), _EXPANDED))
        elif kind in ("$", "``"):
            pieces.append((("",), _EXPANDED))
        else:
            raw = node_text(node)
            if "\\" in raw:
                pieces.append(((unescape(raw),), _QUOTED if "\\{" in raw or "\\," in raw else _LITERAL))
            else:
                pieces.append(((raw,), _LITERAL))
            if node.child_count:
                self.visit(node, scope)

    def _collect_quoted(self, node: "Node", scope: Scope, pieces: list[_Piece]) -> None:
        source = node.text or b""
        start = source.find(b'"') + 1
        pieces.append((("",), _QUOTED))
        for text, inner in split_interpolations(node, start, len(source) - 1):
            if text:
                pieces.append(((unescape_double_quoted(text),), _QUOTED))
            if inner is not None:
                pieces.append((self._expansion(inner, scope, is_quoted=True), _QUOTED))

    def expand_heredoc(self, node: "Node", scope: Scope) -> str:
        """Return the text of a here-document with its expansions performed."""
        parts: list[str] = []
        for text, inner in split_interpolations(node, 0, len(node.text or b"")):
            if _SUBSTITUTION_START.search(text):
                self._read_backticks(text, scope)
            parts.append(unescape_double_quoted(text.replace('\\"', '\\\\"')))
            if inner is not None:
                values = self._expansion(inner, scope, is_quoted=True)
                parts.append(values[0] if len(values) == 1 else UNKNOWN)
        return "".join(parts)

    def _read_backticks(self, text: str, scope: Scope) -> None:
        """Read backticks in a here-document, which the grammar misses; any other leftover is a problem."""
        rest = _BACKTICKS.sub("", text)
        for match in _BACKTICKS.finditer(text):
            self._read_text(unescape_double_quoted(match[1]), scope)
        if _SUBSTITUTION_START.search(rest):
            self.problems.add(_HEREDOC_REASON)

    def _expansion(self, node: "Node", scope: Scope, *, is_quoted: bool = False) -> Values:
        match node.type:
            case "simple_expansion":
                return self._simple_expansion(node_text(node)[1:], scope, is_quoted=is_quoted)
            case "expansion":
                return self._parameter(node, scope, is_quoted=is_quoted)
            case "command_substitution":
                return (self._substitute(node, scope),)
            case "process_substitution":
                self._substitute(node, scope)
                return ("/dev/fd/63",)
            case _:
                self.visit(node, scope)
                return (UNKNOWN,)

    def _simple_expansion(self, name: str, scope: Scope, *, is_quoted: bool) -> Values:
        if name[:1].isdigit() and len(name) > 1:
            # The grammar reads `$1x` as one name; the shell reads one digit.
            return tuple(value + name[1:] for value in self._variable(name[0], scope, is_quoted=is_quoted))
        return self._variable(name, scope, is_quoted=is_quoted)

    def _variable(self, name: str, scope: Scope, *, is_quoted: bool = False) -> Values:
        if name in ("@", "*") or name.isdigit():
            return _positional(name, scope, is_quoted=is_quoted)
        known = scope.value(name)
        if known is not None:
            return known
        if name == "PWD":
            return (scope.cwd,)
        if name in _FROM_ENVIRONMENT:
            return _FROM_ENVIRONMENT[name]
        if name not in _SPECIAL_PARAMETERS:
            self.variables_read.add(name)
        return (UNKNOWN,)

    def _parameter(self, node: "Node", scope: Scope, *, is_quoted: bool) -> Values:
        raw = node_text(node)[2:-1]
        match = _PARAMETER.fullmatch(raw)
        if not match or (match[1] == "!" and not match[3]):
            self.visit(node, scope)
            return (HIDDEN,)
        prefix, name, index, rest = match.groups()
        if prefix:
            self.visit(node, scope)
            return (UNKNOWN,)
        if index is not None and ("$" in index or "`" in index):
            self.visit(node, scope)
        values = self._element(name, index, scope, is_quoted=is_quoted)
        if not rest:
            return values
        operator = _OPERATOR.match(rest)
        if operator is None:
            self.visit(node, scope)
            return (HIDDEN,)
        return self._apply_operator(node, scope, name, values, operator[0])

    def _element(self, name: str, index: str | None, scope: Scope, *, is_quoted: bool) -> Values:
        if index is None:
            return self._variable(name, scope, is_quoted=is_quoted)
        elements = scope.array(name)
        if elements is None:
            return (UNKNOWN,)
        if index in ("@", "*"):
            return (_SPLIT.join(("", *elements)) if elements else "",)
        try:
            return (elements[int(index)],)
        except (ValueError, IndexError):
            return elements or ("",)

    def _apply_operator(self, node: "Node", scope: Scope, name: str, values: Values, operator: str) -> Values:
        operand = self._operand(node, scope, operator)
        is_set = scope.value(name) is not None or name in _FROM_ENVIRONMENT or name == "PWD" or name.isdigit()
        match operator.lstrip(":") or operator:
            case "-" | "=":
                if operator.endswith("=") and not is_set:
                    scope.assign(name, (operand,), keep_old=False)
                    self.assigned.append(f"{name}={operand}")
                filled = tuple(value or operand for value in values)
                return filled if is_set else (operand,)
            case "+":
                return ("", operand)
            case "?":
                return values
        if not is_set or any(is_unknown(value) for value in values):
            # `${PATH:0:1}` is a common way to hide a slash.
            return (HIDDEN,) if operator == ":" and name.isupper() else (UNKNOWN,)
        if name in _FROM_ENVIRONMENT and operator == ":":
            return (HIDDEN,)
        results = [_apply_to_value(value, operator, operand, node_text(node)) for value in values]
        return tuple(HIDDEN if result is None else result for result in results)

    def _operand(self, node: "Node", scope: Scope, operator: str) -> str:
        """Return the operand of a parameter expansion; substitutions in it are read even if it is not used."""
        children = node.children
        at = next((index for index, child in enumerate(children) if node_text(child) == operator), None)
        if at is None:
            self.visit(node, scope)
            return UNKNOWN
        pieces: list[_Piece] = []
        for child in children[at + 1 : -1]:
            self._collect(child, scope, pieces)
        try:
            values = _join_pieces(pieces, None, splits=False)
        except TooManyFields:
            return HIDDEN
        return values[0] if len(values) == 1 else UNKNOWN


def split_interpolations(node: "Node", start: int, end: int) -> "Iterator[tuple[str, Node | None]]":
    """Yield the pieces of literal text in a node, each with the expansion that follows it."""
    source, base = node.text or b"", node.start_byte
    at = start
    for child in node.children:
        if child.type in _EXPANSIONS:
            yield source[at : child.start_byte - base].decode("utf-8", "replace"), child
            at = child.end_byte - base
    yield source[at:end].decode("utf-8", "replace"), None


def _positional(name: str, scope: Scope, *, is_quoted: bool) -> Values:
    if scope.positional is None or name == "0":
        return (UNKNOWN,)
    if not scope.positional:
        # The text shows no arguments, so the value may be empty or anything.
        return ("", UNKNOWN)
    if name.isdigit():
        at = int(name) - 1
        return (scope.positional[at] if at < len(scope.positional) else "",)
    if name == "*" and is_quoted:
        return (" ".join(scope.positional),)
    return (_SPLIT.join(("", *scope.positional)) if scope.positional else "",)


def _apply_to_value(value: str, operator: str, operand: str, raw: str) -> str | None:
    match operator:
        case "#" | "##" | "%" | "%%":
            return None if is_unknown(operand) else strip_pattern(value, operator, operand)
        case "/" | "//":
            pattern, _, by = raw.partition(operator)[2][:-1].partition("/")
            return None if "$" in raw[2:] or "\\" in raw else replace_pattern(value, operator, pattern, by)
        case "^^":
            return value.upper()
        case ",,":
            return value.lower()
        case ":":
            return substring(value, raw[2:-1].split(":")[1:])
        case _:
            return None


def _join_pieces(pieces: list[_Piece], ifs: Values | None, *, splits: bool) -> list[str]:
    if len(pieces) == 1 and pieces[0][1] == _LITERAL and "{" not in pieces[0][0][0]:
        return list(pieces[0][0])
    has_braces = splits and any(kind == _LITERAL and "{" in values[0] for values, kind in pieces)
    columns: list[Sequence[str]] = []
    count = 1
    for values, kind in pieces:
        if kind == _EXPANDED and splits:
            values = tuple(_split(value, ifs) for value in values)
        if has_braces and kind != _LITERAL:
            values = tuple(value.translate(_HIDE_BRACES) for value in values)
        columns.append(values)
        count *= max(len(values), 1)
        if count > MAX_FIELDS:
            raise TooManyFields
    words = ["".join(parts) for parts in product(*columns)]
    if has_braces:
        words = [field.translate(_SHOW_BRACES) for word in words for field in expand_braces(word)]
    if not splits:
        return [word.replace(_SPLIT, " ").strip(" ") if _SPLIT in word else word for word in words]
    is_quoted = any(kind == _QUOTED for _, kind in pieces)
    return [field for word in words for field in _fields(word, is_quoted=is_quoted)]


def _split(value: str, ifs: Values | None) -> str:
    separators = ifs[0] if ifs else " \t\n"
    if not any(char in value for char in separators):
        return value
    return "".join(_SPLIT if char in separators else char for char in value)


def _fields(word: str, *, is_quoted: bool) -> list[str]:
    if _SPLIT not in word:
        return [word] if word or is_quoted else []
    return [field for field in word.split(_SPLIT) if field]


def command_lines(groups: "list[list[Node]]", scope: Scope, words: WordReader) -> tuple[list[list[str]], bool]:
    """Return the possible word lists of a command, and whether they are complete."""
    if not groups:
        return [], True
    first = groups[0][0]
    name = first.children[0] if first.type == "command_name" and first.child_count == 1 else first
    if len(groups[0]) == 1 and name.type == "word" and b"\\" not in (name.text or b""):
        lines = [[node_text(name)]]
    else:
        lines = words.alternatives(groups[0], scope)
    if not any(program_name(line) in RUNNERS for line in lines):
        rest = [field for group in groups[1:] for field in words.fields(group, scope)]
        return [[*line, *rest] for line in lines], True
    # A word of a wrapper may be a program, so each of its possible values makes a separate command.
    is_complete = True
    for group in groups[1:]:
        choices = words.alternatives(group, scope)
        if len(lines) * len(choices) > _MAX_LINES:
            is_complete = False
            choices = [[field for choice in choices for field in choice]]
        if len(choices) == 1:
            for line in lines:
                line += choices[0]
        else:
            lines = [[*line, *choice] for line in lines for choice in choices]
    return lines, is_complete
