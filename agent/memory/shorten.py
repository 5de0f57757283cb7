"""Shorter texts of a memory: entries given up by priority, or a model's list put in their place."""

from collections.abc import Sequence

from agent.memory.entries import TAGS, Line, lines_of, normalised
from agent.memory.privacy import secret_in
from tooling.safety.secrets.redact import Redactor


def by_priority(text: str, target: int) -> str:
    """Return the text without repeated entries and, while it is too long, without the least important, oldest ones."""
    lines = _without_repeats(lines_of(text))
    room = room_of(text, target)
    size = bytes_of([line for line in lines if line.is_entry])
    dropped: set[int] = set()
    for place in sorted(range(len(lines)), key=lambda place: _rank(lines[place], place)):
        if size <= room:
            break
        if lines[place].is_entry:
            dropped.add(place)
            size -= bytes_of([lines[place]])
    return "\n".join(line.raw for place, line in enumerate(lines) if place not in dropped)


def with_reply(before: str, reply: str, redactor: Redactor) -> tuple[str, str]:
    """Return the text with a model's entries in place of its own, or unchanged and what is wrong with the reply.

    Entries that the model left as they are stay in their places; new ones stand at the end.
    """
    new = [line for line in lines_of("\n".join(map(str.strip, reply.strip().split("\n")))) if line.raw]
    if problem := _problem_with(new, entries_of(before), redactor):
        return before, problem
    wanted = {line.raw for line in new}
    kept = [line.raw for line in lines_of(before) if not line.is_entry or line.raw.strip() in wanted]
    known = {raw.strip() for raw in kept}
    added = [line.raw for line in sorted(new, key=lambda line: line.stamp) if line.raw not in known]
    head = "\n".join(kept).rstrip("\n")
    return "\n".join([*([head] if head else []), *added, ""]), ""


def room_of(text: str, target: int) -> int:
    """Return the bytes that entries may take; the person's own lines never leave them less than a quarter."""
    own = bytes_of([line for line in lines_of(text) if not line.is_entry])
    return max(target - own, target // 4)


def entries_of(text: str) -> list[Line]:
    """Return the entries of a text."""
    return [line for line in lines_of(text) if line.is_entry]


def bytes_of(lines: Sequence[Line]) -> int:
    """Return what lines take in the file."""
    return sum(len(line.raw.encode("utf-8", "surrogateescape")) + 1 for line in lines)


def _problem_with(new: Sequence[Line], old: Sequence[Line], redactor: Redactor) -> str:
    if not new:
        return "the reply is empty"
    if not all(line.is_entry for line in new):
        return "the reply is not in the form of entries"
    if bytes_of(new) >= bytes_of(old):
        return "the reply is not shorter"
    if not {line.stamp for line in new} <= {line.stamp for line in old}:
        return "the reply has dates of its own"
    if any(line.tag == "PREF" for line in old) and not any(line.tag == "PREF" for line in new):
        return "the reply has lost every preference"
    return next((why for line in new if (why := secret_in(line.text, redactor))), "")


def _without_repeats(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with only the newest of entries that say the same."""
    newest = {(line.tag, normalised(line.text)): place for place, line in enumerate(lines) if line.is_entry}
    return [
        line
        for place, line in enumerate(lines)
        if not line.is_entry or newest[(line.tag, normalised(line.text))] == place
    ]


def _rank(line: Line, place: int) -> tuple[int, str, int]:
    """Return the order in which entries are given up."""
    return (-TAGS.index(line.tag) if line.tag else 1, line.stamp, place)
