"""The excerpt of the memory for prompts: the newest and most important lines, not just the first ones."""

from agent.memory.entries import MemoryLine, non_blank, parse_lines

EXCERPT_CHARS = 2000
_LINE_CHARS = 300
# Preferences may fill this share before the newest lines of all kinds are added.
_PREF_SHARE = 0.6


def excerpt(text: str, limit: int = EXCERPT_CHARS) -> str:
    """Return at most `limit` characters of the memory, in the order of the file."""
    lines = list(non_blank(parse_lines(text)))
    if len(text := "\n".join(map(_truncate, lines))) <= limit:
        return text
    notice = f"({len(lines)} lines in all; the tool `memory` reads the rest)"
    room = limit - len(notice) - 1
    kept: set[int] = set()
    newest = sorted(range(len(lines)), key=lambda index: (lines[index].stamp, index), reverse=True)
    preferences = [index for index in newest if lines[index].tag == "PREF"]
    left = room - _fill(lines, preferences, kept, int(room * _PREF_SHARE))
    _fill(lines, newest, kept, left)
    return "\n".join([*(_truncate(lines[index]) for index in sorted(kept)), notice])


def _fill(lines: list[MemoryLine], indexes: list[int], kept: set[int], room: int) -> int:
    """Add lines that fit to `kept`, and return the characters they take."""
    taken = 0
    for index in indexes:
        size = len(_truncate(lines[index])) + 1
        if index not in kept and taken + size <= room:
            kept.add(index)
            taken += size
    return taken


def _truncate(line: MemoryLine) -> str:
    raw = line.raw.strip()
    return raw if len(raw) <= _LINE_CHARS else raw[: _LINE_CHARS - 1] + "…"
