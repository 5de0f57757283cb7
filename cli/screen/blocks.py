"""Blocks of lines in the scrollback: separated by blank lines, long ones folded."""

from collections import deque
from collections.abc import Callable, Sequence

from cli.screen.colors import Paint, Tone, clip_line, wrap
from tooling.contract.fast_dataclass import dataclass

_MAX_FOLDED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedOutput:
    """A text that the transcript shows only in part."""

    title: str
    text: str


class BlockWriter:
    """Writes blocks; short ones of the same group stay together, all others are separated by a blank line."""

    def __init__(self, *, write: Callable[[str], None], width: Callable[[], int], paint: Paint) -> None:
        self._write = write
        self._width = width
        self._paint = paint
        self._group = ""
        self._owner = ""
        self._was_long = False

    def start(self, group: str = "") -> None:
        """Reset; the next block follows one of this group, or nothing if it is empty."""
        self._group, self._owner, self._was_long = group, "", False

    def follow(self, group: str) -> None:
        """Record a block of this group that was written elsewhere; blocks that belong to it follow directly."""
        self._group, self._owner, self._was_long = group, group, True

    def separate(self, group: str) -> str:
        """Return the blank line before a block that is written elsewhere."""
        before, self._group, self._owner, self._was_long = self._group, group, "", False
        return "\n" if before else ""

    def block(self, group: str, lines: Sequence[str], *, owner: str = "", is_end: bool = False) -> None:
        """Write a block; the final block of an owner stays with the owner's others."""
        if not lines:
            return
        is_long = len(lines) > 1
        closes = is_end and owner == self._owner
        is_apart = group != self._group or ((is_long or self._was_long) and not closes)
        blank = "\n" if self._group and is_apart else ""
        self._group, self._owner, self._was_long = group, owner, is_long or (closes and self._was_long)
        self._write(blank + "".join(f"{line}\n" for line in lines))

    def clipped(self, tone: Tone, text: str) -> str:
        """Return a line that fits the window."""
        return self._paint(tone, clip_line(text, self._width()))

    def wrapped(self, tone: Tone, text: str) -> list[str]:
        """Return the complete text, wrapped with a hanging indent if it is too long."""
        return [self._paint(tone, line) for line in wrap_hanging(text, self._width())]


class Folds:
    """The partly shown texts, newest last, and the note that says how to see the rest."""

    def __init__(self, hint: str) -> None:
        self._hint = hint
        self.texts: deque[FoldedOutput] = deque(maxlen=_MAX_FOLDED)

    def add(self, title: str, text: str) -> str:
        """Store a folded text; return the end of its note."""
        self.texts.append(FoldedOutput(title=title, text=text))
        return self._hint


def split_fold(count: int, *, head: int, tail: int) -> tuple[int, int]:
    """Return the range of hidden lines of a long text; hiding a single line would not save space."""
    return (head, count - tail) if count - head - tail > 1 else (count, count)


def wrap_hanging(text: str, width: int, indent: str = "  ") -> list[str]:
    """Wrap text, indenting all lines but the first."""
    lines = wrap(text, width)
    if len(lines) == 1:
        return lines
    first, *rest = wrap(text, width - len(indent))
    return [first, *(f"{indent}{line}" for line in rest)]
