"""Messages between the agent and a model, independent of any provider's wire format."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
CONTINUE_PROMPT = "Your reply was cut off at its length limit. Go on exactly where it stopped; repeat nothing."
PAUSE_PROMPT = "Your turn was paused. Go on exactly where it stopped; repeat nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call requested by a model; `problem` is the reason, for the model, why its arguments could not be parsed."""

    id: str
    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation; `images` belong to a user's message or a tool's result.

    `reasoning` and `reasoning_signature` are kept because some providers reject a history without them;
    `reasoning_model` is the model that signed it, the only one that accepts it.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning: str = ""
    reasoning_signature: str | None = None
    reasoning_model: str | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMade:
    """A tool call in a model's message."""

    id: str
    name: str
    input: Mapping[str, object]
