"""The part of a memory that stands in prompts: the newest and the most important, never just the beginning."""

from agent.memory.entries import MemoryLine, non_blank, parse_lines

EXCERPT_CHARS = 2000
_LINE_CHARS = 300
# So much may go to preferences before the newest of everything else had its turn.
_PREF_SHARE = 0.6


def excerpt(text: str, limit: int = EXCERPT_CHARS) -> str:
    """Return at most `limit` characters of a memory, in the order of the file."""
    lines = list(non_blank(parse_lines(text)))
    if len(whole := "\n".join(map(_truncate, lines))) <= limit:
        return whole
    notice = f"({len(lines)} lines in all; the tool `memory` reads the rest)"
    room = limit - len(notice) - 1
    kept: set[int] = set()
    newest = sorted(range(len(lines)), key=lambda place: (lines[place].stamp, place), reverse=True)
    preferences = [place for place in newest if lines[place].tag == "PREF"]
    left = room - _fill(lines, preferences, kept, int(room * _PREF_SHARE))
    _fill(lines, newest, kept, left)
    return "\n".join([*(_truncate(lines[place]) for place in sorted(kept)), notice])


def _fill(lines: list[MemoryLine], places: list[int], kept: set[int], room: int) -> int:
    """Keep lines as long as they fit, and return the room they took."""
    taken = 0
    for place in places:
        size = len(_truncate(lines[place])) + 1
        if place not in kept and taken + size <= room:
            kept.add(place)
            taken += size
    return taken


def _truncate(line: MemoryLine) -> str:
    raw = line.raw.strip()
    return raw if len(raw) <= _LINE_CHARS else raw[: _LINE_CHARS - 1] + "…"
