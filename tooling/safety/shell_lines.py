"""The words of one command, in every way they may come out."""

from typing import TYPE_CHECKING

from tooling.safety.shell.command import program_name
from tooling.safety.shell.state import Scope
from tooling.safety.shell.unwrap import RUNNERS
from tooling.safety.shell.words import WordReader, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_LINES = 64


def command_lines(groups: "list[list[Node]]", scope: Scope, words: WordReader) -> tuple[list[list[str]], bool]:
    """Return every way the words of a command may come out, and whether these are all."""
    if not groups:
        return [], True
    first = groups[0][0]
    name = first.children[0] if first.type == "command_name" and first.child_count == 1 else first
    if len(groups[0]) == 1 and name.type == "word" and b"\\" not in (name.text or b""):
        lines = [[text_of(name)]]
    else:
        lines = words.alternatives(groups[0], scope)
    if not any(program_name(line) in RUNNERS for line in lines):
        rest = [field for group in groups[1:] for field in words.fields(group, scope)]
        return [[*line, *rest] for line in lines], True
    # Where a word may be a program, every value it may have makes a command of its own.
    is_complete = True
    for group in groups[1:]:
        choices = words.alternatives(group, scope)
        if len(lines) * len(choices) > _MOST_LINES:
            is_complete = False
            choices = [[field for choice in choices for field in choice]]
        lines = [[*line, *choice] for line in lines for choice in choices]
    return lines, is_complete
