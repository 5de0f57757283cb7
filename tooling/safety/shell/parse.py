"""The grammar of bash: a text in, a tree out; the parser loads with the first text."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# Here the scanner asks C's ctype tables about a letter that lies beyond their end, and the process may die of it.
_CRASHING = re.compile(r"(\$|-[A-Za-z]*|\?|\{\d*(?:\.\.\d*)?)[^\x00-\xff]")
_GLUED_HASH = re.compile(r"(?<=[^\s;&|(])#")
_NOTHING = re.compile(rb"(?:\s|\\\n)*")


def parsed(text: str) -> "Node":
    """Return the tree of a shell text; what is no bash is marked in it."""
    return _parser().parse(source_of(text)).root_node


def source_of(text: str) -> bytes:
    """Return the bytes that the places in a tree count."""
    if not text.isascii():
        text = _CRASHING.sub("\\1\u00ff", text)
    return text.encode("utf-8", "replace")


def has_false_comment(text: str, root: "Node") -> bool:
    """Say whether the grammar takes something for a comment that is a part of a word to the shell."""
    if "#" not in text:
        return False
    for found in _GLUED_HASH.finditer(text):
        at = root.start_byte + len(text[: found.start()].encode("utf-8", "replace"))
        node = root.descendant_for_byte_range(at, at + 1)
        if node is not None and node.type == "comment" and node.start_byte == at:
            return True
    return False


def passed_over(node: "Node") -> bytes:
    """Return the text between a node's parts that the grammar left out: nobody would judge it."""
    end, source = -1, b""
    for child in node.children:
        if child.start_byte - end > 1 and end >= 0:
            source = source or node.text or b""
            gap = source[end - node.start_byte : child.start_byte - node.start_byte]
            if not _NOTHING.fullmatch(gap):
                return gap
        end = child.end_byte
    return b""


@cache
def _parser() -> "Parser":
    # The grammar costs as much as half the start of the program; a run without commands does without it.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
