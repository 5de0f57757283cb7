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
        self._held = ""
        self._closing = ""
        self._state: Literal["start", "inside", "answer"] = "start"
        self._blocks = 0
        self._block_is_empty = True

    def feed(self, text: str) -> list[Fragment]:
        """Take a fragment; return what is certain by now."""
        self._held += text
        fragments: list[Fragment] = []
        while self._advance(fragments):
            pass
        return fragments

    def flush(self) -> list[Fragment]:
        """Return what was held back, at the end of the message."""
        fragments: list[Fragment] = []
        if self._state == "inside":
            self._say_reasoning(self._held, fragments)
        elif self._held and not (self._blocks and self._held.isspace()):
            fragments.append(("text", self._held))
        self._held = ""
        return fragments

    def _advance(self, fragments: list[Fragment]) -> bool:
        if self._state == "start":
            return self._begin()
        if self._state == "inside":
            return self._think(fragments)
        if self._held:
            fragments.append(("text", self._held))
            self._held = ""
        return False

    def _begin(self) -> bool:
        bare = self._held.lstrip()
        for name in _NAMES:
            if bare.startswith(f"<{name}>"):
                self._held, self._closing = bare.removeprefix(f"<{name}>"), f"</{name}>"
                self._state, self._block_is_empty = "inside", True
                return True
        if any(f"<{name}>".startswith(bare) for name in _NAMES):
            return False
        self._state = "answer"
        self._held = bare if self._blocks else self._held
        return True

    def _think(self, fragments: list[Fragment]) -> bool:
        thought, closing, rest = self._held.partition(self._closing)
        if closing:
            self._say_reasoning(thought, fragments)
            self._held, self._state = rest, "start"
            self._blocks += 1
            return True
        torn = _torn_end(self._held, self._closing)
        self._say_reasoning(self._held[: len(self._held) - torn], fragments)
        self._held = self._held[len(self._held) - torn :]
        return False

    def _say_reasoning(self, text: str, fragments: list[Fragment]) -> None:
        if self._block_is_empty:
            text = text.lstrip()
            text = "\n" + text if text and self._blocks else text
        if text:
            fragments.append(("reasoning", text))
            self._block_is_empty = False


def _torn_end(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
