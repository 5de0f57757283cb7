"""Build requests in OpenAI's format: `/chat/completions`, which most servers support."""

import json
import re
from collections.abc import Mapping

from agent.config.settings import Reasoning
from agent.model.port import ModelRequest
from agent.model.providers import Endpoint, get_provider
from agent.vocabulary.message import Message, ToolCall

# These models reject `max_tokens`; most other servers do not know `max_completion_tokens`.
_THINKING_MODELS = re.compile(r"o\d|gpt-[5-9]|codex-")


def url(endpoint: Endpoint) -> str:
    path = "/chat/completions"
    return endpoint.base_url if endpoint.base_url.endswith(path) else endpoint.base_url + path


def headers(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}


def body(request: ModelRequest, endpoint: Endpoint) -> dict[str, object]:
    """Return the request as JSON data; the messages come last, so that consecutive requests begin alike."""
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
    data["messages"] = [
        _message(message, with_reasoning=provider.should_resend_reasoning) for message in request.messages
    ]
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
    """Return the least effort that a model accepts, for those that cannot do without reasoning."""
    name = model.rpartition("/")[2]
    if re.match(r"o\d|gpt-oss", name):
        return "low"
    return "minimal" if re.match(r"gpt-5(-|$)", name) else "none"


def _length_option(endpoint: Endpoint) -> str:
    is_thinking = endpoint.provider == "openai" and _THINKING_MODELS.match(endpoint.model)
    return "max_completion_tokens" if is_thinking else "max_tokens"


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
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
