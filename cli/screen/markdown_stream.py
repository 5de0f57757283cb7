"""Streamed Markdown: splits fragments into complete blocks, so that nothing already shown changes."""

from itertools import pairwise

from tooling.contract.lazy_pattern import lazy_pattern

_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")


class MarkdownStream:
    """Takes fragments and returns complete blocks; `pending` is the incomplete rest."""

    def __init__(self) -> None:
        self._text = ""
        self._emitted = 0

    @property
    def pending(self) -> str:
        """Return the text that is not a complete block yet."""
        return self._text[self._emitted :]

    @property
    def is_empty(self) -> bool:
        """Whether no text has arrived."""
        return not self._text

    def feed(self, fragment: str) -> str:
        """Add a fragment and return the blocks it completed, if any."""
        self._text += fragment
        end = self._emitted + _complete_length(self.pending)
        blocks, self._emitted = self._text[self._emitted : end], end
        return blocks

    def finish(self, text: str) -> str | None:
        """Return the part of the final text not yet returned; None if it differs from the streamed text."""
        # The final text has no trailing blank lines, unlike the streamed one.
        emitted = self._text[: self._emitted].rstrip()
        return text[len(emitted) :] if text.startswith(emitted) else None


def split_blocks(text: str) -> list[str]:
    """Split a text into the blocks a stream would return."""
    ends = [0, *_block_ends(text), len(text)]
    return [block for start, end in pairwise(ends) if (block := text[start:end]).strip()]


def _complete_length(text: str) -> int:
    """Return the length of the complete blocks, regardless of the text that follows."""
    return max(_block_ends(text), default=0)


def _block_ends(text: str) -> list[int]:
    """Return the ends of blocks: before an unindented line that follows a blank line or a closed fence."""
    ends: list[int] = []
    position, fence, may_end = 0, "", False
    for line in text.splitlines(keepends=True):
        # An indented line belongs to the list item above it.
        if may_end and not line[0].isspace():
            ends.append(position)
            may_end = False
        position += len(line)
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.endswith("\n") and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence, may_end = "", True
        elif not fence and line.endswith("\n") and not line.strip():
            may_end = True
    return ends
