"""Check that the parser saw everything in a text that can run a command.

The tree-sitter grammar is not bash: in some places it sees plain text where the shell runs a command. This check does
not parse. It searches the text for the tokens that start a command and reports any without a matching node.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tooling.contract.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Node

# The shell never runs text in these.
_LITERAL = frozenset({"raw_string", "ansi_c_string", "comment"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_COMMAND_TOKENS = lazy_pattern(rb"\\.|`|\$\(|[<>]\(", re.DOTALL)
_PROCESS_TOKENS = (b"<(", b">(")
# In these a bare line feed between children would end the command.
_ON_ONE_LINE = frozenset({"command", "file_redirect", "redirected_statement", "herestring_redirect", "test_command"})
_WORDS = frozenset({"word", "simple_expansion", "variable_name", "special_variable_name"})
# The shell expands these, but the reader does not look for commands in them.
_EXPANDED_HEADS = frozenset({"translated_string", "c_style_for_statement"})
_SUBSTITUTION_STARTS = lazy_pattern(rb"`|\$\(|[<>]\(")
_LINE_END = lazy_pattern(rb"(?<!\\)\n")
_SWALLOWED = lazy_pattern(rb"[;&\n`]|\$\(|[<>]\(")
# `test`, `let`, `printf`, `read`, `declare` and arithmetic evaluate subscripts a second time, even quoted ones.
_SUBSCRIPT = lazy_pattern(rb"\w\[[^\]\n]*(?:\$\(|`)")
_PROMPT_EXPANSION = lazy_pattern(rb"@P\s*\}")
_HIDDEN_COMMAND_REASON = "it may run a command in a place that cannot be parsed reliably"
_HIDDEN_LINE_REASON = "a line may start where the parser saw none"


def find_parse_gap(source: bytes, root: "Node") -> str:
    """Return why the tree may not contain everything the shell would run, or an empty string."""
    if _PROMPT_EXPANSION.search(source):
        return "it expands text a second time"
    has_tokens = _COMMAND_TOKENS.search(source) is not None
    if not has_tokens and b"\n" not in source and b"=~" not in source and b"==" not in source:
        return ""
    is_literal, starts, ends = bytearray(len(source)), set[int](), set[int]()
    for node in _walk(root):
        if problem := _node_problem(node, source):
            return problem
        if node.type in _LITERAL or (node.type == "heredoc_body" and _is_quoted_heredoc(node)):
            is_literal[node.start_byte : node.end_byte] = b"\1" * (node.end_byte - node.start_byte)
        elif node.type in _SUBSTITUTIONS:
            starts.add(node.start_byte)
            ends.add(node.end_byte - 1)
    return _find_unparsed_command(source, is_literal, starts, ends, root) if has_tokens else ""


def _find_unparsed_command(source: bytes, is_literal: bytearray, starts: set[int], ends: set[int], root: "Node") -> str:
    for found in _COMMAND_TOKENS.finditer(source):
        at, token = found.start(), found.group()
        if is_literal[at] or token.startswith(b"\\") or at in starts or (token == b"`" and at in ends):
            continue
        if token in _PROCESS_TOKENS and _is_in_text(root, at):
            continue
        return _HIDDEN_COMMAND_REASON
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
                return _HIDDEN_LINE_REASON
            end = child.end_byte
    if node.type in _WORDS and _LINE_END.search(source, node.start_byte, node.end_byte):
        return _HIDDEN_LINE_REASON
    if node.type in _EXPANDED_HEADS and _SUBSTITUTION_STARTS.search(source, node.start_byte, _end_of_head(node)):
        return _HIDDEN_COMMAND_REASON
    if node.type == "regex" and _SWALLOWED.search(source, node.start_byte, node.end_byte):
        return "a pattern in it may contain commands"
    if node.type in ("raw_string", "ansi_c_string") and _SUBSCRIPT.search(source, node.start_byte, node.end_byte):
        return "a string in it may be evaluated a second time"
    return ""


def _end_of_head(node: "Node") -> int:
    """Return the end of the part of a statement that the shell expands."""
    body = next((child for child in node.children if child.type in ("do_group", "compound_statement")), None)
    return body.start_byte if body is not None else node.end_byte


def _is_quoted_heredoc(body: "Node") -> bool:
    """Return whether a here-document's delimiter is quoted, so that nothing in it is expanded."""
    parent = body.parent
    start = next((child for child in parent.children if child.type == "heredoc_start"), None) if parent else None
    text = (start.text if start is not None else None) or b""
    return any(mark in text for mark in (b"'", b'"', b"\\"))


def _is_in_text(root: "Node", at: int) -> bool:
    """Return whether an offset is in double quotes or a here-document, where `<(` has no meaning."""
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
