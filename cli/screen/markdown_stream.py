"""Markdown that arrives in fragments: blocks are let go when they are whole, so that nothing shown ever changes."""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownStream:
    """Feed fragments, get whole blocks; `rest` is what is still being written."""

    def __init__(self) -> None:
        self._text = ""
        self._given = 0

    @property
    def rest(self) -> str:
        """Return the block that is not whole yet."""
        return self._text[self._given :]

    @property
    def is_empty(self) -> bool:
        """Say whether nothing has arrived."""
        return not self._text

    def feed(self, fragment: str) -> str:
        """Return the blocks that this fragment completed, empty when there are none."""
        self._text += fragment
        end = self._given + _whole(self.rest)
        blocks, self._given = self._text[self._given : end], end
        return blocks

    def finish(self, whole: str) -> str | None:
        """Return what is missing of the whole text, or None when other words were shown: then it must be shown anew."""
        # An answer is told without the blank lines it may have ended with.
        given = self._text[: self._given].rstrip()
        return whole[len(given) :] if whole.startswith(given) else None


def _whole(text: str) -> int:
    """Return how much of a text ends with a blank line outside a fenced block."""
    end = place = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        place += len(line)
        if not line.endswith("\n"):
            break
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
            end = place
        elif not fence and not line.strip():
            end = place
    return end
