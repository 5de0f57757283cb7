"""The conversation of one step, kept across retries, and its trimming to the context window."""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelRequest
from agent.prompts.load import load_prompt
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.step import CallFact, Check
from agent.vocabulary.unfinished import UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolResult

PREVIEW_CHARS = 2000
CONTINUE_PROMPT = "Your reply was cut off at its length limit. Go on exactly where it stopped; repeat nothing."


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages after the opening, the facts of all calls, the turns and the checks."""

    messages: list[Message] = field(default_factory=list)
    facts: list[CallFact] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    turns: int = 0
    calls: int = 0
    summarized_at: int | None = None

    @classmethod
    def from_unfinished(cls, unfinished: UnfinishedStep) -> "Conversation":
        """Return the conversation of an interrupted step, ready to continue."""
        return cls(
            messages=list(unfinished.messages),
            facts=list(unfinished.facts),
            turns=unfinished.turns,
            calls=len(unfinished.facts),
        )

    @property
    def last_answer(self) -> str:
        """The answer that ends the conversation; empty while there is none."""
        last = self.messages[-1] if self.messages else None
        is_answer = last is not None and last.role == "assistant" and not last.tool_calls
        return last.content.strip() if last and is_answer else ""

    @property
    def truncated_answer(self) -> str:
        """The truncated answer that the model has been asked to continue, or an empty text."""
        last = self.messages[-1] if self.messages else None
        is_continued = last is not None and last.role == "user" and last.content == CONTINUE_PROMPT
        return self.messages[-2].content if is_continued and len(self.messages) > 1 else ""

    def next_call(self, ctx: ExecCtx) -> ExecCtx:
        """Return the context of the next call, with a unique id: providers reuse theirs."""
        self.calls += 1
        return replace(ctx, call_id=f"{ctx.step_id}.{ctx.attempt}.{self.calls}")

    def add_results(self, results: Iterable[tuple[ToolCall, ToolResult]]) -> list[CallFact]:
        """Add the results of one turn, in the order of its calls."""
        pairs = list(results)
        self.messages += [Message(role="tool", content=result.content, tool_call_id=call.id) for call, result in pairs]
        return self.record_calls(pairs)

    def record_calls(self, results: Iterable[tuple[ToolCall, ToolResult]]) -> list[CallFact]:
        """Record calls and their artifacts as evidence, without adding messages."""
        pairs = list(results)
        facts = [_fact(call, result) for call, result in pairs]
        self.facts += facts
        self.artifacts += [path for _, result in pairs for path in result.meta.artifacts if path not in self.artifacts]
        return facts


def _fact(call: ToolCall, result: ToolResult) -> CallFact:
    return CallFact(
        tool=call.name,
        args=call.arguments,
        status=result.meta.status,
        exit_code=result.exit_code,
        output_len=len(result.content),
        output_preview=result.content[:PREVIEW_CHARS],
        rule=result.meta.rule,
        changed=tuple(change.path for change in result.meta.changes),
    )


CHARS_PER_TOKEN = 3
SHORTENED_CHARS = 200
_RECENT = 4
# Shrinking well below the limit keeps the prefix unchanged for many turns, so that providers can cache it.
_TARGET = 0.6


def shorten_results(messages: Sequence[Message], room: int) -> list[Message]:
    """Return the messages with old tool results shortened until they fit into `room` characters."""
    kept = list(messages)
    excess = _excess(kept, room)
    for index, message in enumerate(kept[:-_RECENT]):
        if excess <= 0:
            break
        if message.role == "tool" and len(message.content) > SHORTENED_CHARS:
            kept[index] = _shorten_message(message)
            excess -= len(message.content) - len(kept[index].content)
    return kept


def messages_to_drop(messages: Sequence[Message], room: int) -> int:
    """Return how many leading messages to drop: complete turns only, never the newest."""
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
    """Return the size of messages in characters, calls included."""
    return sum(
        len(message.content) + sum(len(str(call.arguments)) for call in message.tool_calls) for message in messages
    )


def _excess(messages: Sequence[Message], room: int) -> int:
    """Return how many characters to remove: 0 if the messages fit, else more than strictly needed."""
    excess = size_of(messages) - room
    return excess + int(max(room, 0) * (1 - _TARGET)) if excess > 0 else 0


def _shorten_message(message: Message) -> Message:
    cut = len(message.content) - SHORTENED_CHARS
    return replace(message, content=f"{message.content[:SHORTENED_CHARS]}\n[… {cut} characters left out]")


# A summary costs a request; turns dropped sooner than this after the last summary get none.
TURNS_BETWEEN_SUMMARIES = 8
_SUMMARY_TOKENS = 1000
_PART_CHARS = 1000

_SUMMARY_PREFIX = "(Earlier turns of this step, in short:)\n"
_OMITTED = "(Turns of this step were left out here to save room.)"


class ContextTrimmer:
    """Shortens conversations that no longer fit the context window; the opening is never changed."""

    def __init__(self, *, client: MeteredModel) -> None:
        self._client = client

    async def trim(self, conversation: Conversation, request: ModelRequest, limit_tokens: int) -> None:
        """Shorten the conversation to fit after the request's messages, rarely changing its beginning."""
        room = limit_tokens * CHARS_PER_TOKEN - size_of(request.messages)
        if size_of(conversation.messages) <= room:
            return
        conversation.messages = shorten_results(conversation.messages, room)
        dropped = messages_to_drop(conversation.messages, room)
        if not dropped:
            return
        note = await self._summarize(conversation, conversation.messages[:dropped], request, room)
        conversation.messages = [Message(role="user", content=note), *conversation.messages[dropped:]]

    async def _summarize(
        self, conversation: Conversation, old: Sequence[Message], request: ModelRequest, room: int
    ) -> str:
        last = conversation.summarized_at
        if last is not None and conversation.turns - last < TURNS_BETWEEN_SUMMARIES:
            return _omission_note(old)
        conversation.summarized_at = conversation.turns
        summary_request = replace(
            request,
            messages=(
                Message(role="system", content=load_prompt("summary")),
                Message(role="user", content=_format_turns(old, max(room, 0) // 2)),
            ),
            tools=(),
            purpose="summary",
            max_output_tokens=_SUMMARY_TOKENS,
        )
        try:
            reply = await self._client.ask(summary_request)
        except (ModelFault, BudgetExhausted):
            # The step can continue without a summary; if not, its next request reports the same error.
            return _omission_note(old)
        summary = reply.message.content.strip()
        return f"{_SUMMARY_PREFIX}{summary}" if summary else _omission_note(old)


def _omission_note(old: Sequence[Message]) -> str:
    """Return the note for turns dropped without a summary; an earlier summary is kept."""
    first = old[0].content
    if old[0].role != "user" or not first.startswith(_SUMMARY_PREFIX):
        return _OMITTED
    return first if first.endswith(_OMITTED) else f"{first}\n{_OMITTED}"


def _format_turns(messages: Sequence[Message], limit: int) -> str:
    """Return the newest turns that fit as text; the newest message is always included."""
    parts: list[str] = []
    for message in reversed(messages):
        calls = "".join(f"\n{call.name} {dict(call.arguments)}" for call in message.tool_calls)
        who = "result" if message.role == "tool" else message.role
        part = f"<{who}>\n{_truncate(message.content + calls)}\n</{who}>"
        limit -= len(part)
        if limit < 0 and parts:
            break
        parts.append(part)
    return "\n".join(reversed(parts))


def _truncate(text: str) -> str:
    return text if len(text) <= _PART_CHARS else f"{text[:_PART_CHARS]} …"
