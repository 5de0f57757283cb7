"""Shorter texts of a memory: entries given up by priority, or a model's list put in their place."""

from collections.abc import Sequence

from agent.memory.entries import TAGS, MemoryLine, normalize, parse_lines
from agent.memory.privacy import find_secret
from tooling.safety.secrets.redact import Redactor


def drop_by_priority(text: str, target: int) -> str:
    """Return the text without repeated entries and, while it is too long, without the least important, oldest ones."""
    lines = _drop_duplicates(parse_lines(text))
    room = entry_room(text, target)
    size = byte_size([line for line in lines if line.is_entry])
    dropped: set[int] = set()
    for place in sorted(range(len(lines)), key=lambda place: _rank(lines[place], place)):
        if size <= room:
            break
        if lines[place].is_entry:
            dropped.add(place)
            size -= byte_size([lines[place]])
    return "\n".join(line.raw for place, line in enumerate(lines) if place not in dropped)


def apply_reply(before: str, reply: str, redactor: Redactor) -> tuple[str, str]:
    """Return the text with a model's entries in place of its own, or unchanged and what is wrong with the reply.

    Entries that the model left as they are stay in their places; new ones stand at the end.
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
    """Return the bytes that entries may take; the person's own lines never leave them less than a quarter."""
    own = byte_size([line for line in parse_lines(text) if not line.is_entry])
    return max(target - own, target // 4)


def parse_entries(text: str) -> list[MemoryLine]:
    """Return the entries of a text."""
    return [line for line in parse_lines(text) if line.is_entry]


def byte_size(lines: Sequence[MemoryLine]) -> int:
    """Return what lines take in the file."""
    return sum(len(line.raw.encode("utf-8", "surrogateescape")) + 1 for line in lines)


def _check_reply(new: Sequence[MemoryLine], old: Sequence[MemoryLine], redactor: Redactor) -> str:
    if not new:
        return "the reply is empty"
    if not all(line.is_entry for line in new):
        return "the reply is not in the form of entries"
    if byte_size(new) >= byte_size(old):
        return "the reply is not shorter"
    if not {line.stamp for line in new} <= {line.stamp for line in old}:
        return "the reply has dates of its own"
    if any(line.tag == "PREF" for line in old) and not any(line.tag == "PREF" for line in new):
        return "the reply has lost every preference"
    return next((why for line in new if (why := find_secret(line.text, redactor))), "")


def _drop_duplicates(lines: Sequence[MemoryLine]) -> list[MemoryLine]:
    """Return the lines with only the newest of entries that say the same."""
    newest = {(line.tag, normalize(line.text)): place for place, line in enumerate(lines) if line.is_entry}
    return [
        line
        for place, line in enumerate(lines)
        if not line.is_entry or newest[(line.tag, normalize(line.text))] == place
    ]


def _rank(line: MemoryLine, place: int) -> tuple[int, str, int]:
    """Return the order in which entries are given up."""
    return (-TAGS.index(line.tag) if line.tag else 1, line.stamp, place)
