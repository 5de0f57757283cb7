"""The grammar of bash: a text in, a tree out; the parser loads with the first text."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


def parsed(text: str) -> "Node":
    """Return the tree of a shell text; what is no bash is marked in it."""
    return _parser().parse(text.encode("utf-8", "replace")).root_node


@cache
def _parser() -> "Parser":
    # The grammar costs as much as half the start of the program; a run without commands does without it.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
