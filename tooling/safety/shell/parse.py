"""Parse bash with tree-sitter, split command nodes, and detect misleading characters."""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from tooling.contract.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# The scanner passes these characters to C's ctype functions, which read out of bounds and may crash the process.
_CRASHING = lazy_pattern(r"(\$|-[A-Za-z]*|\?|\{\d*(?:\.\.\d*)?)[^\x00-\xff]")
_GLUED_HASH = lazy_pattern(r"(?<=[^\s;&|(])#")
_BLANKS = lazy_pattern(rb"(?:\s|\\\n)*")
# Matched on the text, so that a fork bomb is found even where the grammar does not see a function.
FORK_BOMB = lazy_pattern(r"(?<!\w)(\w{1,40}|:)\s{0,4}\(\s{0,4}\)\s{0,4}\{[^}]{0,80}?\1\s{0,4}\|\s{0,4}\1\s{0,4}&")
# The parser takes quadratic time on some broken texts, such as a thousand pipes that lead nowhere.
_MAX_OPERATORS = 4000
_MAX_TEXT_LENGTH = 1_000_000
_OPERATORS = lazy_pattern(r"[|&;(){}<>`$\n]")
_PLAIN_HEREDOC = lazy_pattern(r"[^'\"#`\\\n]*<<-?[ \t]*(['\"]?)(\w+)\1[^'\"#`\\\n<]*\n", re.ASCII)
_QUOTED = frozenset({"string", "raw_string", "ansi_c_string", "translated_string", "heredoc_body", "comment"})


def parse(text: str) -> "Node":
    """Return the syntax tree of a shell text; invalid parts are marked in it."""
    return _parser().parse(encode_source(text)).root_node


def is_too_large(text: str) -> bool:
    """Return whether a text has more operators than can be parsed in bounded time; whole here-documents are data."""
    if len(text) <= _MAX_OPERATORS:
        return False
    return len(text) > _MAX_TEXT_LENGTH or _count_operators(text) > _MAX_OPERATORS


def _count_operators(text: str) -> int:
    count, at = 0, 0
    while at < len(text):
        heredoc = _PLAIN_HEREDOC.match(text, at)
        end = _heredoc_end(text, heredoc) if heredoc else 0
        if heredoc and end:
            count += len(_OPERATORS.findall(heredoc[0]))
        else:
            end = text.find("\n", at) + 1 or len(text)
            line = text[at:end]
            if line.count("'") % 2 or line.count('"') % 2:
                # A string may continue on the next lines, and an apparent here-document inside it is none.
                return count + len(_OPERATORS.findall(text, at))
            count += len(_OPERATORS.findall(line))
        at = end
    return count


def _heredoc_end(text: str, start: "re.Match[str]") -> int:
    """Return the end of a here-document that contains nothing to expand, or 0."""
    end = re.compile(rf"^\t*{start[2]}(?:\n|\Z)", re.MULTILINE).search(text, start.end())
    if end is None or (not start[1] and re.search(r"[`$]", text[start.end() : end.start()])):
        return 0
    return end.end()


def encode_source(text: str) -> bytes:
    """Return the bytes that the offsets in a tree refer to."""
    if not text.isascii():
        text = _CRASHING.sub("\\1\u00ff", text)
    return text.encode("utf-8", "replace")


def has_false_comment(text: str, root: "Node") -> bool:
    """Return whether the grammar sees a comment where the shell sees part of a word."""
    if "#" not in text:
        return False
    for offset in _byte_offsets(_GLUED_HASH, text):
        at = root.start_byte + offset
        node = root.descendant_for_byte_range(at, at + 1)
        if node is not None and node.type == "comment" and node.start_byte == at:
            return True
    return False


def is_fork_bomb(text: str, root: "Node") -> bool:
    """Return whether a text defines a function that only calls itself; quoted text is data, unless parsing failed."""
    offsets = list(_byte_offsets(FORK_BOMB, text))
    return bool(offsets) and (root.has_error or not all(_is_quoted(at, root) for at in offsets))


def _byte_offsets(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    """Yield where a pattern is found, in bytes, in linear time."""
    offset, end = 0, 0
    for found in pattern.finditer(text):
        offset += len(text[end : found.start()].encode("utf-8", "replace"))
        end = found.start()
        yield offset


def _is_quoted(at: int, root: "Node") -> bool:
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type not in _QUOTED:
        node = node.parent
    return node is not None


def skipped_text(node: "Node") -> bytes:
    """Return text between a node's children that the grammar skipped, and that would not be judged."""
    end, source = -1, b""
    for child in node.children:
        if child.start_byte - end > 1 and end >= 0:
            source = source or node.text or b""
            gap = source[end - node.start_byte : child.start_byte - node.start_byte]
            if not _BLANKS.fullmatch(gap):
                return gap
        end = child.end_byte
    return b""


@cache
def _parser() -> "Parser":
    # Loading the grammar takes half as long as starting the program; a run without commands never needs it.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


_DELIMITER = lazy_pattern(r"\\?([\w.-]+)|([\"'])([\w. -]+)\2", re.ASCII)
REDIRECT_NODES = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
CONDITIONAL_NODES = frozenset({"if_statement", "elif_clause", "else_clause", "case_statement", "case_item"})
WORD_NODES = frozenset(
    {"word", "string", "raw_string", "ansi_c_string", "concatenation", "simple_expansion", "expansion", "number"}
    | {
        "arithmetic_expansion",
        "extglob_pattern",
        "regex",
        "command_substitution",
        "process_substitution",
        "test_command",
    }
    | {"translated_string", "brace_expression"}
)
IGNORED_NODES = frozenset(
    {"comment", "heredoc_end", "heredoc_start", "heredoc_body", "variable_name", "file_descriptor"}
)


class CommandParts:
    """The parts of a command node: words as lists of adjacent nodes, assignments, redirections, others."""

    def __init__(self, node: "Node") -> None:
        self.words: list[list[Node]] = []
        self.assignments: list[Node] = []
        self.redirects: list[Node] = []
        self.others: list[Node] = []
        self.is_ambiguous = False
        end, is_word = -1, False
        for child in node.children:
            is_adjacent = child.start_byte == end
            # To the shell, nodes without a blank in between are one word.
            self.is_ambiguous = self.is_ambiguous or (is_adjacent and not is_word)
            is_word = self._add(child, is_adjacent=is_adjacent)
            end = child.end_byte

    def _add(self, child: "Node", *, is_adjacent: bool) -> bool:
        kind = child.type
        if kind == "variable_assignment":
            self.assignments.append(child)
            return False
        if kind in REDIRECT_NODES:
            self.redirects.append(child)
            return False
        if kind in ("subshell", "compound_statement", "ERROR"):
            self.others.append(child)
        elif is_adjacent and self.words:
            self.words[-1].append(child)
        else:
            self.words.append([child])
        return True


def last_command(body: "Node | None") -> "Node | None":
    """Return the last command of a list, pipeline or negation."""
    while body is not None and body.type in ("list", "pipeline", "negated_command"):
        body = next((child for child in reversed(body.children) if child.is_named), None)
    return body if body is not None and body.type == "command" else None


def has_exact_heredoc_end(node: "Node") -> bool:
    """Return whether a here-document ends where the shell ends it; the grammar is less strict."""
    parts = {child.type: child for child in node.children}
    start, body, end = parts.get("heredoc_start"), parts.get("heredoc_body"), parts.get("heredoc_end")
    if start is None or end is None:
        return False
    found = _DELIMITER.fullmatch((start.text or b"").decode("utf-8", "replace"))
    if found is None:
        return False
    word = (found[1] or found[3]).encode()
    tabs = b"\t" if "<<-" in parts else b""
    lines = (body.text or b"").split(b"\n") if body is not None else []
    if any((line.lstrip(tabs) if tabs else line) == word for line in lines[:-1]):
        return False
    root = node
    while root.parent is not None:
        root = root.parent
    before = (root.text or b"")[: end.start_byte - root.start_byte]
    after = (root.text or b"")[end.start_byte - root.start_byte :].partition(b"\n")[0]
    last = before[before.rfind(b"\n") + 1 :] + after
    return (last.lstrip(tabs) if tabs else last) == word
