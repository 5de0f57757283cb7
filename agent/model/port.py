"""The model port: send a request, receive fragments, then the complete reply."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from types import TracebackType
from typing import Literal, Protocol, TypeAlias

from agent.config.settings import Reasoning
from agent.vocabulary.message import CONTINUE_PROMPT, PAUSE_PROMPT, Message
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass

# Model and usage → cost in USD, None if unknown.
CostFunction: TypeAlias = Callable[[str, Usage], float | None]
# The finish reason of a reply that ended at its length limit.
CUT_OFF = "length"
# The finish reason of a turn that the provider interrupted: it goes on when it gets back what was said so far.
PAUSED = "pause"
# How often a reply is continued after such an end.
MAX_CONTINUATIONS = {CUT_OFF: 1, PAUSED: 5}
Purpose: TypeAlias = Literal[
    "planner", "lead", "step", "composer", "memory", "repair", "summary", "reviewer", "aside", "sampling"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model; scripts, cassettes and the budget use `purpose` and `step_id`.

    `image_data` has the bytes of the messages' images by their hash, as base64; it is filled in when a request is sent.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, object], ...] = ()
    purpose: Purpose = "step"
    step_id: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning: Reasoning | None = None
    # Maximum number of retries after faults; None means that of the settings.
    max_retries: int | None = None
    # Shared by requests with a common prefix, such as those of a session.
    cache_key: str | None = None
    image_data: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A fragment of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A fragment of the model's thinking; never part of an answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDelta:
    """A fragment of a tool call: `text` continues the JSON of its arguments, empty when the call starts.

    `index` is the position of the call in the reply; `name` is known from the first fragment on, unless the provider
    sends it late.
    """

    index: int
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRestarted:
    """The reply was interrupted and the request is retried: discard the fragments received so far."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """The complete reply: the last item of every stream that does not raise ModelFault."""

    message: Message
    usage: Usage
    model: str
    finish_reason: str = "stop"

    @property
    def is_incomplete(self) -> bool:
        """Whether the text ends in the middle, so that it is no answer yet."""
        return self.finish_reason in MAX_CONTINUATIONS

    @property
    def continue_prompt(self) -> str:
        """What lets the model continue an incomplete reply."""
        return PAUSE_PROMPT if self.finish_reason == PAUSED else CONTINUE_PROMPT


Delta: TypeAlias = TextDelta | ReasoningDelta | CallDelta | StreamRestarted
StreamItem: TypeAlias = Delta | ModelReply


class ModelClient(Protocol):
    """A client that streams replies; raises only ModelFault (agent.model.faults)."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield fragments, then exactly one ModelReply."""
        ...

    async def close(self) -> None:
        """Release connections; may be called twice."""
        ...


class closing_stream:  # noqa: N801 (used like `contextlib.aclosing`)
    """Close a stream at the end of the block instead of at garbage collection; not every iterator can be closed."""

    # Not a generator with `asynccontextmanager`: every reply passes several of them.
    __slots__ = ("_items",)

    def __init__(self, items: AsyncIterator[StreamItem]) -> None:
        self._items = items

    async def __aenter__(self) -> AsyncIterator[StreamItem]:
        return self._items

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if close := getattr(self._items, "aclose", None):
            await close()
