"""Thinking that a model writes into its text between tags, told apart from the answer.

A block counts at the start of a message or right behind another block; anywhere else a tag is text, because
answers about such tags exist. Some servers swallow the opening tag: a closing tag alone on its line, outside
of code, then ends the thinking. That is known only when it comes, so fragments already heard were called text.
"""

import re
from typing import Literal, TypeAlias

Fragment: TypeAlias = tuple[Literal["text", "reasoning"], str]

_NAMES = ("think", "thinking", "reasoning")
_LONE_CLOSING = re.compile(rf"^[ \t]*</(?:{'|'.join(_NAMES)})>[ \t]*$", re.MULTILINE)
_CODE_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and the thinking of a whole message."""
    tags = ThinkingFilter()
    fragments = [*tags.feed(text), *tags.flush()]
    answer = "".join(part for kind, part in fragments if kind == "text")
    thinking = "".join(part for kind, part in fragments if kind == "reasoning")
    closing = _LONE_CLOSING.search(answer)
    if not thinking and closing and len(_CODE_FENCE.findall(answer, 0, closing.start())) % 2 == 0:
        answer, thinking = answer[closing.end() :].lstrip(), answer[: closing.start()]
    return answer, thinking.strip()


class ThinkingFilter:
    """Tells thinking from answer while the text arrives in fragments, wherever the tags are torn apart."""

    def __init__(self) -> None:
        self._buffer = ""
        self._closing_tag = ""
        self._state: Literal["start", "inside", "answer"] = "start"
        self._blocks = 0
        self._block_is_empty = True

    def feed(self, text: str) -> list[Fragment]:
        """Take a fragment; return what is certain by now."""
        self._buffer += text
        fragments: list[Fragment] = []
        while self._advance(fragments):
            pass
        return fragments

    def flush(self) -> list[Fragment]:
        """Return what was held back, at the end of the message."""
        fragments: list[Fragment] = []
        if self._state == "inside":
            self._add_reasoning(self._buffer, fragments)
        elif self._buffer and not (self._blocks and self._buffer.isspace()):
            fragments.append(("text", self._buffer))
        self._buffer = ""
        return fragments

    def _advance(self, fragments: list[Fragment]) -> bool:
        if self._state == "start":
            return self._read_start()
        if self._state == "inside":
            return self._read_block(fragments)
        if self._buffer:
            fragments.append(("text", self._buffer))
            self._buffer = ""
        return False

    def _read_start(self) -> bool:
        bare = self._buffer.lstrip()
        for name in _NAMES:
            if bare.startswith(f"<{name}>"):
                self._buffer, self._closing_tag = bare.removeprefix(f"<{name}>"), f"</{name}>"
                self._state, self._block_is_empty = "inside", True
                return True
        if any(f"<{name}>".startswith(bare) for name in _NAMES):
            return False
        self._state = "answer"
        self._buffer = bare if self._blocks else self._buffer
        return True

    def _read_block(self, fragments: list[Fragment]) -> bool:
        thought, closing, rest = self._buffer.partition(self._closing_tag)
        if closing:
            self._add_reasoning(thought, fragments)
            self._buffer, self._state = rest, "start"
            self._blocks += 1
            return True
        torn = _partial_tag_length(self._buffer, self._closing_tag)
        self._add_reasoning(self._buffer[: len(self._buffer) - torn], fragments)
        self._buffer = self._buffer[len(self._buffer) - torn :]
        return False

    def _add_reasoning(self, text: str, fragments: list[Fragment]) -> None:
        if self._block_is_empty:
            text = text.lstrip()
            text = "\n" + text if text and self._blocks else text
        if text:
            fragments.append(("reasoning", text))
            self._block_is_empty = False


def _partial_tag_length(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
