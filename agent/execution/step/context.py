"""The conversation of a step, kept across retries: its messages, the facts of its calls, its checks."""

from collections.abc import Iterable
from dataclasses import field, replace

from agent.vocabulary.message import CONTINUE_PROMPT, PAUSE_PROMPT, Message, ToolCall
from agent.vocabulary.step import CallFact, Check
from agent.vocabulary.unfinished import UnfinishedStep
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolResult

PREVIEW_CHARS = 2000


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages after the opening, the facts of all calls, the turns and the checks.

    `open_calls` are calls of the last message to repeat after an interruption.
    """

    messages: list[Message] = field(default_factory=list)
    facts: list[CallFact] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    turns: int = 0
    calls: int = 0
    open_calls: tuple[ToolCall, ...] = ()

    @classmethod
    def from_unfinished(cls, unfinished: UnfinishedStep) -> "Conversation":
        """Return the conversation of an interrupted step, ready to continue."""
        return cls(
            messages=list(unfinished.messages),
            open_calls=unfinished.open_calls,
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
        """The truncated answer that the model has been asked to continue, in all its parts, or an empty text."""
        parts: list[str] = []
        for said, asked in zip(self.messages[-2::-2], self.messages[::-2], strict=False):
            if asked.role != "user" or asked.content not in (CONTINUE_PROMPT, PAUSE_PROMPT):
                break
            parts.append(said.content)
        return "".join(reversed(parts))

    def next_call(self, call: ToolCall, ctx: ExecCtx) -> ExecCtx:
        """Return the context of the next call, with a unique id besides the model's: providers reuse theirs."""
        self.calls += 1
        return replace(ctx, call_id=f"{ctx.step_id}.{ctx.attempt}.{self.calls}", tool_id=call.id)

    def add_results(self, results: Iterable[tuple[ToolCall, ToolResult]]) -> list[CallFact]:
        """Add the results of one turn, in the order of its calls."""
        pairs = list(results)
        self.messages += [
            Message(role="tool", content=result.content, tool_call_id=call.id, images=result.images)
            for call, result in pairs
        ]
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
