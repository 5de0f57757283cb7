"""Named provider faults, with the real error messages of OpenAI and Anthropic."""

from collections.abc import Callable

from tests.provider import anthropic_frames, openai_frames
from tests.provider.replies import Calls, Form, Hang, HttpResponse, KeepAlives, Reply, Reset, Text
from tests.provider.responses import build_response, error_body, json_response

_TRUNCATED_ARGUMENTS = '{"path": "notes.txt", "content": "this was going to be a long te'
_INVALID_ARGUMENTS = '{"path": notes.txt and then some}'


def fault_response(name: str, form: Form, *, retry_after: str | None = None) -> HttpResponse:
    """Return the HTTP response of a fault."""
    headers = {"Retry-After": retry_after} if retry_after is not None else {}
    if name.isdigit():
        return json_response(int(name), error_body(form, "api_error", "Something went wrong on our side."), headers)
    if name in _REFUSALS:
        status, kind, openai_message, anthropic_message = _REFUSALS[name]
        message = openai_message if form == "openai" else anthropic_message
        return json_response(status, error_body(form, kind, message), headers)
    return _BROKEN_REPLIES[name](form)


_REFUSALS: dict[str, tuple[int, str, str, str]] = {
    "rate_limit": (
        429,
        "rate_limit_error",
        "Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1.",
        "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
    ),
    "overloaded": (529, "overloaded_error", "The engine is currently overloaded, please try again later", "Overloaded"),
    "overflow": (
        400,
        "invalid_request_error",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 10002 tokens. "
        "Please reduce the length of the messages.",
        "prompt is too long: 200251 tokens > 200000 maximum",
    ),
    "auth": (401, "authentication_error", "Incorrect API key provided: {key}.", "invalid x-api-key: {key}"),
    "forbidden": (
        403,
        "permission_error",
        "You are not allowed to sample from this model",
        "Your API key does not have permission to use the specified resource.",
    ),
    "unknown_model": (
        404,
        "not_found_error",
        "The model `gpt-nope` does not exist or you do not have access to it.",
        "model: claude-nope",
    ),
    "quota": (
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        "Your credit balance is too low to access the Anthropic API.",
    ),
    "no_credit": (402, "billing_error", "Insufficient Balance", "Your credit balance is too low."),
    "bad_request": (400, "invalid_request_error", "Invalid value for 'temperature'.", "temperature: out of range"),
}


def _frames(reply: Reply, form: Form) -> list[bytes]:
    encode = openai_frames.frames if form == "openai" else anthropic_frames.frames
    return list(encode(reply, "test-model"))


def _first_frames(form: Form) -> tuple[bytes, ...]:
    return tuple(_frames(Text("this is the beginning of an answer"), form)[:4])


def _error_in_stream(form: Form) -> HttpResponse:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    frame = openai_frames.frame({"error": error})
    if form == "anthropic":
        frame = anthropic_frames.frame({"type": "error", "error": error})
    return HttpResponse(parts=(*_first_frames(form), frame))


def _refusal(form: Form) -> HttpResponse:
    """Return a refusal as the provider spells it: a field of its own, or a reason to stop."""
    if form == "anthropic":
        return build_response(Reply(text="I cannot", finish="content_filter"), form, "test-model")
    delta = {"choices": [{"index": 0, "delta": {"refusal": "I cannot help with that."}, "finish_reason": None}]}
    first, *_, last, usage, done = _frames(Text("."), form)
    return HttpResponse(parts=(first, openai_frames.frame(delta), last, usage, done))


_BROKEN_REPLIES: dict[str, Callable[[Form], HttpResponse]] = {
    "silence": lambda form: HttpResponse(before=(Hang(),)),
    "head_then_silence": lambda form: HttpResponse(parts=(Hang(),)),
    "stops_between_chunks": lambda form: HttpResponse(parts=(*_first_frames(form), Hang())),
    "keep_alives": lambda form: HttpResponse(parts=(KeepAlives(),)),
    "beginning_then_keep_alives": lambda form: HttpResponse(parts=(*_first_frames(form), KeepAlives())),
    "filtered": lambda form: build_response(
        Reply(text="The first step is", finish="content_filter"), form, "test-model"
    ),
    "refusal": _refusal,
    "reset": lambda form: HttpResponse(parts=(*_first_frames(form), Reset())),
    "reset_at_once": lambda form: HttpResponse(before=(Reset(),)),
    "ends_early": lambda form: HttpResponse(parts=_first_frames(form)),
    "malformed": lambda form: HttpResponse(parts=(*_first_frames(form), b'data: {"choices": [{"del\n\n')),
    "error_in_stream": _error_in_stream,
    "web_page": lambda form: HttpResponse(content_type="text/html", parts=(b"<html>welcome to the portal</html>",)),
    "redirect": lambda form: HttpResponse(status=302, headers={"Location": "http://elsewhere.invalid/v1"}),
    "empty": lambda form: build_response(Text(""), form, "test-model"),
    "truncated_arguments": lambda form: build_response(
        Reply(calls=(("write_file", _TRUNCATED_ARGUMENTS),), finish="length"), form, "test-model"
    ),
    "invalid_arguments": lambda form: build_response(Calls(("write_file", _INVALID_ARGUMENTS)), form, "test-model"),
}

FAULT_NAMES = (*_REFUSALS, *_BROKEN_REPLIES)
