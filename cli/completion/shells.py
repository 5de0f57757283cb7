"""What each shell wants: how a line of bash comes apart, and how values and their meanings are told."""

import shlex
from collections.abc import Sequence

from rich.cells import cell_len

from cli.completion.values import CompletionItem
from cli.screen.colors import clip, to_single_line

# What bash says in COMP_TYPE when a key puts one candidate after another into the line.
_MENU_COMPLETION = ("37", "42")
_MIN_DESCRIPTION_WIDTH = 12


def plain_lines(values: Sequence[CompletionItem]) -> list[str]:
    """Return a line for each value: the word, a tab, what it means."""
    return [f"{value.word}\t{to_single_line(value.description)}" for value in values]


def bash_lines(values: Sequence[CompletionItem], *, typed: str, current: str, key: str, columns: str) -> list[str]:
    """Return what bash shall offer in place of `current`, the part of the typed word behind its last `=` or `:`.

    Several candidates are only listed, and bash inserts what they have in common: so their meanings can stand behind
    them. A single one is inserted as it is.
    """
    kept = typed.removesuffix(current) if current and typed.endswith(current) else typed if not current else ""
    words = [shlex.quote(value.word.removeprefix(kept)) for value in values]
    if len(words) == 1 or key in _MENU_COMPLETION:
        return words
    width = max(map(cell_len, words), default=0)
    room = (int(columns) if columns.isdecimal() else 80) - width - 5
    if room < _MIN_DESCRIPTION_WIDTH or not any(value.description for value in values):
        return words
    return [
        f"{word:<{width}}  ({clip(value.description, room)})" if value.description else word
        for word, value in zip(words, values, strict=True)
    ]


def bash_words(line: str) -> list[str]:
    """Return the words of a line behind the program's name, the one at the cursor last; open quotes are closed."""
    for ending in ("", "'", '"'):
        try:
            words = shlex.split(line + ending)
            break
        except ValueError:
            continue
    else:
        words = line.split()
    is_between = line[-1:].isspace() and not line.endswith("\\ ") and line.count("'") % 2 == line.count('"') % 2 == 0
    return [*words[1:], ""] if is_between or len(words) < 2 else words[1:]
