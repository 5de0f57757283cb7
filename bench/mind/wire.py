"""Analysis of request bodies: the prompt, its shared prefix, and the bytes a bare loop would send."""

import json
from collections.abc import Sequence
from itertools import pairwise

from tests.provider.openai_frames import arguments_text, call_id
from tests.provider.replies import Reply


def prompt_bytes(raw: bytes) -> bytes:
    """Return the part of a body that a provider reads and caches: tools, then messages, byte for byte as sent.

    The order of the members of a JSON object is not the order in which a model reads them, and members such as
    `stream` are not read at all. The bracket that closes the messages is left out: the next request continues there.
    """
    members = _members(raw.decode())
    return (members.get("tools", "") + members.get("messages", "[]").removesuffix("]")).encode()


def changed_shares(bodies: Sequence[bytes]) -> list[float]:
    """Return for each request after the first the share of the previous prompt that is not a prefix of its own."""
    prompts = [prompt_bytes(raw) for raw in bodies]
    return [1 - _shared_prefix(earlier, later) / len(earlier) for earlier, later in pairwise(prompts)]


class BareLoop:
    """Counts the bytes of a chat loop that starts with the same first request and keeps everything after it."""

    def __init__(self, first_body: dict[str, object]) -> None:
        messages = first_body["messages"]
        assert isinstance(messages, list)
        self._body = {"model": first_body["model"], "stream": True, "tools": first_body["tools"]}
        self._messages: list[object] = list(messages)
        self.bytes_sent = 0

    def ask(self, words: str) -> None:
        """Add a request of the user."""
        self._messages.append({"role": "user", "content": words})

    def send(self) -> None:
        """Count one request."""
        body = self._body | {"messages": self._messages}
        self.bytes_sent += len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())

    def receive(self, reply: Reply, turn: int, results: Sequence[str]) -> None:
        """Add a reply of the model, and the results of its calls."""
        calls = [
            {
                "id": call_id(turn, index),
                "type": "function",
                "function": {"name": name, "arguments": arguments_text(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.calls)
        ]
        said = {"role": "assistant", "content": reply.text}
        self._messages.append(said | {"tool_calls": calls} if calls else said)
        self._messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(calls, results, strict=True)
        ]


def _shared_prefix(earlier: bytes, later: bytes) -> int:
    pairs = zip(earlier, later, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(earlier), len(later)))


def _members(text: str) -> dict[str, str]:
    """Return the members of a JSON object, each as the text that was sent."""
    decoder, members, at = json.JSONDecoder(), {}, text.index("{") + 1
    while (at := _skip(text, at, " \t\r\n,")) < len(text) and text[at] != "}":
        name, end = decoder.raw_decode(text, at)
        start = _skip(text, end, " \t\r\n:")
        _, at = decoder.raw_decode(text, start)
        members[name] = text[start:at]
    return members


def _skip(text: str, at: int, characters: str) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at
