"""From a reply to the HTTP answer that carries it."""

import json
from collections.abc import Mapping

from tests.provider import anthropic_frames, openai_frames
from tests.provider.replies import Answer, Form, Pace, Part, Pause, Reply

_STREAMS = {"openai": openai_frames.frames, "anthropic": anthropic_frames.frames}
_WHOLES = {"openai": openai_frames.whole, "anthropic": anthropic_frames.whole}


def answer_of(
    reply: Reply, form: Form, model: str, pace: Pace | None = None, *, is_streamed: bool = True, turn: int = 1
) -> Answer:
    """Return the answer that carries a reply at a pace."""
    pace = reply.pace or pace or Pace()
    before = (Pause(seconds=pace.head_s),) if pace.head_s else ()
    if reply.is_whole or not is_streamed:
        body = json.dumps(_WHOLES[form](reply, model, turn)).encode()
        return Answer(content_type="application/json", before=before, parts=(body,))
    parts: list[Part] = [Pause(seconds=pace.first_s)] if pace.first_s else []
    for at, frame in enumerate(_STREAMS[form](reply, model, turn)):
        if at and pace.between_s:
            parts.append(Pause(seconds=pace.between_s))
        parts.append(frame)
    if pace.end_s:
        parts.append(Pause(seconds=pace.end_s))
    return Answer(before=before, parts=tuple(parts))


def refusal(status: int, body: Mapping[str, object], headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer with an error status and a JSON body."""
    return Answer(
        status=status, headers=headers or {}, content_type="application/json", parts=(json.dumps(body).encode(),)
    )


def error_body(form: Form, kind: str, words: str) -> dict[str, object]:
    """Return an error in the shape of the form's provider."""
    if form == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": words}}
    return {"error": {"message": words, "type": kind, "param": None, "code": kind}}
