"""A second look at the text itself: whatever could run a command must stand where the grammar saw it.

The grammar of bash that we parse with is not bash: in some places it takes for plain text what the shell runs. This
look knows nothing of commands. It only finds the signs that start them, and doubts every sign that has no node.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

# Text in these is never run by the shell that reads it.
_PLAIN = frozenset({"raw_string", "ansi_c_string", "comment"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_SIGNS = re.compile(rb"\\.|`|\$\(|[<>]\(", re.DOTALL)
_PROCESS = (b"<(", b">(")
# Between the parts of one of these a bare line feed would end the command.
_ON_ONE_LINE = frozenset({"command", "file_redirect", "redirected_statement", "herestring_redirect", "test_command"})
_WORDS = frozenset({"word", "simple_expansion", "variable_name", "special_variable_name"})
# Expanded by the shell, but no place where the reader looks for commands.
_HEADS = frozenset({"translated_string", "c_style_for_statement"})
_STARTS = re.compile(rb"`|\$\(|[<>]\(")
_LINE_END = re.compile(rb"(?<!\\)\n")
_SWALLOWED = re.compile(rb"[;&\n`]|\$\(|[<>]\(")
# Evaluated a second time by test, let, printf, read, declare and arithmetic, quoted or not.
_SUBSCRIPT = re.compile(rb"\w\[[^\]\n]*(?:\$\(|`)")
_PROMPT_EXPANSION = re.compile(rb"@P\s*\}")


def find_parse_gap(source: bytes, root: "Node") -> str:
    """Return why the tree cannot be trusted to hold everything that runs, or nothing."""
    if _PROMPT_EXPANSION.search(source):
        return "it expands text a second time"
    has_signs = _SIGNS.search(source) is not None
    if not has_signs and b"\n" not in source and b"=~" not in source and b"==" not in source:
        return ""
    quiet, starts, ends = bytearray(len(source)), set[int](), set[int]()
    for node in _walk(root):
        if problem := _node_problem(node, source):
            return problem
        if node.type in _PLAIN or (node.type == "heredoc_body" and _is_quoted_heredoc(node)):
            quiet[node.start_byte : node.end_byte] = b"\1" * (node.end_byte - node.start_byte)
        elif node.type in _SUBSTITUTIONS:
            starts.add(node.start_byte)
            ends.add(node.end_byte - 1)
    return _find_unparsed_command(source, quiet, starts, ends, root) if has_signs else ""


def _find_unparsed_command(source: bytes, quiet: bytearray, starts: set[int], ends: set[int], root: "Node") -> str:
    for found in _SIGNS.finditer(source):
        at, sign = found.start(), found.group()
        if quiet[at] or sign.startswith(b"\\") or at in starts or (sign == b"`" and at in ends):
            continue
        if sign in _PROCESS and _is_in_text(root, at):
            continue
        return "it may run a command in a place that cannot be parsed reliably"
    return ""


def _node_problem(node: "Node", source: bytes) -> str:
    if (
        node.type in _ON_ONE_LINE
        and node.end_byte > node.start_byte
        and b"\n" in source[node.start_byte : node.end_byte]
    ):
        end = node.start_byte
        for child in node.children:
            if child.type == "heredoc_redirect":
                break
            if _LINE_END.search(source, end, child.start_byte):
                return "a line may start where the parser saw none"
            end = child.end_byte
    if node.type in _WORDS and _LINE_END.search(source, node.start_byte, node.end_byte):
        return "a line may start where the parser saw none"
    if node.type in _HEADS and _STARTS.search(source, node.start_byte, _end_of_head(node)):
        return "it may run a command in a place that cannot be parsed reliably"
    if node.type == "regex" and _SWALLOWED.search(source, node.start_byte, node.end_byte):
        return "a pattern in it may contain commands"
    if node.type in ("raw_string", "ansi_c_string") and _SUBSCRIPT.search(source, node.start_byte, node.end_byte):
        return "a string in it may be evaluated a second time"
    return ""


def _end_of_head(node: "Node") -> int:
    """Return where the part of a statement ends that the shell expands itself."""
    body = next((child for child in node.children if child.type in ("do_group", "compound_statement")), None)
    return body.start_byte if body is not None else node.end_byte


def _is_quoted_heredoc(body: "Node") -> bool:
    """Say whether a here-document's delimiter is quoted, so that nothing in it is expanded."""
    parent = body.parent
    start = next((child for child in parent.children if child.type == "heredoc_start"), None) if parent else None
    text = (start.text if start is not None else None) or b""
    return any(mark in text for mark in (b"'", b'"', b"\\"))


def _is_in_text(root: "Node", at: int) -> bool:
    """Say whether a place lies in double quotes or a here-document, where `<(` means nothing."""
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None:
        if node.type in ("string", "heredoc_body"):
            return True
        if node.type in _SUBSTITUTIONS or node.type in ("expansion", "regex"):
            return False
        node = node.parent
    return False


def _walk(root: "Node") -> "Iterator[Node]":
    cursor = root.walk()
    while True:
        if (node := cursor.node) is not None:
            yield node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
