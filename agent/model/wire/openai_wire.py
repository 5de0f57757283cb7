"""Build requests in OpenAI's format: `/chat/completions`, which most servers support."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from agent.model.port import ModelRequest
from agent.model.providers import Endpoint, get_provider
from agent.vocabulary.message import Message, ToolCall
from tooling.contract.image import Image

# These models reject `max_tokens`; most other servers do not know `max_completion_tokens`.
_THINKING_MODELS = re.compile(r"o\d|gpt-[5-9]|codex-")
_FROM_TOOLS = "The images of the tool results above, in their order:"


def url(endpoint: Endpoint) -> str:
    path = "/chat/completions"
    return endpoint.base_url if endpoint.base_url.endswith(path) else endpoint.base_url + path


def headers(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}


def body(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    provider = get_provider(endpoint.provider)
    data: dict[str, object] = {
        "model": endpoint.model,
        "messages": list(_messages(request, with_reasoning=provider.should_resend_reasoning)),
        "stream": True,
    }
    if provider.has_usage_option:
        data["stream_options"] = {"include_usage": True}
    if request.tools:
        data["tools"] = [dict(tool) for tool in request.tools]
    if request.max_output_tokens is not None:
        data[_length_option(endpoint)] = request.max_output_tokens
    if request.temperature is not None:
        data["temperature"] = request.temperature
    return data


def _length_option(endpoint: Endpoint) -> str:
    is_thinking = endpoint.provider == "openai" and _THINKING_MODELS.match(endpoint.model)
    return "max_completion_tokens" if is_thinking else "max_tokens"


def _messages(request: ModelRequest, *, with_reasoning: bool) -> Iterator[dict[str, object]]:
    """Yield the messages; images of tool results follow their turn's results, since tool messages cannot have any."""
    waiting: list[Image] = []
    for message in request.messages:
        if waiting and message.role != "tool":
            yield _image_message(_FROM_TOOLS, waiting, request.image_data)
            waiting = []
        if message.role == "tool":
            waiting += message.images
        if message.images and message.role != "tool":
            yield _image_message(message.content, message.images, request.image_data)
        else:
            yield _message(message, with_reasoning=with_reasoning)
    if waiting:
        yield _image_message(_FROM_TOOLS, waiting, request.image_data)


def _image_message(text: str, images: Sequence[Image], image_data: Mapping[str, str]) -> dict[str, object]:
    urls = [f"data:{image.media_type};base64,{image_data[image.sha256]}" for image in images]
    parts: list[dict[str, object]] = [{"type": "text", "text": text}] if text else []
    return {"role": "user", "content": parts + [{"type": "image_url", "image_url": {"url": url}} for url in urls]}


def _message(message: Message, *, with_reasoning: bool) -> dict[str, object]:
    data: dict[str, object] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id or ""
    if message.tool_calls:
        data["content"] = message.content or None
        data["tool_calls"] = [_call(call) for call in message.tool_calls]
        if with_reasoning:
            data["reasoning_content"] = message.reasoning
    return data


def _call(call: ToolCall) -> Mapping[str, object]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
