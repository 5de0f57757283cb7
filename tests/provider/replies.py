"""Scripted replies of the provider, independent of the wire format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["openai", "anthropic"]
Arguments: TypeAlias = Mapping[str, object] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds the provider takes before each phase of a reply."""

    head_s: float = 0.0
    first_s: float = 0.0
    between_s: float = 0.0
    end_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The usage a reply reports."""

    prompt: int = 100
    completion: int = 10
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A complete reply; arguments given as text are sent unchanged, even if they are invalid."""

    text: str = ""
    reasoning: str = ""
    signature: str = ""
    calls: tuple[tuple[str, Arguments], ...] = ()
    finish: Literal["", "stop", "length", "content_filter"] = ""
    usage: Tokens | None = field(default_factory=Tokens)
    pace: Pace | None = None
    fragment_chars: int = 12
    ignores_stream: bool = False


class Text(Reply):
    """A reply that is only text."""

    def __init__(self, text: str, *, reasoning: str = "", pace: Pace | None = None) -> None:
        super().__init__(text=text, reasoning=reasoning, pace=pace)


class Calls(Reply):
    """A reply that calls tools: `Calls(("run_command", {"command": "true"}))`."""

    def __init__(self, *calls: tuple[str, Arguments], text: str = "", pace: Pace | None = None) -> None:
        super().__init__(calls=calls, text=text, pace=pace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Send nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing until the client disconnects."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection with a TCP reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlives:
    """Send nothing but comments until the client disconnects."""

    every_s: float = 0.02


ResponsePart: TypeAlias = bytes | Pause | Hang | Reset | KeepAlives


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One HTTP response, part by part; `before` is played before the headers."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"
    before: tuple[ResponsePart, ...] = ()
    parts: tuple[ResponsePart, ...] = ()


def split_text(text: str, size: int) -> list[str]:
    """Split text into the fragments of a stream."""
    return [text[at : at + size] for at in range(0, len(text), size)]
