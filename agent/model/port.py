"""The one door to a model: ask, hear fragments, get the whole reply."""

from collections.abc import AsyncIterator, Mapping
from typing import Literal, Protocol, TypeAlias

from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass

Purpose: TypeAlias = Literal["planner", "step", "composer", "memory", "repair", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model; `purpose` and `step_id` say who asks, for scripts, cassettes and the ledger."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, object], ...] = ()
    purpose: Purpose = "step"
    step_id: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A fragment of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A fragment of the model's thinking; never part of an answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRestarted:
    """The reply broke off and is asked for again: fragments heard so far no longer count."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """The whole reply: last item of every stream that does not raise ModelFault."""

    message: Message
    usage: Usage
    model: str
    finish_reason: str = "stop"


Delta: TypeAlias = TextDelta | ReasoningDelta | StreamRestarted
StreamItem: TypeAlias = Delta | ModelReply


class ModelClient(Protocol):
    """A model that streams; raises only ModelFault (agent.model.faults)."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield fragments, then exactly one ModelReply."""
        ...

    async def close(self) -> None:
        """Give back connections; harmless twice."""
        ...
