"""Lines of the memory: entries in our format, and everything else, which is the user's and never lost.

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
# Most important first: compaction drops entries from the end of this list.
TAGS: tuple[Tag, ...] = get_args(Tag)
MAX_ENTRY_CHARS = 500

# Not compiled: a run with an empty memory does not need it.
_ENTRY = r"- (\d{4}-\d{2}-\d{2} \d{2}:\d{2}): (?:\[(PREF|DECISION|CONFIG|AGREEMENT)\] )?(\S.*)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """One line of the file, parsed if it is an entry or a note.

    A line without a date has the `stamp` of the line before it. An entry continued on indented lines was edited by the
    user: it has text, but no tag and no reliable date.
    """

    raw: str
    stamp: str = ""
    tag: Tag | None = None
    text: str = ""
    is_dated: bool = False

    @property
    def is_entry(self) -> bool:
        """Whether compaction may shorten or drop this line."""
        return self.tag is not None


def parse_lines(text: str) -> list[MemoryLine]:
    """Return the lines of a memory in order; joined with newlines they give the text again."""
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
    """Yield the lines with text."""
    return (line for line in lines if line.text)


def format_entry(text: str, *, tag: Tag | None, now: datetime) -> str:
    """Return the line to store for a text, or raise InputError if it is empty or too long."""
    words = to_one_line(text)
    if not words:
        raise InputError("an empty text cannot be remembered")
    if len(words) > MAX_ENTRY_CHARS:
        raise InputError(
            f"an entry of {len(words)} characters is too long; the maximum is {MAX_ENTRY_CHARS}",
            "shorten it, or split it into several entries",
        )
    return f"- {now:%Y-%m-%d %H:%M}: {f'[{tag}] ' if tag else ''}{words}"


def to_one_line(text: str) -> str:
    """Return a text on one line, without control characters and without leading tags."""
    words = " ".join(sanitize_output(text).split())
    while (start := next((f"[{tag}]" for tag in TAGS if words.startswith(f"[{tag}]")), "")) or words.startswith("- "):
        words = words.removeprefix(start or "- ").strip()
    return words


def normalize(text: str) -> str:
    """Return a text for comparison: without case, punctuation and spacing."""
    return "".join(char for char in text.casefold() if char.isalnum()) or text.strip()


def is_known(lines: Iterable[MemoryLine], line: MemoryLine) -> bool:
    """Return whether the same text is already remembered under the same tag."""
    wanted = (line.tag, normalize(line.text))
    return any((other.tag, normalize(other.text)) == wanted for other in non_blank(lines))
