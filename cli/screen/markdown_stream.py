"""Markdown that arrives in fragments: blocks are let go when they are whole, so that nothing shown ever changes."""

import re
from itertools import pairwise

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownStream:
    """Feed fragments, get whole blocks; `rest` is what is still being written."""

    def __init__(self) -> None:
        self._text = ""
        self._emitted = 0

    @property
    def pending(self) -> str:
        """Return the block that is not whole yet."""
        return self._text[self._emitted :]

    @property
    def is_empty(self) -> bool:
        """Say whether nothing has arrived."""
        return not self._text

    def feed(self, fragment: str) -> str:
        """Return the blocks that this fragment completed, empty when there are none."""
        self._text += fragment
        end = self._emitted + _complete_length(self.pending)
        blocks, self._emitted = self._text[self._emitted : end], end
        return blocks

    def finish(self, whole: str) -> str | None:
        """Return what is missing of the whole text, or None when other words were shown: then it must be shown anew."""
        # An answer is told without the blank lines it may have ended with.
        given = self._text[: self._emitted].rstrip()
        return whole[len(given) :] if whole.startswith(given) else None


def split_blocks(text: str) -> list[str]:
    """Return a text as the blocks that it is let go in."""
    ends = [0, *_block_ends(text), len(text)]
    return [block for start, end in pairwise(ends) if (block := text[start:end]).strip()]


def _complete_length(text: str) -> int:
    """Return how much of a text is whole, whatever comes next."""
    return max(_block_ends(text), default=0)


def _block_ends(text: str) -> list[int]:
    """Return where blocks end: before a line that is not indented, after a blank one or a fence that was closed."""
    ends: list[int] = []
    place, fence, may_end = 0, "", False
    for line in text.splitlines(keepends=True):
        # What is indented belongs to the item of a list above it.
        if may_end and not line[0].isspace():
            ends.append(place)
            may_end = False
        place += len(line)
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.endswith("\n") and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence, may_end = "", True
        elif not fence and line.endswith("\n") and not line.strip():
            may_end = True
    return ends
