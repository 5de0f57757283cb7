"""Builds the HTTP response for a reply."""

import json
from collections.abc import Mapping

from tests.provider import anthropic_frames, openai_frames
from tests.provider.replies import Form, HttpResponse, Pace, Pause, Reply, ResponsePart

_STREAMS = {"openai": openai_frames.frames, "anthropic": anthropic_frames.frames}
_BODIES = {"openai": openai_frames.response_body, "anthropic": anthropic_frames.response_body}


def build_response(
    reply: Reply, form: Form, model: str, pace: Pace | None = None, *, is_streamed: bool = True, turn: int = 1
) -> HttpResponse:
    """Build the response of a reply, with pauses."""
    pace = reply.pace or pace or Pace()
    before = (Pause(seconds=pace.head_s),) if pace.head_s else ()
    if reply.ignores_stream or not is_streamed:
        body = json.dumps(_BODIES[form](reply, model, turn)).encode()
        return HttpResponse(content_type="application/json", before=before, parts=(body,))
    parts: list[ResponsePart] = [Pause(seconds=pace.first_s)] if pace.first_s else []
    for at, frame in enumerate(_STREAMS[form](reply, model, turn)):
        if at and pace.between_s:
            parts.append(Pause(seconds=pace.between_s))
        parts.append(frame)
    if pace.end_s:
        parts.append(Pause(seconds=pace.end_s))
    return HttpResponse(before=before, parts=tuple(parts))


def json_response(status: int, body: Mapping[str, object], headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Build a response with a JSON body."""
    return HttpResponse(
        status=status, headers=headers or {}, content_type="application/json", parts=(json.dumps(body).encode(),)
    )


def error_body(form: Form, kind: str, message: str) -> dict[str, object]:
    """Return an error body in the format of OpenAI or Anthropic."""
    if form == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}
