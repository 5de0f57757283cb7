"""Kinds of nodes in the grammar of bash, and what they are to a reader."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_DELIMITER = re.compile(r"\\?([\w.-]+)|([\"'])([\w. -]+)\2", re.ASCII)
REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
CONDITIONAL = frozenset({"if_statement", "elif_clause", "else_clause", "case_statement", "case_item"})
VALUES = frozenset(
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
SILENT = frozenset({"comment", "heredoc_end", "heredoc_start", "heredoc_body", "variable_name", "file_descriptor"})


class CommandParts:
    """The parts of a command node: its words, each as the nodes it is written with, and what stands around them."""

    def __init__(self, node: "Node") -> None:
        self.words: list[list[Node]] = []
        self.assignments: list[Node] = []
        self.redirects: list[Node] = []
        self.others: list[Node] = []
        self.is_torn = False
        end, is_word = -1, False
        for child in node.children:
            is_glued = child.start_byte == end
            # Without a blank it is the same word to the shell, whatever the grammar says.
            self.is_torn = self.is_torn or (is_glued and not is_word)
            is_word = self._take(child, is_glued=is_glued)
            end = child.end_byte

    def _take(self, child: "Node", *, is_glued: bool) -> bool:
        kind = child.type
        if kind == "variable_assignment":
            self.assignments.append(child)
            return False
        if kind in REDIRECTS:
            self.redirects.append(child)
            return False
        if kind in ("subshell", "compound_statement", "ERROR"):
            self.others.append(child)
        elif is_glued and self.words:
            self.words[-1].append(child)
        else:
            self.words.append([child])
        return True


def last_command(body: "Node | None") -> "Node | None":
    """Return the command that ends a list, a pipeline or a negation."""
    while body is not None and body.type in ("list", "pipeline", "negated_command"):
        body = next((child for child in reversed(body.children) if child.is_named), None)
    return body if body is not None and body.type == "command" else None


def ends_where_the_shell_ends(node: "Node") -> bool:
    """Say whether a here-document ends on the line where the shell sees its end: the grammar is not strict about it."""
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
