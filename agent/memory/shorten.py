"""Shorten the text of a memory: drop entries by priority, or replace them with a model's list."""

from collections.abc import Sequence

from agent.memory.entries import TAGS, MemoryLine, normalize, parse_lines
from agent.memory.privacy import find_secret
from tooling.safety.secrets.redact import Redactor

NOT_ENTRIES = "the reply does not consist of entries"
NOT_SHORTER = "the reply is not shorter"
UNKNOWN_DATES = "the reply contains unknown dates"
NO_PREFERENCES = "the reply dropped all preferences"


def drop_by_priority(text: str, target: int) -> str:
    """Drop duplicate entries and, while the text is too long, the least important and oldest ones."""
    lines = _drop_duplicates(parse_lines(text))
    room = entry_room(text, target)
    size = byte_size([line for line in lines if line.is_entry])
    dropped: set[int] = set()
    for index in sorted(range(len(lines)), key=lambda index: _rank(lines[index], index)):
        if size <= room:
            break
        if lines[index].is_entry:
            dropped.add(index)
            size -= byte_size([lines[index]])
    return "\n".join(line.raw for index, line in enumerate(lines) if index not in dropped)


def apply_reply(before: str, reply: str, redactor: Redactor) -> tuple[str, str]:
    """Return the text with its entries replaced by the model's, or unchanged with the problem of the reply.

    Entries that the model did not change stay in place; new ones go to the end.
    """
    new = [line for line in parse_lines("\n".join(map(str.strip, reply.strip().split("\n")))) if line.raw]
    if problem := _check_reply(new, parse_entries(before), redactor):
        return before, problem
    wanted = {line.raw for line in new}
    kept = [line.raw for line in parse_lines(before) if not line.is_entry or line.raw.strip() in wanted]
    known = {raw.strip() for raw in kept}
    added = [line.raw for line in sorted(new, key=lambda line: line.stamp) if line.raw not in known]
    head = "\n".join(kept).rstrip("\n")
    return "\n".join([*([head] if head else []), *added, ""]), ""


def entry_room(text: str, target: int) -> int:
    """Return the bytes available to entries: the target minus the user's lines, at least a quarter of the target."""
    own = byte_size([line for line in parse_lines(text) if not line.is_entry])
    return max(target - own, target // 4)


def parse_entries(text: str) -> list[MemoryLine]:
    return [line for line in parse_lines(text) if line.is_entry]


def byte_size(lines: Sequence[MemoryLine]) -> int:
    """Return the size of lines in the file."""
    return sum(len(line.raw.encode("utf-8", "surrogateescape")) + 1 for line in lines)


def _check_reply(new: Sequence[MemoryLine], old: Sequence[MemoryLine], redactor: Redactor) -> str:
    if not new:
        return "the reply is empty"
    if not all(line.is_entry for line in new):
        return NOT_ENTRIES
    if byte_size(new) >= byte_size(old):
        return NOT_SHORTER
    if not {line.stamp for line in new} <= {line.stamp for line in old}:
        return UNKNOWN_DATES
    if any(line.tag == "PREF" for line in old) and not any(line.tag == "PREF" for line in new):
        return NO_PREFERENCES
    return next((why for line in new if (why := find_secret(line.text, redactor))), "")


def _drop_duplicates(lines: Sequence[MemoryLine]) -> list[MemoryLine]:
    """Drop all but the newest of entries with the same text."""
    newest = {(line.tag, normalize(line.text)): index for index, line in enumerate(lines) if line.is_entry}
    return [
        line
        for index, line in enumerate(lines)
        if not line.is_entry or newest[(line.tag, normalize(line.text))] == index
    ]


def _rank(line: MemoryLine, index: int) -> tuple[int, str, int]:
    """Return the sort key of entries in the order to drop them."""
    return (-TAGS.index(line.tag) if line.tag else 1, line.stamp, index)
