"""Compaction of a conversation as data: it is logged, so that a resumed conversation is shortened the same way."""

from collections.abc import Sequence
from dataclasses import replace

from agent.vocabulary.message import Message
from tooling.contract.fast_dataclass import dataclass

SUMMARY_PREFIX = "(What was said and done before, in short:)\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortenedResult:
    """A tool result and the line that replaces it, which says how to get it back."""

    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Results to shorten, and the messages from `start` to before `end` that `summary` replaces.

    Positions refer to the original conversation. Only whole turns are replaced: a call and its result stay together.
    """

    shortened: tuple[ShortenedResult, ...] = ()
    start: int = 0
    end: int = 0
    summary: str = ""

    def apply(self, messages: Sequence[Message]) -> list[Message]:
        """Return the shortened conversation; positions that do not exist are ignored."""
        kept = list(messages)
        for result in self.shortened:
            if result.index < len(kept) and kept[result.index].role == "tool":
                kept[result.index] = replace(kept[result.index], content=result.text, images=())
        if self.start < self.end <= len(kept):
            kept[self.start : self.end] = [Message(role="user", content=self.summary)]
        return kept
