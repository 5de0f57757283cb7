"""Build requests in Anthropic's format: `/v1/messages`."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from agent.model.json_values import object_at, text_at
from agent.model.port import ModelRequest
from agent.model.providers import Endpoint
from agent.vocabulary.message import Message
from tooling.contract.image import Image

Block: TypeAlias = dict[str, object]

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192
_INVALID_ID_CHARS = re.compile(r"[^a-zA-Z0-9_-]")
_CACHED: Mapping[str, object] = {"cache_control": {"type": "ephemeral"}}


def url(endpoint: Endpoint) -> str:
    base = endpoint.base_url.removesuffix("/messages")
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"


def headers(endpoint: Endpoint) -> dict[str, str]:
    version = {"anthropic-version": VERSION}
    return {**version, "x-api-key": endpoint.key} if endpoint.key else version


def body(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    """Return the request as JSON data, with cache breakpoints after system, tools and the last user turn."""
    system = [message.content for message in request.messages if message.role == "system" and message.content]
    data: dict[str, object] = {
        "model": endpoint.model,
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "messages": _turns((message for message in request.messages if message.role != "system"), request.image_data),
        "stream": True,
    }
    if system:
        data["system"] = _mark_last_cached([{"type": "text", "text": text} for text in system])
    if request.tools:
        data["tools"] = _mark_last_cached([_tool(tool) for tool in request.tools])
    if request.temperature is not None:
        data["temperature"] = request.temperature
    return data


def _turns(messages: Iterable[Message], image_data: Mapping[str, str]) -> list[Block]:
    """Return alternating turns; neighbors with the same role are merged, so results of a turn stay together."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _assistant_blocks(message) if role == "assistant" else _user_blocks(message, image_data)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    for at in range(len(turns) - 1, -1, -1):
        if turns[at][0] == "user":
            turns[at] = ("user", _mark_last_cached(turns[at][1]))
            break
    return [{"role": role, "content": blocks} for role, blocks in turns]


def _user_blocks(message: Message, image_data: Mapping[str, str]) -> list[Block]:
    images = [_image_block(image, image_data[image.sha256]) for image in message.images]
    if message.role != "tool":
        # Models read a question better after the image it is about.
        return [*images, *_text_blocks(message.content)]
    result: Block = {"type": "tool_result", "tool_use_id": _safe_id(message.tool_call_id or "")}
    if images:
        return [{**result, "content": [*_text_blocks(message.content), *images]}]
    return [{**result, "content": message.content} if message.content else result]


def _image_block(image: Image, data: str) -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _assistant_blocks(message: Message) -> list[Block]:
    calls: list[Block] = [
        {"type": "tool_use", "id": _safe_id(call.id), "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    # The API rejects an assistant turn that ends in white space.
    return [*_thinking_blocks(message), *_text_blocks(message.content.rstrip()), *calls]


def _thinking_blocks(message: Message) -> list[Block]:
    """Return reasoning as it was signed; the API rejects unsigned reasoning."""
    signature = message.reasoning_signature
    if not signature:
        return []
    if not signature.startswith("["):
        return [{"type": "thinking", "thinking": message.reasoning, "signature": signature}]
    return [dict(block) for block in json.loads(signature)]


def _text_blocks(content: str) -> list[Block]:
    return [{"type": "text", "text": content}] if content.strip() else []


def _safe_id(id: str) -> str:
    # The conversation may contain another provider's ids.
    return _INVALID_ID_CHARS.sub("_", id)


def _tool(tool: Mapping[str, object]) -> Block:
    function = object_at(tool, "function")
    description = text_at(function, "description")
    return {"name": function["name"], "description": description, "input_schema": function["parameters"]}


def _mark_last_cached(blocks: list[Block]) -> list[Block]:
    return [*blocks[:-1], {**blocks[-1], **_CACHED}]
