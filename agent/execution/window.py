"""Keeps a conversation within a model's window: old tool results are shortened first, the beginning never."""

from collections.abc import Sequence
from dataclasses import replace

from agent.vocabulary.message import Message

CHARS_PER_TOKEN = 3
SHORTENED_CHARS = 200
_RECENT = 4
# Shrinking well below the limit keeps the prefix unchanged for many turns, which providers cache.
_TARGET = 0.6


def fit(messages: Sequence[Message], limit_tokens: int) -> list[Message]:
    """Return the conversation within the limit, unchanged when it fits."""
    limit = limit_tokens * CHARS_PER_TOKEN
    kept = list(messages)
    excess = _size(kept) - limit
    if excess <= 0:
        return kept
    excess += int(limit * (1 - _TARGET))
    for index, message in enumerate(kept[:-_RECENT]):
        if excess <= 0:
            break
        if message.role == "tool" and len(message.content) > SHORTENED_CHARS:
            kept[index] = _shortened(message)
            excess -= len(message.content) - len(kept[index].content)
    return _without_oldest_turns(kept, excess)


def _without_oldest_turns(messages: list[Message], excess: int) -> list[Message]:
    """Drop whole turns after the opening, never the newest: an assistant message leaves together with its results."""
    turns = [i for i, message in enumerate(messages) if message.role == "assistant"] or [len(messages)]
    start = end = turns[0]
    while excess > 0 and end < min(turns[-1], len(messages) - _RECENT):
        excess -= len(messages[end].content)
        end += 1
        while end < len(messages) and messages[end].role == "tool":
            excess -= len(messages[end].content)
            end += 1
    if end == start:
        return messages
    note = Message(role="user", content="(Earlier turns of this step were left out to save room.)")
    return [*messages[:start], note, *messages[end:]]


def _shortened(message: Message) -> Message:
    cut = len(message.content) - SHORTENED_CHARS
    return replace(message, content=f"{message.content[:SHORTENED_CHARS]}\n[… {cut} characters left out]")


def _size(messages: Sequence[Message]) -> int:
    return sum(
        len(message.content) + sum(len(str(call.arguments)) for call in message.tool_calls) for message in messages
    )
