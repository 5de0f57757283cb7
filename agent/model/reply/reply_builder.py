"""Build one reply from the fragments of a stream."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import TypeAlias

from agent.model.faults import ModelFault
from agent.model.port import CUT_OFF, CallDelta, CostFunction, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from agent.model.reply.thinking import ThinkingFilter, split_thinking
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass

Fragment: TypeAlias = TextDelta | ReasoningDelta | CallDelta

CHARS_PER_TOKEN = 4
# More than any model can write; a server that never stops must not fill the memory.
MAX_REPLY_CHARS = 16_000_000
_TRUNCATED = (
    "the arguments were cut off because the reply reached its length limit; "
    "make the call again with shorter arguments, or split the work into several smaller calls"
)
# Finish reasons of a reply stopped by a filter; most providers send `content_filter`.
_FILTERED = frozenset(
    (
        "content_filter",
        "content_filtered",
        "refusal",
        "safety",
        "sensitive",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "guardrail_intervened",
    )
)
_EXCERPT_CHARS = 200
_NO_NAME = "the call names no tool; make it again with the name of the tool"


@dataclass(slots=True)
class _CallParts:
    index: int
    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)


class ReplyBuilder:
    """Collects fragments in any order; `build` returns the reply or raises ModelFault."""

    def __init__(self, request: ModelRequest, price: CostFunction) -> None:
        self._request = request
        self._price = price
        self._filter = ThinkingFilter()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[str, _CallParts] = {}
        self._chars = 0
        self.usage: Usage | None = None
        self.reported_cost: float | None = None
        self.finish_reason = ""
        self.is_refusal = False
        self.reasoning_signature: str | None = None

    def add_text(self, fragment: str) -> list[Fragment]:
        """Add text; return the fragments that can be shown now, with reasoning separated."""
        if self._filter.state == "answer":
            # Nearly every one of thousands.
            return [self._append("text", fragment)] if fragment else []
        return [self._append(kind, part) for kind, part in self._filter.feed(fragment) if part]

    def add_reasoning(self, fragment: str) -> list[Fragment]:
        """Add reasoning that the server sent separately."""
        return [self._append("reasoning", fragment)] if fragment else []

    def add_call(self, key: str, *, id: str = "", name: str = "", arguments: str = "") -> list[Fragment]:
        """Add a fragment of the tool call identified by `key`; return it if it begins or continues the call."""
        is_new = key not in self._calls
        parts = self._calls.setdefault(key, _CallParts(len(self._calls)))
        parts.id = parts.id or id
        # Some servers repeat the full name in every fragment.
        parts.name = parts.name or name
        parts.fragments.append(arguments)
        self._count(arguments)
        return [CallDelta(index=parts.index, name=parts.name, text=arguments)] if is_new or arguments else []

    def flush(self) -> list[Fragment]:
        """Return the text held back because it could have been the start of a thinking tag."""
        return [self._append(kind, part) for kind, part in self._filter.flush() if part]

    def build(self) -> ModelReply:
        """Return the complete reply with usage and cost; raises ModelFault if there is none or a filter stopped it."""
        if self.is_refusal or self.finish_reason.lower() in _FILTERED:
            # The text received until then is not an answer, and its calls are not made.
            raise ModelFault("filtered", _excerpt("".join(self._text)))
        calls = tuple(self._build_call(parts) for parts in self._calls.values())
        text, thinking = split_thinking("".join(self._text))
        if not calls and _may_have_calls(text, self._request):
            from agent.model.reply.textual_calls import extract_calls

            text, calls = extract_calls(text, _tool_names(self._request))
        reasoning = "".join(self._reasoning) + thinking
        if not calls and not text.strip() and not self._can_continue(reasoning):
            raise self._empty_fault()
        message = Message(
            role="assistant",
            content=text.strip("\n") if text.strip() else "",
            tool_calls=calls,
            reasoning=reasoning,
            reasoning_signature=self.reasoning_signature,
            reasoning_model=self._request.model if self.reasoning_signature else None,
        )
        finish = "tool_calls" if calls and self.finish_reason != CUT_OFF else self.finish_reason or "stop"
        return ModelReply(message=message, usage=self._final_usage(), model=self._request.model, finish_reason=finish)

    def _count(self, part: str) -> None:
        self._chars += len(part)
        if self._chars > MAX_REPLY_CHARS:
            raise ModelFault("malformed", f"the reply is longer than {MAX_REPLY_CHARS:,} characters")

    def _append(self, kind: str, part: str) -> Fragment:
        self._count(part)
        if kind == "text":
            self._text.append(part)
            return TextDelta(text=part)
        self._reasoning.append(part)
        return ReasoningDelta(text=part)

    def _build_call(self, parts: _CallParts) -> ToolCall:
        # Nine letters and digits: the only id format that all providers accept (Mistral accepts no other).
        id = parts.id or os.urandom(5).hex()[:9]
        text = parts.arguments
        if self.finish_reason == CUT_OFF and not _is_json(text):
            return ToolCall(id=id, name=parts.name, problem=_TRUNCATED)
        from agent.model.reply.call_arguments import parse_arguments

        arguments, problem = parse_arguments(text)
        return ToolCall(id=id, name=parts.name, arguments=arguments, problem=problem if parts.name else _NO_NAME)

    def _can_continue(self, reasoning: str) -> bool:
        """Return whether a reply without an answer is reasoning that the model can continue."""
        return bool(reasoning.strip()) and self.finish_reason != CUT_OFF

    def _empty_fault(self) -> ModelFault:
        if self.finish_reason == CUT_OFF:
            return ModelFault("empty", "the reply reached its length limit before the answer; raise max_output_tokens")
        return ModelFault("empty")

    def _final_usage(self) -> Usage:
        usage = self.usage or self._estimate()
        known = self.reported_cost
        cost = known if known is not None else self._price(self._request.model, usage)
        return replace(usage, requests=1, cost_usd=cost)

    def _estimate(self) -> Usage:
        output_chars = sum(map(len, self._text)) + sum(map(len, self._reasoning))
        output_chars += sum(len(parts.name) + len(parts.arguments) for parts in self._calls.values())
        return Usage(
            input_tokens=_request_chars(self._request) // CHARS_PER_TOKEN,
            output_tokens=-(-output_chars // CHARS_PER_TOKEN),
        )


def join_fragments(fragments: Iterable[Fragment]) -> Iterator[Fragment]:
    """Join adjacent fragments of the same kind: they are passed on together, before a fault that follows."""
    texts: list[str] = []
    first: Fragment | None = None
    try:
        for fragment in fragments:
            if first is not None and not _is_same_kind(first, fragment):
                yield _joined(first, texts)
                first, texts = None, []
            first = first or fragment
            texts.append(fragment.text)
    except ModelFault:
        if first is not None:
            yield _joined(first, texts)
        raise
    if first is not None:
        yield _joined(first, texts)


def _joined(first: Fragment, texts: list[str]) -> Fragment:
    return first if len(texts) == 1 else replace(first, text="".join(texts))


def _is_same_kind(one: Fragment, other: Fragment) -> bool:
    if isinstance(one, CallDelta) and isinstance(other, CallDelta):
        return (one.index, one.name) == (other.index, other.name)
    return type(one) is type(other)


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _EXCERPT_CHARS else f"{flat[: _EXCERPT_CHARS - 1]}…"


def _may_have_calls(text: str, request: ModelRequest) -> bool:
    """Whether a text may contain calls of tools; most do not, and finding them takes a module of patterns."""
    if not request.tools or not ("<" in text or "{" in text):
        return False
    return "<" in text or any(name in text for name in _tool_names(request))


def _tool_names(request: ModelRequest) -> frozenset[str]:
    functions = (tool.get("function") for tool in request.tools)
    return frozenset(str(function["name"]) for function in functions if isinstance(function, dict))


def _request_chars(request: ModelRequest) -> int:
    calls = (call for message in request.messages for call in message.tool_calls)
    text = sum(len(message.content) for message in request.messages)
    return (
        text
        + sum(len(json.dumps(dict(call.arguments))) for call in calls)
        + len(json.dumps(request.tools, default=dict))
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
