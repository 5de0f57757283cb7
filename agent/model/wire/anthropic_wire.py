"""Build requests in Anthropic's format: `/v1/messages`."""

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from agent.model.json_values import object_at, text_at
from agent.model.port import ModelRequest
from agent.model.providers import Endpoint
from agent.vocabulary.message import Message
from tooling.contract.image import Image
from tooling.contract.lazy_pattern import lazy_pattern

Block: TypeAlias = dict[str, object]

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192
# Claude 3, 4, 4.1 and 4.5 take a number of tokens for thinking, a part of those for the reply.
_OLD_MODELS = lazy_pattern(r"claude-(\w+-)?(3\b|4(-[0-5])?(-\d{6,}|$))")
_MIN_THINKING_TOKENS = 1024
_THINKING_QUARTERS = {"low": 1, "medium": 2, "high": 3}
_INVALID_ID_CHARS = lazy_pattern(r"[^a-zA-Z0-9_-]")
_CACHED_TURNS = 2
_CACHED: Mapping[str, object] = {"cache_control": {"type": "ephemeral"}}


def url(endpoint: Endpoint) -> str:
    base = endpoint.base_url.removesuffix("/messages")
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"


def headers(endpoint: Endpoint) -> dict[str, str]:
    version = {"anthropic-version": VERSION}
    return {**version, "x-api-key": endpoint.key} if endpoint.key else version


def body(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    """Return the request as JSON data.

    Four cache breakpoints, the API's maximum: after tools, after system, and after the last two user turns, so
    that a request reads the cache written by the previous one.
    """
    system = [message.content for message in request.messages if message.role == "system" and message.content]
    data: dict[str, object] = {
        "model": endpoint.model,
        "max_tokens": request.max_output_tokens or DEFAULT_MAX_TOKENS,
        "stream": True,
    }
    thinking = _thinking(request, endpoint)
    data |= thinking
    # The API rejects a temperature together with thinking.
    if request.temperature is not None and (not thinking or request.reasoning == "off"):
        data["temperature"] = request.temperature
    if request.tools:
        data["tools"] = _mark_last_cached([_tool(tool) for tool in request.tools])
    if system:
        data["system"] = _mark_last_cached([{"type": "text", "text": text} for text in system])
    # Last, so that consecutive requests share a prefix.
    # Without thinking, the API also rejects earlier thinking blocks.
    signed_by = None if request.reasoning == "off" else request.model
    spoken = (message for message in request.messages if message.role != "system")
    data["messages"] = _turns(spoken, signed_by, request.image_data)
    return data


def _thinking(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    """Return the options for an amount of reasoning: effort for models since 4.6, a token budget before."""
    level = request.reasoning
    if level is None:
        return {}
    if level == "off":
        return {"thinking": {"type": "disabled"}}
    if not _OLD_MODELS.match(endpoint.model):
        # Without `display` the thinking of newer models is empty.
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": level}}
    limit = request.max_output_tokens or DEFAULT_MAX_TOKENS
    budget = max(_MIN_THINKING_TOKENS, limit * _THINKING_QUARTERS[level] // 4)
    has_room = budget < limit and not _is_amid_calls_without_thinking(request)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if has_room else {}


def _is_amid_calls_without_thinking(request: ModelRequest) -> bool:
    """Return whether the current turn started without thinking, in which case the API rejects thinking."""
    last = next((message for message in reversed(request.messages) if message.role != "tool"), None)
    return last is not None and bool(last.tool_calls) and not _thinking_blocks(last, request.model)


def _turns(messages: Iterable[Message], signed_by: str | None, image_data: Mapping[str, str]) -> list[Block]:
    """Return alternating turns; neighbors with the same role are merged, so results of a turn stay together."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _assistant_blocks(message, signed_by) if role == "assistant" else _user_blocks(message, image_data)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    for at in [at for at, (role, _) in enumerate(turns) if role == "user"][-_CACHED_TURNS:]:
        turns[at] = ("user", _mark_last_cached(turns[at][1]))
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


def _assistant_blocks(message: Message, signed_by: str | None) -> list[Block]:
    calls: list[Block] = [
        {"type": "tool_use", "id": _safe_id(call.id), "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    # The API rejects an assistant turn that ends in white space.
    return [*_thinking_blocks(message, signed_by), *_text_blocks(message.content.rstrip()), *calls]


def _thinking_blocks(message: Message, signed_by: str | None) -> list[Block]:
    """Return the reasoning signed by this model; the API rejects any other."""
    signature = message.reasoning_signature
    if not signature or message.reasoning_model != signed_by:
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
