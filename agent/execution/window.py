"""What a conversation weighs, and what of it may go: old tool results are shortened first, then whole turns leave."""

from collections.abc import Sequence
from dataclasses import replace

from agent.vocabulary.message import Message

CHARS_PER_TOKEN = 3
SHORTENED_CHARS = 200
_RECENT = 4
# Shrinking well below the limit keeps the prefix unchanged for many turns, which providers cache.
_TARGET = 0.6


def shorten(messages: Sequence[Message], room: int) -> list[Message]:
    """Return the messages with old tool results shortened, when they are longer than the room in characters."""
    kept = list(messages)
    excess = _excess(kept, room)
    for index, message in enumerate(kept[:-_RECENT]):
        if excess <= 0:
            break
        if message.role == "tool" and len(message.content) > SHORTENED_CHARS:
            kept[index] = _shortened(message)
            excess -= len(message.content) - len(kept[index].content)
    return kept


def overdue(messages: Sequence[Message], room: int) -> int:
    """Return how many of the first messages must leave: whole turns, never the newest."""
    excess = _excess(messages, room)
    starts = [index for index, message in enumerate(messages) if message.role == "assistant"]
    last = min(starts[-1], len(messages) - _RECENT) if starts else 0
    end = 0
    for start in starts[1:]:
        if excess <= 0 or end >= last:
            break
        excess -= size_of(messages[end:start])
        end = start
    return end


def size_of(messages: Sequence[Message]) -> int:
    """Return how many characters messages have, calls included."""
    return sum(
        len(message.content) + sum(len(str(call.arguments)) for call in message.tool_calls) for message in messages
    )


def _excess(messages: Sequence[Message], room: int) -> int:
    """Return how much must go: nothing while it fits, else more than needed."""
    excess = size_of(messages) - room
    return excess + int(max(room, 0) * (1 - _TARGET)) if excess > 0 else 0


def _shortened(message: Message) -> Message:
    cut = len(message.content) - SHORTENED_CHARS
    return replace(message, content=f"{message.content[:SHORTENED_CHARS]}\n[… {cut} characters left out]")
