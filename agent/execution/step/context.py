"""What one step has said and done so far: it outlives attempts and faults, and every provider accepts it."""

from collections.abc import Iterable
from dataclasses import field, replace

from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.step import CallFact, Check
from agent.vocabulary.unfinished import UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolResult

PREVIEW_CHARS = 2000
GO_ON = "Your reply was cut off at its length limit. Go on exactly where it stopped; repeat nothing."


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages after a step's opening, the facts of its calls, its turns and its checks."""

    messages: list[Message] = field(default_factory=list)
    facts: list[CallFact] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    turns: int = 0
    calls: int = 0
    summed_up_at: int | None = None

    @classmethod
    def going_on(cls, unfinished: UnfinishedStep) -> "Conversation":
        """Return the conversation of a step that was cut off, ready to go on."""
        return cls(
            messages=list(unfinished.messages),
            facts=list(unfinished.facts),
            turns=unfinished.turns,
            calls=len(unfinished.facts),
        )

    @property
    def last_answer(self) -> str:
        """Return the answer with which the conversation ends; empty while the model has more to do or say."""
        last = self.messages[-1] if self.messages else None
        is_answer = last is not None and last.role == "assistant" and not last.tool_calls
        return last.content.strip() if last and is_answer else ""

    @property
    def beginning_of_answer(self) -> str:
        """Return the part of an answer that is known while the model is asked for the rest of it."""
        asked = [message.content for message in self.messages[-1:] if message.role == "user"] == [GO_ON]
        return self.messages[-2].content if asked and len(self.messages) > 1 else ""

    def next_call(self, ctx: ExecCtx) -> ExecCtx:
        """Return the context of the next call; providers reuse their own ids, ours are unique."""
        self.calls += 1
        return replace(ctx, call_id=f"{ctx.step_id}.{ctx.attempt}.{self.calls}")

    def hear(self, results: Iterable[tuple[ToolCall, ToolResult]]) -> list[CallFact]:
        """Take in the results of one turn, in the order of its calls."""
        pairs = list(results)
        self.messages += [Message(role="tool", content=result.content, tool_call_id=call.id) for call, result in pairs]
        return self.note(pairs)

    def note(self, results: Iterable[tuple[ToolCall, ToolResult]]) -> list[CallFact]:
        """Keep calls as evidence, and the files they made."""
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
