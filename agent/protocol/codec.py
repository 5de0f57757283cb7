"""Encodes events as JSON lines and decodes them."""

import json
from typing import get_args

from agent.protocol.envelope import Envelope
from agent.protocol.events import Event
from tooling.contract.json_codec import DecodeError, JsonObject, decode, encode
from tooling.contract.json_text import json_encoder

FORMAT = 1
# Larger numbers are damage: no log has so many events, and the next number must be one that every reader can take.
MAX_SEQ = 10**15 - 1
_EVENTS: dict[str, type] = {event.type: event for event in get_args(Event)}
_ENVELOPE_FIELDS = ("seq", "ts", "session_id", "run_id", "step_id", "attempt")
# Optional fields of the event stream, omitted if they are null.
_OPTIONAL = frozenset(
    {
        "diff",
        "scope",
        "edited_command",
        "spent",
        "display",
        "structured_output",
        "resume",
        "resumes",
        "cassette",
        "image",
        "task_id",
        "trace_id",
        "context_window",
        "key",
        "delta",
        "interrupted",
        "plan_only",
        "decided",
        "tool_calls",
        "reasoning",
        "reasoning_signature",
        "reasoning_model",
        "hint",
        "error",
        "missing",
        "effects_in_doubt",
        "call_id",
        "manifest_file",
        "involves",
        "opinion",
        "tool",
        "images",
        "command_id",
        "overlaps",
        "skipped",
        "files",
        "progress",
        "allowed_by",
    }
)
_to_text = json_encoder(ensure_ascii=False)
_OMIT_IF_FALSE = frozenset({"delta", "interrupted", "plan_only", "decided"})


class CodecError(ValueError):
    """A line is not an event of any known format."""


def to_json(envelope: Envelope) -> dict[str, object]:
    """Return the event as one flat JSON object."""
    flat: dict[str, object] = {
        "v": FORMAT,
        "type": envelope.event.type,
        "ts": envelope.ts,
        "seq": envelope.seq,
        "session_id": envelope.session_id,
        "run_id": envelope.run_id,
    }
    if envelope.step_id is not None:
        flat |= {"step_id": envelope.step_id, "attempt": envelope.attempt or 1}
    payload = encode(envelope.event)
    assert isinstance(payload, dict)
    for key, value in payload.items():
        if not ((value is None and key in _OPTIONAL) or (value is False and key in _OMIT_IF_FALSE)):
            flat[key] = value
    return flat


def to_line(envelope: Envelope) -> bytes:
    """Return the event as one UTF-8 line; lone surrogates become JSON escapes."""
    return _to_text(to_json(envelope)).encode("utf-8", "backslashreplace") + b"\n"


def from_line(line: bytes | str) -> Envelope:
    """Parse one line; unknown fields are ignored."""
    try:
        # Bytes are decoded as UTF-8 directly: json would first detect the encoding.
        flat = json.loads(line.decode() if isinstance(line, bytes) else line)
    except ValueError as error:
        raise CodecError(f"not JSON: {error}") from error
    if not isinstance(flat, dict):
        raise CodecError("not an object")
    return from_json(flat)


def from_json(flat: JsonObject) -> Envelope:
    """Build an envelope from a flat JSON object."""
    if flat.get("v") != FORMAT:
        raise CodecError(f"unknown format {flat.get('v')!r} (expected {FORMAT})")
    event_type = _EVENTS.get(str(flat.get("type")))
    if event_type is None:
        raise CodecError(f"unknown event type {flat.get('type')!r}")
    try:
        # Field names of the envelope are not used by any event.
        event: Event = decode(event_type, flat, extra="ignore")
    except DecodeError as error:
        raise CodecError(f"{flat.get('type')}: {error}") from error
    fields = _envelope_fields(flat)
    if fields is None:
        raise CodecError(f"{flat.get('type')}: the envelope has a missing or invalid field")
    seq, ts, session_id, run_id, step_id, attempt = fields
    return Envelope(
        event=event,
        seq=seq,
        ts=ts,
        session_id=session_id,
        run_id=run_id,
        step_id=step_id,
        attempt=attempt,
    )


def has_envelope(flat: JsonObject) -> bool:
    """Whether the fields that all events have are there, and of their kind."""
    return _envelope_fields(flat) is not None


def _envelope_fields(flat: JsonObject) -> tuple[int, str, str, str, str | None, int | None] | None:
    seq, ts, session_id, run_id, step_id, attempt = map(flat.get, _ENVELOPE_FIELDS)
    if (
        type(seq) is int
        and 0 < seq <= MAX_SEQ
        and type(ts) is str
        and type(session_id) is str
        and type(run_id) is str
        and (step_id is None or type(step_id) is str)
        and (attempt is None or type(attempt) is int)
    ):
        return seq, ts, session_id, run_id, step_id, attempt
    return None
