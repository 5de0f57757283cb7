"""Replies in Anthropic's streaming format."""

import json
from collections.abc import Iterator, Mapping

from tests.provider.openai_frames import arguments_text
from tests.provider.replies import Reply, split_text

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def frame(data: Mapping[str, object]) -> bytes:
    """Encode one server-sent event, named by its type."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def frames(reply: Reply, model: str, turn: int = 1) -> Iterator[bytes]:
    """Yield the events of a reply."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield frame({"type": "message_start", "message": {**message, "usage": {**_input_usage(reply), "output_tokens": 1}}})
    yield frame({"type": "ping"})
    for index, (opening, deltas) in enumerate(_blocks(reply, turn)):
        yield frame({"type": "content_block_start", "index": index, "content_block": opening})
        for delta in deltas:
            yield frame({"type": "content_block_delta", "index": index, "delta": delta})
        yield frame({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": reply.usage.completion} if reply.usage else {}
    yield frame({"type": "message_delta", "delta": {"stop_reason": _stop_reason(reply)}, "usage": usage})
    yield frame({"type": "message_stop"})


def response_body(reply: Reply, model: str, turn: int = 1) -> dict[str, object]:
    """Return the reply to a request without `stream`."""
    content: list[dict[str, object]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for index, (name, arguments) in enumerate(reply.calls):
        content.append(
            {
                "type": "tool_use",
                "id": f"toolu_{turn}_{index}",
                "name": name,
                "input": json.loads(arguments_text(arguments)),
            }
        )
    output = reply.usage.completion if reply.usage else 0
    usage = {**_input_usage(reply), "output_tokens": output}
    return {
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _stop_reason(reply),
        "usage": usage,
    }


def _blocks(reply: Reply, turn: int) -> Iterator[tuple[dict[str, object], list[dict[str, object]]]]:
    if reply.reasoning:
        deltas: list[dict[str, object]] = [
            {"type": "thinking_delta", "thinking": part} for part in split_text(reply.reasoning, reply.fragment_chars)
        ]
        signature: dict[str, object] = {"type": "signature_delta", "signature": reply.signature}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if reply.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": part} for part in split_text(reply.text, reply.fragment_chars)],
        )
    for index, (name, arguments) in enumerate(reply.calls):
        yield (
            {"type": "tool_use", "id": f"toolu_{turn}_{index}", "name": name, "input": {}},
            [
                {"type": "input_json_delta", "partial_json": part}
                for part in split_text(arguments_text(arguments), reply.fragment_chars)
            ],
        )


def _stop_reason(reply: Reply) -> str:
    return _STOP_REASONS.get(reply.finish) or ("tool_use" if reply.calls else "end_turn")


def _input_usage(reply: Reply) -> dict[str, object]:
    tokens = reply.usage
    if tokens is None:
        return {}
    return {
        "input_tokens": tokens.prompt,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.written,
    }
