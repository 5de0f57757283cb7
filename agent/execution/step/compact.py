"""Keeps a conversation within the context window: replaces old results by one line, then old turns by a summary."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from agent.execution.step.context import Conversation
from agent.model.budget import TOKENS_PER_IMAGE, BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelRequest
from agent.prompts.load import load_prompt
from agent.protocol.channel import Channel
from agent.protocol.events import ContextCompacted
from agent.vocabulary.compaction import SUMMARY_PREFIX, Compaction, ShortenedResult
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

# Code has about four characters per token, other text fewer; an estimate that is too high does no harm.
CHARS_PER_TOKEN = 3
# Shorter results are not worth replacing.
SHORT_RESULT_CHARS = 400
# The newest messages always stay: the last exchange with its calls and results.
_RECENT = 4
# Shrinking well below the limit keeps the prefix unchanged for many turns, so that providers can cache it.
_TARGET = 0.6
_SUMMARY_TOKENS = 1000
_PART_CHARS = 1000

OMITTED = "(Earlier turns were left out here to save room.)"


def size_of(messages: Sequence[Message]) -> int:
    """Return the size of messages in characters, calls and images included."""
    size = 0
    # Every turn looks at the whole conversation.
    for message in messages:
        size += len(message.content) + len(message.images) * TOKENS_PER_IMAGE * CHARS_PER_TOKEN
        for call in message.tool_calls:
            size += len(str(call.arguments))
    return size


def tokens_of(chars: int) -> int:
    """Estimate the tokens of a text of this length."""
    return -(-chars // CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSize:
    """Token limit of a conversation, and the context window of the model."""

    limit: int
    window: int

    @classmethod
    def of_window(cls, window: int, max_output_tokens: int) -> "ContextSize":
        """Leave room for a reply, at most half of a small window."""
        return cls(limit=max(window - max_output_tokens, window // 2), window=window)

    def room(self, opening: Sequence[Message]) -> int:
        """Return the maximum number of characters of a conversation after its opening messages."""
        return self.limit * CHARS_PER_TOKEN - size_of(opening)


class ContextCompactor:
    """Shortens conversations that no longer fit; every change is an event, so a resumed one is shortened the same way.

    `effect_of` is used to find out whether a call can simply be repeated.
    """

    def __init__(
        self, *, client: MeteredModel, channel: Channel, effect_of: Callable[[str], str | None] = lambda tool: None
    ) -> None:
        self._client = client
        self._channel = channel
        self._effect_of = effect_of

    async def fit(self, conversation: Conversation, opening: ModelRequest, size: ContextSize, ctx: ExecCtx) -> None:
        """Shorten the conversation until it fits after the messages of `opening`.

        Raises InputError if the newest request alone does not fit.
        """
        room = size.room(opening.messages)
        for plan_change in (self._shorten_results, self._summarize_oldest, self._summarize_oldest):
            before = size_of(conversation.messages)
            if before <= room:
                return
            compaction = await plan_change(conversation.messages, opening, room, ctx)
            if compaction is not None:
                conversation.messages = compaction.apply(conversation.messages)
                after = size_of(conversation.messages)
                event = ContextCompacted(
                    compaction=compaction,
                    tokens_before=tokens_of(before),
                    tokens_after=tokens_of(after),
                    window=size.window,
                )
                await self._channel.publish(event, step_id=ctx.step_id, attempt=ctx.attempt)
        self._check_request(conversation.messages, room, size, opening.model)

    def _check_request(self, messages: Sequence[Message], room: int, size: ContextSize, model: str) -> None:
        longest = max((size_of([message]) for message in messages if message.role == "user"), default=0)
        if longest > room:
            needed, limit = tokens_of(longest), size.limit
            raise InputError(
                f"the request is too long for {model}: about {needed:,} tokens, and it takes {limit:,}",
                "attach less, pass the text as a file with -i/--input, or choose a model with a larger window",
            )

    async def _shorten_results(
        self, messages: Sequence[Message], opening: ModelRequest, room: int, ctx: ExecCtx
    ) -> Compaction | None:
        """Replace the oldest long results, as many as needed, by a line that says how to get them again."""
        excess = _excess(messages, room)
        names = {call.id: call.name for message in messages for call in message.tool_calls}
        shortened: list[ShortenedResult] = []
        for index, message in enumerate(messages[:-_RECENT]):
            if excess <= 0:
                break
            size = size_of([message])
            if message.role == "tool" and size > SHORT_RESULT_CHARS:
                tool = names.get(message.tool_call_id or "", "the call")
                text = self._describe_left_out(tool, message, ctx)
                shortened.append(ShortenedResult(index=index, text=text))
                excess -= size - len(text)
        return Compaction(shortened=tuple(shortened)) if shortened else None

    def _describe_left_out(self, tool: str, message: Message, ctx: ExecCtx) -> str:
        parts = [f"{len(message.content):,} characters", *(image.label.strip("[]") for image in message.images)]
        said = f"[{' and '.join(parts)} of {tool} were left out here to save room"
        # Tools that return images, such as fetch_page, can be called again as well.
        if message.images or self._effect_of(tool) == "read":
            return f"{said}; make the call again to see them]"
        path = _save_text(ctx, message.content)
        return f"{said}; they are in {path}]" if path else f"{said}]"

    async def _summarize_oldest(
        self, messages: Sequence[Message], opening: ModelRequest, room: int, ctx: ExecCtx
    ) -> Compaction | None:
        """Replace the oldest turns by a summary: first those before the newest request, then those after it."""
        request = last_request(messages)
        start, end = 0, request
        if not any(message.role == "assistant" for message in messages[: max(request, 0)]):
            start = request + 1 if request >= 0 else 0
            end = _turns_end(messages, start, _excess(messages, room))
        if end - start < 2:
            return None
        summary = await self._summarize(messages[start:end], opening, room)
        return Compaction(start=start, end=end, summary=summary)

    async def _summarize(self, old: Sequence[Message], opening: ModelRequest, room: int) -> str:
        request = replace(
            opening,
            messages=(
                Message(role="system", content=load_prompt("summary")),
                Message(role="user", content=format_turns(old, max(room, 0) // 2)),
            ),
            tools=(),
            purpose="summary",
            max_output_tokens=_SUMMARY_TOKENS,
        )
        try:
            reply = await self._client.ask(request)
        except (ModelFault, BudgetExhausted):
            # The work can continue without a summary; if not, its next request reports the same error.
            return _omission_note(old)
        summary = reply.message.content.strip()
        return f"{SUMMARY_PREFIX}{summary}" if summary else _omission_note(old)


def last_request(messages: Sequence[Message]) -> int:
    """Return the position of the newest request; -1 if the conversation has none, as for a step."""
    for index in range(len(messages) - 1, -1, -1):
        before = messages[index - 1] if index else None
        is_between_turns = before is None or (before.role in ("user", "assistant") and not before.tool_calls)
        message = messages[index]
        if message.role == "user" and is_between_turns and not message.content.startswith((SUMMARY_PREFIX, OMITTED)):
            return index
    return -1


def _turns_end(messages: Sequence[Message], start: int, excess: int) -> int:
    """Return where the oldest whole turns end whose removal saves enough; never within the newest messages."""
    last = len(messages) - _RECENT
    end = start
    for index in range(start, len(messages)):
        if messages[index].role != "assistant" or index == start:
            continue
        if index > last or excess <= 0:
            break
        excess -= size_of(messages[end:index])
        end = index
    return end


def _excess(messages: Sequence[Message], room: int) -> int:
    """Return how many characters to remove: 0 if the messages fit, else more than strictly needed."""
    excess = size_of(messages) - room
    return excess + int(max(room, 0) * (1 - _TARGET)) if excess > 0 else 0


def _save_text(ctx: ExecCtx, content: str) -> str:
    """Save a result among the session's outputs; empty if that is not possible."""
    if ctx.outputs_dir is None:
        return ""
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    name = f"left-out-{digest[:12]}.txt"
    path = Path(ctx.outputs_dir) / name
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content.encode("utf-8", "backslashreplace"))
    except OSError:
        return ""
    return str(path)


def _omission_note(old: Sequence[Message]) -> str:
    """Return the note for turns removed without a summary; an earlier summary is kept."""
    first = old[0].content
    if old[0].role != "user" or not first.startswith(SUMMARY_PREFIX):
        return OMITTED
    return first if first.endswith(OMITTED) else f"{first}\n{OMITTED}"


def format_turns(messages: Sequence[Message], limit: int, *, part_chars: int = _PART_CHARS) -> str:
    """Return the newest turns that fit as text, each message cut to `part_chars`; the newest is always included."""
    parts: list[str] = []
    for message in reversed(messages):
        calls = "".join(f"\n{call.name} {dict(call.arguments)}" for call in message.tool_calls)
        who = "result" if message.role == "tool" else message.role
        part = f"<{who}>\n{_truncate(message.content + calls, part_chars)}\n</{who}>"
        limit -= len(part)
        if limit < 0 and parts:
            break
        parts.append(part)
    return "\n".join(reversed(parts))


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} …"
