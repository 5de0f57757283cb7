"""What each shell expects: splitting a bash line into words, and printing candidates with descriptions."""

import shlex
from collections.abc import Sequence

from rich.cells import cell_len

from cli.completion.values import CompletionItem
from cli.screen.colors import clip, to_single_line

# COMP_TYPE in bash when a key inserts one candidate after another (menu completion).
_MENU_COMPLETION = ("37", "42")
_MIN_DESCRIPTION_WIDTH = 12


def plain_lines(items: Sequence[CompletionItem]) -> list[str]:
    """Return a line for each candidate: the word, a tab, its description."""
    return [f"{item.word}\t{to_single_line(item.description)}" for item in items]


def bash_lines(items: Sequence[CompletionItem], *, typed: str, current: str, key: str, columns: str) -> list[str]:
    """Return the candidates that replace `current`, the part of the typed word after its last `=` or `:`.

    bash only lists several candidates and inserts their common prefix, so they can carry descriptions. A single one
    is inserted as it is.
    """
    prefix = typed.removesuffix(current) if current and typed.endswith(current) else typed if not current else ""
    words = [shlex.quote(item.word.removeprefix(prefix)) for item in items]
    if len(words) == 1 or key in _MENU_COMPLETION:
        return words
    width = max(map(cell_len, words), default=0)
    room = (int(columns) if columns.isdecimal() else 80) - width - 5
    if room < _MIN_DESCRIPTION_WIDTH or not any(item.description for item in items):
        return words
    return [
        f"{word:<{width}}  ({clip(item.description, room)})" if item.description else word
        for word, item in zip(words, items, strict=True)
    ]


def bash_words(line: str) -> list[str]:
    """Return the words after the program name, ending with the one at the cursor; open quotes are closed."""
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
