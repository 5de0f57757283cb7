"""Unified diffs for the screen: colored, with line numbers instead of hunk headers."""

from collections.abc import Iterator

from cli.screen.colors import Paint, Tone
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

_HUNK = lazy_pattern(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_GAP = "⋮"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a diff; the gutter has its sign and number, for a removed line the number it had before."""

    tone: Tone
    gutter: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    tone: Tone
    text: str
    number: int = 0
    sign: str = ""


def diff_lines(diff: str) -> list[DiffLine]:
    """Return the lines of a diff; each of several files is introduced by its name, a single one is not."""
    rows = list(_rows(diff.removesuffix("\n").split("\n")))
    if sum(row.tone == "strong" for row in rows) == 1:
        rows = [row for row in rows if row.tone != "strong"]
    width = max((len(str(row.number)) for row in rows), default=0)
    return [DiffLine(tone=row.tone, gutter=_gutter(row, width), text=row.text) for row in rows]


def color_diff(diff: str, paint: Paint) -> str:
    """Color the complete diff of one file, including its header."""
    head, separator, body = diff.partition("\n@@")
    painted = [paint("strong", line) for line in head.split("\n")]
    painted += [paint(_tone(line), line) for line in f"{separator}{body}"[1:].split("\n")] if separator else []
    return "\n".join(painted)


def _rows(lines: list[str]) -> Iterator[_Row]:
    """Yield the rows; an apparent header inside a hunk is a changed line, so the hunk's lines are counted."""
    old = new = old_left = new_left = 0
    is_first_hunk, removed_name = True, ""
    for line in lines:
        hunk = None if old_left or new_left else _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if not is_first_hunk:
                yield _Row(tone="quiet", text=_GAP)
            is_first_hunk = False
        elif old_left and line.startswith("-"):
            yield _Row(tone="removed", text=line[1:], number=old, sign="-")
            old, old_left = old + 1, old_left - 1
        elif new_left and line.startswith("+"):
            yield _Row(tone="added", text=line[1:], number=new, sign="+")
            new, new_left = new + 1, new_left - 1
        elif (old_left or new_left) and (not line or line[0] == " "):
            yield _Row(tone="quiet", text=line[1:], number=new, sign=" ")
            old, new, old_left, new_left = old + 1, new + 1, max(0, old_left - 1), max(0, new_left - 1)
        elif line.startswith(("--- ", "+++ ")):
            is_first_hunk = True
            if line.startswith("--- "):
                removed_name = line[4:]
            else:
                name = removed_name if line[4:] == "/dev/null" else line[4:]
                yield _Row(tone="strong", text=name.removeprefix("a/").removeprefix("b/"))
        else:
            # "No newline at end of file", binary files, a truncated diff.
            yield _Row(tone="quiet", text=line.removeprefix("\\ "), sign=" ")


def _gutter(row: _Row, width: int) -> str:
    return f"{row.number or '':>{width}} {row.sign} " if row.sign else ""


def _tone(line: str) -> Tone:
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
