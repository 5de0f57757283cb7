"""Replies in OpenAI's streaming format."""

import json
from collections.abc import Iterator, Mapping

from tests.provider.replies import Reply, split_text


def frame(data: object) -> bytes:
    """Encode one server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def frames(reply: Reply, model: str, turn: int = 1) -> Iterator[bytes]:
    """Yield the events of a reply."""
    yield _chunk(model, {"role": "assistant", "content": ""})
    for part in split_text(reply.reasoning, reply.fragment_chars):
        yield _chunk(model, {"reasoning_content": part})
    for part in split_text(reply.text, reply.fragment_chars):
        yield _chunk(model, {"content": part})
    for index, (name, arguments) in enumerate(reply.calls):
        head = {"name": name, "arguments": ""}
        yield _chunk(
            model, {"tool_calls": [{"index": index, "id": call_id(turn, index), "type": "function", "function": head}]}
        )
        for part in split_text(arguments_text(arguments), reply.fragment_chars):
            yield _chunk(model, {"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield _chunk(model, {}, finish=finish_reason(reply))
    if reply.usage is not None:
        yield frame({"id": "chatcmpl-1", "model": model, "choices": [], "usage": usage_json(reply)})
    yield DONE


def response_body(reply: Reply, model: str, turn: int = 1) -> dict[str, object]:
    """Return the reply to a request without `stream`."""
    calls = [
        {
            "id": call_id(turn, index),
            "type": "function",
            "function": {"name": name, "arguments": arguments_text(arguments)},
        }
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    message = {"role": "assistant", "content": reply.text or None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(reply)}
    return {"id": "chatcmpl-1", "model": model, "choices": [choice], "usage": usage_json(reply)}


def call_id(turn: int, index: int) -> str:
    return f"call_{turn}_{index}"


def arguments_text(arguments: Mapping[str, object] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def finish_reason(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def usage_json(reply: Reply) -> dict[str, object] | None:
    tokens = reply.usage
    if tokens is None:
        return None
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def _chunk(model: str, delta: Mapping[str, object], *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return frame({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model, "choices": [choice]})
