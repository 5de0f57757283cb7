"""The scripted model `script:FILE`: replies from a file, for tests, CI and demos."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import field
from functools import partial
from itertools import chain
from pathlib import Path

from agent.model.faults import FaultKind, ModelFault
from agent.model.port import ModelRequest, Purpose, StreamItem
from agent.model.reply.reply_builder import ReplyBuilder
from agent.vocabulary.errors import InputError
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode

_EXCERPT_CHARS = 80
EMPTY_REPLY = "the reply is empty; give it text, reasoning, tool_calls or fault"
NO_LINES_LEFT = "all lines are used up"
_HINT = "see docs/scripts.md for the fields of a script"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptMatch:
    """Conditions for the requests that a line replies to; unset fields match any."""

    purpose: Purpose | None = None
    step: str | None = None
    contains: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCall:
    """A tool call of a scripted reply; arguments given as text are parsed like a model's."""

    name: str
    arguments: object = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptReply:
    """One line of a script."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ScriptCall, ...] = ()
    match: ScriptMatch | None = None
    repeat: bool = False
    delay_ms: int = 0
    chunk_delay_ms: int = 0
    chunks: int = 3
    fault: FaultKind | None = None
    detail: str = ""
    retry_after_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""


class ScriptedModel:
    """Replies with the lines of a script; fails if none matches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._remaining = read_script(path)
        self._request_count = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        """Yield the fragments and the reply of the first line that matches the request."""
        number, reply = self._next_reply(request)
        builder = _builder(request, reply)
        await asyncio.sleep(reply.delay_ms / 1000)
        parts = [partial(builder.add_reasoning, part) for part in split_text(reply.reasoning, reply.chunks)]
        parts += [partial(builder.add_text, part) for part in split_text(reply.text, reply.chunks)]
        for index, call in enumerate(reply.tool_calls):
            id = call.id or f"call_{number}_{self._request_count}_{index}"
            parts.append(partial(builder.add_call, str(index), id=id, name=call.name))
            for part in split_text(_arguments(call), reply.chunks):
                parts.append(partial(builder.add_call, str(index), arguments=part))
        for index, add in enumerate(parts):
            if index:
                await asyncio.sleep(reply.chunk_delay_ms / 1000)
            for fragment in add():
                yield fragment
        if reply.fault:
            detail = reply.detail or f"scripted in line {number} of {self._path.name}"
            raise ModelFault(reply.fault, detail, retry_after_s=reply.retry_after_s)
        for fragment in builder.flush():
            yield fragment
        yield builder.build()

    async def close(self) -> None:
        """Do nothing: a script has no connection."""

    def _next_reply(self, request: ModelRequest) -> tuple[int, ScriptReply]:
        self._request_count += 1
        lines = self._remaining.items()
        # Lazily: a script may have thousands of lines, and usually one of the first matches.
        matching = (number for number, reply in lines if reply.match and _matches(reply.match, request))
        in_order = (number for number, reply in lines if reply.match is None)
        number = next(chain(matching, in_order), None)
        if number is None:
            raise ModelFault("script", self._no_match_message(request))
        reply = self._remaining[number]
        if not reply.repeat:
            del self._remaining[number]
        return number, reply

    def _no_match_message(self, request: ModelRequest) -> str:
        step = f", step {request.step_id}" if request.step_id else ""
        last = f"last message {_excerpt(_last_message(request))}"
        left = "; ".join(f"line {number} {_describe(reply)}" for number, reply in self._remaining.items())
        return (
            f"request {self._request_count} ({request.purpose}{step}, {last}) matches no line in {self._path}; "
            f"{f'unused lines: {left}' if left else NO_LINES_LEFT}"
        )


def read_script(path: Path) -> dict[int, ScriptReply]:
    """Return the replies of a script by line number, or raise InputError naming the invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the script {path}: {error}", _HINT) from error
    replies: dict[int, ScriptReply] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            replies[number] = _parse_line(line, f"{path}, line {number}")
    return replies


def _parse_line(line: str, location: str) -> ScriptReply:
    try:
        data: object = json.loads(line)
        reply = decode(ScriptReply, data)
    except (DecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{location}: {error}", _HINT) from error
    if not (isinstance(data, dict) and data.keys() & {"text", "reasoning", "tool_calls", "fault"}):
        raise InputError(f"{location}: {EMPTY_REPLY}", _HINT)
    return reply


def _matches(match: ScriptMatch, request: ModelRequest) -> bool:
    return (
        match.purpose in (None, request.purpose)
        and match.step in (None, request.step_id)
        and (match.contains is None or _contains(_last_message(request), match.contains))
    )


def _contains(text: str, wanted: str) -> bool:
    if wanted in text:
        return True
    try:
        return re.search(wanted, text) is not None
    except re.error:
        return False


def _last_message(request: ModelRequest) -> str:
    messages = (message for message in reversed(request.messages) if message.role in ("user", "tool"))
    return next((message.content for message in messages), "")


def split_text(text: str, chunks: int) -> Iterator[str]:
    """Yield a text in at most `chunks` parts of equal size."""
    size = max(1, -(-len(text) // max(1, chunks)))
    return (text[start : start + size] for start in range(0, len(text), size))


def _builder(request: ModelRequest, reply: ScriptReply) -> ReplyBuilder:
    """Return a builder that treats the script like a provider's reply: it finds reasoning and calls in the text."""
    builder = ReplyBuilder(request, lambda model, usage: usage.cost_usd)
    builder.usage = reply.usage
    builder.finish_reason = reply.finish_reason
    return builder


def _arguments(call: ScriptCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _describe(reply: ScriptReply) -> str:
    if reply.match is None:
        return _excerpt(reply.text or (reply.tool_calls[0].name if reply.tool_calls else reply.fault or ""))
    given = (("purpose", reply.match.purpose), ("step", reply.match.step), ("contains", reply.match.contains))
    return "for " + ", ".join(f"{name} {value}" for name, value in given if value is not None)


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= _EXCERPT_CHARS else flat[: _EXCERPT_CHARS - 1] + "…")
