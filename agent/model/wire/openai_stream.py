"""Parse replies in OpenAI's format: streamed chunks, or one object from servers that do not stream."""

import json
from collections.abc import Mapping

from agent.model.fault_mapping import fault_from_error
from agent.model.faults import ModelFault
from agent.model.json_values import MAX_COUNT, count_at, object_at, objects_at, text_at
from agent.model.reply.reply_builder import Fragment, ReplyBuilder
from agent.model.wire.sse import STREAM_TRUNCATED, SseEvent, parse_json_object
from agent.vocabulary.usage import Usage

_PLAIN_DELTA = frozenset({"content", "role"})
_FINISH = {"function_call": "tool_calls", "max_tokens": "length", "eos": "stop", "end_turn": "stop"}


class OpenAiReader:
    """Parses one reply into a builder."""

    def __init__(self, builder: ReplyBuilder) -> None:
        self._builder = builder
        self._open_calls: dict[str, tuple[str, str]] = {}
        self._call_count = 0
        self.is_done = False

    def read(self, event: SseEvent) -> list[Fragment]:
        """Parse one event; return the fragments to show."""
        data = event.data
        if not data.startswith("{") and data.strip() == "[DONE]":
            self.is_done = True
            return []
        return self._read_chunk(parse_json_object(data), "delta")

    def read_full(self, data: Mapping[str, object]) -> list[Fragment]:
        """Parse a reply that was not streamed."""
        self.is_done = True
        if not data.get("error") and not objects_at(data, "choices"):
            raise ModelFault("malformed", f"no choices in the reply: {json.dumps(data)[:120]}")
        return self._read_chunk(data, "message")

    def finish(self) -> None:
        """Raise ModelFault if the stream ended before the reply was complete."""
        if not self.is_done and not self._builder.finish_reason:
            raise ModelFault("reset", STREAM_TRUNCATED)

    def _read_chunk(self, chunk: Mapping[str, object], part: str) -> list[Fragment]:
        if error := chunk.get("error"):
            raise fault_from_error(error)
        # Groq puts usage under `x_groq`.
        if ("usage" in chunk or "x_groq" in chunk) and (
            usage := object_at(chunk, "usage") or object_at(object_at(chunk, "x_groq"), "usage")
        ):
            self._read_usage(usage)
        choices = chunk.get("choices")
        # Without `json_values`: every token of a reply passes through here.
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                delta, reason = choice.get(part), choice.get("finish_reason")
                fragments = self._read_delta(delta) if delta and isinstance(delta, dict) else []
                if reason and isinstance(reason, str):
                    self._set_finish_reason(reason, choice)
                return fragments
        return []

    def _set_finish_reason(self, reason: str, choice: Mapping[str, object]) -> None:
        if reason == "error":
            raise fault_from_error(choice.get("error") or {"message": "the provider ended the reply with an error"})
        self._builder.finish_reason = _FINISH.get(reason, reason)

    def _read_delta(self, delta: Mapping[str, object]) -> list[Fragment]:
        content = delta.get("content")
        if isinstance(content, str) and delta.keys() <= _PLAIN_DELTA:
            # Fast path of nearly every chunk.
            return self._builder.add_text(content)
        fragments = self._builder.add_reasoning(text_at(delta, "reasoning_content") or text_at(delta, "reasoning"))
        refusal = text_at(delta, "refusal")
        self._builder.is_refusal = self._builder.is_refusal or bool(refusal)
        fragments += self._builder.add_text(text_at(delta, "content") + refusal)
        # Mistral's reasoning models send a list of parts instead of a string.
        for block in objects_at(delta, "content"):
            fragments += self._builder.add_text(text_at(block, "text"))
            for thought in objects_at(block, "thinking"):
                fragments += self._builder.add_reasoning(text_at(thought, "text"))
        for call in objects_at(delta, "tool_calls"):
            fragments += self._read_call(call)
        return fragments

    def _read_call(self, call: Mapping[str, object]) -> list[Fragment]:
        function = object_at(call, "function")
        arguments = function.get("arguments")
        name, id = text_at(function, "name"), text_at(call, "id")
        # Ollama and others send the arguments as an object instead of a string.
        text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        key = self._call_key(call.get("index"), id=id, name=name)
        return self._builder.add_call(key, id=id, name=name, arguments=text)

    def _call_key(self, index: object, *, id: str, name: str) -> str:
        """Return the key of the call that a fragment belongs to.

        The index should identify it, but some servers omit it or send 0 for every call: then a name with a new id,
        or without any index, starts another call.
        """
        slot = str(index) if isinstance(index, int) else ""
        key, known_id = self._open_calls.get(slot, ("", ""))
        is_another = bool(name) and (id != known_id if id and known_id else not slot)
        if not key or is_another:
            self._call_count += 1
            key = str(self._call_count)
        self._open_calls[slot] = (key, id or known_id)
        return key

    def _read_usage(self, usage: Mapping[str, object]) -> None:
        prompt, completion = object_at(usage, "prompt_tokens_details"), object_at(usage, "completion_tokens_details")
        self._builder.usage = Usage(
            input_tokens=count_at(usage, "prompt_tokens"),
            output_tokens=count_at(usage, "completion_tokens"),
            cache_read_tokens=count_at(prompt, "cached_tokens") or count_at(usage, "prompt_cache_hit_tokens"),
            # litellm passes on Anthropic's name.
            cache_write_tokens=count_at(prompt, "cache_write_tokens") or count_at(usage, "cache_creation_input_tokens"),
            reasoning_tokens=count_at(completion, "reasoning_tokens"),
        )
        # OpenRouter reports the actual cost of the call.
        cost = usage.get("cost")
        self._builder.reported_cost = float(cost) if isinstance(cost, (int, float)) and 0 <= cost < MAX_COUNT else None
