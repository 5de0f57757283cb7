"""Parse replies in Anthropic's format: events that open, fill and close blocks, or one object."""

import json
from collections.abc import Mapping

from agent.model.fault_mapping import fault_from_error
from agent.model.faults import ModelFault
from agent.model.json_values import count_at, object_at, objects_at, text_at
from agent.model.port import PAUSED
from agent.model.reply.reply_builder import Fragment, ReplyBuilder
from agent.model.wire.sse import STREAM_TRUNCATED, SseEvent, parse_json_object
from agent.vocabulary.usage import Usage

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": PAUSED,
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


class AnthropicReader:
    """Parses one reply into a builder."""

    def __init__(self, builder: ReplyBuilder) -> None:
        self._builder = builder
        self._thinking_blocks: dict[str, dict[str, object]] = {}
        self._counts: dict[str, int] = {}
        self.is_done = False

    def read(self, event: SseEvent) -> list[Fragment]:
        """Parse one event; return the fragments to show."""
        data = parse_json_object(event.data)
        index = str(data.get("index"))
        match data.get("type") or event.name:
            case "content_block_start":
                return self._read_block(index, object_at(data, "content_block"))
            case "content_block_delta":
                return self._read_delta(index, object_at(data, "delta"))
            case "message_start":
                self._read_usage(object_at(object_at(data, "message"), "usage"))
            case "message_delta":
                self._set_finish_reason(text_at(object_at(data, "delta"), "stop_reason"))
                self._read_usage(object_at(data, "usage"))
            case "message_stop":
                self.is_done = True
            case "error":
                raise fault_from_error(data.get("error") or data)
        return []

    def read_full(self, data: Mapping[str, object]) -> list[Fragment]:
        """Parse a reply that was not streamed."""
        if error := data.get("error"):
            raise fault_from_error(error)
        if data.get("type") != "message":
            raise ModelFault("malformed", f"not a message: {json.dumps(data)[:120]}")
        fragments: list[Fragment] = []
        for index, block in enumerate(objects_at(data, "content")):
            fragments += self._read_block(str(index), block)
        self._set_finish_reason(text_at(data, "stop_reason"))
        self._read_usage(object_at(data, "usage"))
        self.is_done = True
        return fragments

    def finish(self) -> None:
        """Raise ModelFault if the stream ended before the reply was complete."""
        if not self.is_done and not self._builder.finish_reason:
            raise ModelFault("reset", STREAM_TRUNCATED)
        self._store_signature()

    def _read_block(self, index: str, block: Mapping[str, object]) -> list[Fragment]:
        match block.get("type"):
            case "text":
                return self._builder.add_text(text_at(block, "text"))
            case "tool_use":
                given = block.get("input")
                arguments = json.dumps(given) if given else ""
                name = text_at(block, "name")
                return self._builder.add_call(index, id=text_at(block, "id"), name=name, arguments=arguments)
            case "thinking":
                text = text_at(block, "thinking")
                self._append_thinking(index, "thinking", text)
                self._append_thinking(index, "signature", text_at(block, "signature"))
                return self._builder.add_reasoning(text)
            case "redacted_thinking":
                self._thinking_blocks[index] = {"type": "redacted_thinking", "data": text_at(block, "data")}
        return []

    def _read_delta(self, index: str, delta: Mapping[str, object]) -> list[Fragment]:
        match delta.get("type"):
            case "text_delta":
                return self._builder.add_text(text_at(delta, "text"))
            case "input_json_delta":
                return self._builder.add_call(index, arguments=text_at(delta, "partial_json"))
            case "thinking_delta":
                self._append_thinking(index, "thinking", text_at(delta, "thinking"))
                return self._builder.add_reasoning(text_at(delta, "thinking"))
            case "signature_delta":
                self._append_thinking(index, "signature", text_at(delta, "signature"))
        return []

    def _append_thinking(self, index: str, part: str, text: str) -> None:
        thought = self._thinking_blocks.setdefault(index, {"type": "thinking", "thinking": "", "signature": ""})
        thought[part] = text_at(thought, part) + text

    def _store_signature(self) -> None:
        """Store what the API expects back: the signature of a single block, or else all blocks."""
        thoughts = [block for block in self._thinking_blocks.values() if block.get("signature") or block.get("data")]
        if len(thoughts) == 1 and text_at(thoughts[0], "signature"):
            self._builder.reasoning_signature = text_at(thoughts[0], "signature")
        elif thoughts:
            self._builder.reasoning_signature = json.dumps(thoughts)

    def _set_finish_reason(self, reason: str) -> None:
        if reason:
            self._builder.finish_reason = _FINISH.get(reason, reason)

    def _read_usage(self, usage: Mapping[str, object]) -> None:
        """Merge the counts of two events. Anthropic's `input_tokens` excludes cached tokens, ours includes them."""
        self._counts |= {name: count_at(usage, name) for name in usage if isinstance(usage[name], int)}
        if not self._counts:
            return
        read = self._counts.get("cache_read_input_tokens", 0)
        written = self._counts.get("cache_creation_input_tokens", 0)
        self._builder.usage = Usage(
            input_tokens=self._counts.get("input_tokens", 0) + read + written,
            output_tokens=self._counts.get("output_tokens", 0),
            cache_read_tokens=read,
            cache_write_tokens=written,
        )
