"""The cassette file of recorded model exchanges: a header line, then one exchange per line."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from agent.model.faults import FaultKind, ModelFault
from agent.model.port import ModelReply, ModelRequest, Purpose
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode, encode

HEADER_KEY = "windlass_cassette"
VERSION = 1
NO_OUTCOME = "the exchange has neither reply nor fault"
_HINT = "record the run again with `--record FILE`"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """The parts of a request that identify it on replay."""

    purpose: Purpose
    messages: tuple[Message, ...]
    model: str = ""
    step_id: str | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReply:
    """The reply to a recorded request."""

    message: Message
    usage: Usage = dataclasses.field(default_factory=Usage)
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFault:
    """The fault raised instead of a reply."""

    kind: FaultKind
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedExchange:
    """One request with its reply or fault."""

    request: RecordedRequest
    reply: RecordedReply | None = None
    fault: RecordedFault | None = None


def record_request(request: ModelRequest) -> RecordedRequest:
    """Return a request as the cassette stores it."""
    return RecordedRequest(
        purpose=request.purpose,
        messages=request.messages,
        model=_model_name(request.model),
        step_id=request.step_id,
        tools=tuple(sorted(_tool_name(tool) for tool in request.tools)),
    )


def record_exchange(request: ModelRequest, outcome: ModelReply | ModelFault) -> RecordedExchange:
    """Return a finished call as the cassette stores it."""
    recorded = record_request(request)
    if isinstance(outcome, ModelFault):
        return RecordedExchange(request=recorded, fault=RecordedFault(kind=outcome.kind, detail=outcome.detail))
    reply = RecordedReply(message=outcome.message, usage=outcome.usage, finish_reason=outcome.finish_reason)
    return RecordedExchange(request=recorded, reply=reply)


def header_line() -> str:
    return json.dumps({HEADER_KEY: VERSION})


def encode_without_defaults(value: object) -> object:
    """Encode an exchange, or part of one, as JSON data without fields at their default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {
            f.name: encode_without_defaults(getattr(value, f.name))
            for f in fields
            if getattr(value, f.name) != _default(f)
        }
    if isinstance(value, tuple):
        return [encode_without_defaults(item) for item in value]
    return encode(value)


def read_cassette(path: Path) -> list[RecordedExchange]:
    """Return the recorded exchanges, or raise InputError naming the invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the cassette {path}: {error}", _HINT) from error
    _check_header(lines[0], path)
    return [
        _parse_line(line, f"{path}, line {number}") for number, line in enumerate(lines[1:], start=2) if line.strip()
    ]


def _check_header(line: str, path: Path) -> None:
    try:
        header: object = json.loads(line)
    except json.JSONDecodeError:
        header = None
    version = header.get(HEADER_KEY) if isinstance(header, dict) else None
    if not isinstance(version, int):
        raise InputError(f'{path} is not a cassette: its first line is not {{"{HEADER_KEY}": {VERSION}}}', _HINT)
    if version > VERSION:
        raise InputError(f"{path} has cassette format {version}; this version supports up to {VERSION}", _HINT)


def _parse_line(line: str, location: str) -> RecordedExchange:
    try:
        exchange = decode(RecordedExchange, json.loads(line), extra="ignore")
    except (DecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{location}: {error}", _HINT) from error
    if exchange.reply is None and exchange.fault is None:
        raise InputError(f"{location}: {NO_OUTCOME}", _HINT)
    return exchange


def _default(field: dataclasses.Field[object]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _tool_name(tool: Mapping[str, object]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, Mapping) else tool).get("name", ""))


def _model_name(model: str) -> str:
    """Return the model name, for a script without its folder: paths of the recording machine are private."""
    return f"script:{model.rpartition('/')[2]}" if model.startswith("script:") else model
