"""Separate reasoning that a model writes between tags from the answer.

A block counts only at the start of a message or right after another block; elsewhere a tag is text, because
answers may be about such tags. Some servers drop the opening tag: then a closing tag alone on its line, outside
of code, ends the reasoning. That is known only when it arrives, so earlier fragments were emitted as text.
"""

import re
from typing import Literal, TypeAlias

from tooling.contract.lazy_pattern import lazy_pattern

TaggedText: TypeAlias = tuple[Literal["text", "reasoning"], str]

_NAMES = ("think", "thinking", "reasoning")
_LONE_CLOSING = lazy_pattern(rf"^[ \t]*</(?:{'|'.join(_NAMES)})>[ \t]*$", re.MULTILINE)
_CODE_FENCE = lazy_pattern(r"^[ \t]*```", re.MULTILINE)


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and the reasoning of a complete message."""
    if "<" not in text:
        return text, ""
    tags = ThinkingFilter()
    fragments = [*tags.feed(text), *tags.flush()]
    answer = "".join(part for kind, part in fragments if kind == "text")
    thinking = "".join(part for kind, part in fragments if kind == "reasoning")
    closing = _LONE_CLOSING.search(answer)
    if not thinking and closing and len(_CODE_FENCE.findall(answer, 0, closing.start())) % 2 == 0:
        answer, thinking = answer[closing.end() :].lstrip(), answer[: closing.start()]
    return answer, thinking.strip()


class ThinkingFilter:
    """Separates reasoning from the answer in streamed text, even if a tag is split between fragments."""

    def __init__(self) -> None:
        self._buffer = ""
        self._closing_tag = ""
        # After "answer", all further text is part of it.
        self.state: Literal["start", "inside", "answer"] = "start"
        self._blocks = 0
        self._block_is_empty = True

    def feed(self, text: str) -> list[TaggedText]:
        """Add a fragment; return what can be classified so far."""
        if self.state == "answer":
            return [("text", text)] if text else []
        self._buffer += text
        fragments: list[TaggedText] = []
        while self._advance(fragments):
            pass
        return fragments

    def flush(self) -> list[TaggedText]:
        """Return the text held back, at the end of the message."""
        fragments: list[TaggedText] = []
        if self.state == "inside":
            self._add_reasoning(self._buffer, fragments)
        elif self._buffer and not (self._blocks and self._buffer.isspace()):
            fragments.append(("text", self._buffer))
        self._buffer = ""
        return fragments

    def _advance(self, fragments: list[TaggedText]) -> bool:
        if self.state == "start":
            return self._read_start()
        if self.state == "inside":
            return self._read_block(fragments)
        if self._buffer:
            fragments.append(("text", self._buffer))
            self._buffer = ""
        return False

    def _read_start(self) -> bool:
        bare = self._buffer.lstrip()
        for name in _NAMES if bare.startswith("<") else ():
            if bare.startswith(f"<{name}>"):
                self._buffer, self._closing_tag = bare.removeprefix(f"<{name}>"), f"</{name}>"
                self.state, self._block_is_empty = "inside", True
                return True
        if not bare or (bare.startswith("<") and any(f"<{name}>".startswith(bare) for name in _NAMES)):
            return False
        self.state = "answer"
        self._buffer = bare if self._blocks else self._buffer
        return True

    def _read_block(self, fragments: list[TaggedText]) -> bool:
        thought, closing, rest = self._buffer.partition(self._closing_tag)
        if closing:
            self._add_reasoning(thought, fragments)
            self._buffer, self.state = rest, "start"
            self._blocks += 1
            return True
        partial = _partial_tag_length(self._buffer, self._closing_tag)
        self._add_reasoning(self._buffer[: len(self._buffer) - partial], fragments)
        self._buffer = self._buffer[len(self._buffer) - partial :]
        return False

    def _add_reasoning(self, text: str, fragments: list[TaggedText]) -> None:
        if self._block_is_empty:
            text = text.lstrip()
            text = "\n" + text if text and self._blocks else text
        if text:
            fragments.append(("reasoning", text))
            self._block_is_empty = False


def _partial_tag_length(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may be the start of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
