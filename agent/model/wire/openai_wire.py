"""Build requests in OpenAI's format: `/chat/completions`, which most servers support."""

import re
from collections.abc import Iterator, Mapping, Sequence

from agent.config.settings import Reasoning
from agent.model.port import ModelRequest
from agent.model.providers import Endpoint, get_provider
from agent.vocabulary.message import Message, ToolCall
from tooling.contract.image import Image
from tooling.contract.json_text import json_encoder
from tooling.contract.lazy_pattern import lazy_pattern

# These models reject `max_tokens`; most other servers do not know `max_completion_tokens`.
_THINKING_MODELS = lazy_pattern(r"o\d|gpt-[5-9]|codex-")
_to_json = json_encoder(ensure_ascii=False)
_FROM_TOOLS = "The images of the tool results above, in their order:"


def url(endpoint: Endpoint) -> str:
    path = "/chat/completions"
    return endpoint.base_url if endpoint.base_url.endswith(path) else endpoint.base_url + path


def headers(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}


def body(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    """Return the request as JSON data; the messages come last, so that consecutive requests share a prefix."""
    provider = get_provider(endpoint.provider)
    data: dict[str, object] = {"model": endpoint.model, "stream": True}
    if provider.has_usage_option:
        data["stream_options"] = {"include_usage": True}
    if request.tools:
        data["tools"] = [dict(tool) for tool in request.tools]
    if request.max_output_tokens is not None:
        data[_length_option(endpoint)] = request.max_output_tokens
    if request.temperature is not None:
        data["temperature"] = request.temperature
    if request.reasoning is not None:
        data |= _reasoning(request.reasoning, endpoint)
    # A server at another address may reject fields it does not know.
    if request.cache_key and provider.has_cache_key and endpoint.base_url == provider.base_url:
        data["prompt_cache_key"] = request.cache_key
    data["messages"] = list(_messages(request, with_reasoning=provider.should_resend_reasoning))
    return data


def _reasoning(level: Reasoning, endpoint: Endpoint) -> dict[str, object]:
    """Return the options for an amount of reasoning, in the form the provider documents."""
    is_on = level != "off"
    match get_provider(endpoint.provider).reasoning_option:
        case "effort_object":
            return {"reasoning": {"effort": level if is_on else "none"}}
        case "thinking":
            return (
                {"thinking": {"type": "enabled"}, "reasoning_effort": level}
                if is_on
                else {"thinking": {"type": "disabled"}}
            )
        case "on_or_off":
            return {"reasoning_effort": "high" if is_on else "none"}
        case "template":
            switch: dict[str, object] = {"chat_template_kwargs": {"enable_thinking": is_on}}
            return {**switch, "reasoning_effort": level} if is_on else switch
        case "effort":
            return {"reasoning_effort": level if is_on else _least_effort(endpoint.model)}


def _least_effort(model: str) -> str:
    """Return the least effort that a model accepts, for models that always reason."""
    name = model.rpartition("/")[2]
    if re.match(r"o\d|gpt-oss", name):
        return "low"
    return "minimal" if re.match(r"gpt-5(-|$)", name) else "none"


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
            # Signed reasoning is another provider's.
            data["reasoning_content"] = "" if message.reasoning_signature else message.reasoning
    return data


def _call(call: ToolCall) -> Mapping[str, object]:
    function = {"name": call.name, "arguments": _to_json(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}
