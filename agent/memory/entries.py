"""The lines of a memory: entries of our own form, and everything else, which belongs to the person and is never lost.

An entry is `- YYYY-MM-DD HH:MM: [TAG] text`; a note is the same without a tag.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, TypeAlias, get_args

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.output import sanitize_output

Tag: TypeAlias = Literal["PREF", "DECISION", "CONFIG", "AGREEMENT"]
# The most important first: what must go when there is no room goes from the end of this.
TAGS: tuple[Tag, ...] = get_args(Tag)
MAX_ENTRY_CHARS = 500

# Kept as text: a run whose memory is empty never compiles it.
_ENTRY = r"- (\d{4}-\d{2}-\d{2} \d{2}:\d{2}): (?:\[(PREF|DECISION|CONFIG|AGREEMENT)\] )?(\S.*)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """One line of the file as it stands there, and what it says when it is an entry or a note.

    `stamp` of a line without a date is that of the line before it. An entry that goes on in further, indented lines is
    the person's own: it has text, but no tag and no date that we may rely on.
    """

    raw: str
    stamp: str = ""
    tag: Tag | None = None
    text: str = ""
    is_dated: bool = False

    @property
    def is_entry(self) -> bool:
        """Say whether this is one of our entries, which compaction may shorten or drop."""
        return self.tag is not None


def parse_lines(text: str) -> list[MemoryLine]:
    """Return the lines of a memory in order; joined with newlines they are the text again."""
    raws = text.split("\n")
    lines: list[MemoryLine] = []
    stamp = ""
    for raw, following in zip(raws, [*raws[1:], ""], strict=True):
        found = re.fullmatch(_ENTRY, raw.rstrip())
        if found and not (following[:1] in (" ", "\t") and following.strip()):
            stamp, tag = found[1], next((known for known in TAGS if known == found[2]), None)
            lines.append(MemoryLine(raw=raw, stamp=stamp, tag=tag, text=found[3], is_dated=True))
        else:
            lines.append(MemoryLine(raw=raw, stamp=stamp, text=raw.strip()))
    return lines


def non_blank(lines: Iterable[MemoryLine]) -> Iterator[MemoryLine]:
    """Return the lines that say something."""
    return (line for line in lines if line.text)


def format_entry(text: str, *, tag: Tag | None, now: datetime) -> str:
    """Return a text as the line that is stored; one that cannot be one is an InputError."""
    words = to_one_line(text)
    if not words:
        raise InputError("there is nothing to remember in an empty text")
    if len(words) > MAX_ENTRY_CHARS:
        raise InputError(
            f"{len(words)} characters are too many for one entry; at most {MAX_ENTRY_CHARS}",
            "remember the essence, or several entries",
        )
    return f"- {now:%Y-%m-%d %H:%M}: {f'[{tag}] ' if tag else ''}{words}"


def to_one_line(text: str) -> str:
    """Return a text on one line, without control characters, and without what would look like a tag of its own."""
    words = " ".join(sanitize_output(text).split())
    while (start := next((f"[{tag}]" for tag in TAGS if words.startswith(f"[{tag}]")), "")) or words.startswith("- "):
        words = words.removeprefix(start or "- ").strip()
    return words


def normalize(text: str) -> str:
    """Return what makes two texts the same to a reader: no case, no punctuation, no spacing."""
    return "".join(mark for mark in text.casefold() if mark.isalnum()) or text.strip()


def is_known(lines: Iterable[MemoryLine], line: MemoryLine) -> bool:
    """Say whether the same is remembered already, under the same tag."""
    wanted = (line.tag, normalize(line.text))
    return any((other.tag, normalize(other.text)) == wanted for other in non_blank(lines))
