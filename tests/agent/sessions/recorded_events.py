"""Builds the logs of interrupted runs event by event."""

from pathlib import Path
from typing import TypeAlias

from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    CallMade,
    Event,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.sessions.resume.resume_state import unfinished_run
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import Subtype
from agent.vocabulary.unfinished import UnfinishedRun, UnfinishedStep
from agent.vocabulary.usage import Usage
from tooling.contract.action import Effect

StepEvent: TypeAlias = tuple[str | None, Event]
EFFECTS: dict[str, Effect] = {"run_command": "execute", "write_file": "write", "read_file": "read"}
PLAN = (
    PlanStep(id="a", title="A", instruction="Do a"),
    PlanStep(id="b", title="B", instruction="Do b", depends_on=("a",)),
    PlanStep(id="t", title="T", instruction="", type="tool", tool="run_command", args={"command": "make"}),
)


def run_started(resumes: str | None = None, model: str = "script:x") -> StepEvent:
    return None, RunStarted(
        model=model, planner_model="", cwd="/w", workspace="/w", backend="", approval_mode="", tools=(), resumes=resumes
    )


def plan_updated(reason: str = "request", steps: tuple[PlanStep, ...] = PLAN) -> StepEvent:
    return None, PlanUpdated(plan_id="p", revision=1, hash="h", reason=reason, steps=steps)


def message_added(role: str, content: str, *calls: tuple[str, str], step: str | None = "a", **more: str) -> StepEvent:
    tool_calls = tuple(CallMade(id=call_id, name=tool, input={"x": call_id}) for call_id, tool in calls)
    return step, MessageAdded(role=role, content=content, tool_calls=tool_calls or None, **more)


def tool_started(call_id: str, tool: str, step: str = "a") -> StepEvent:
    return step, ToolStarted(tool_id=call_id, name=tool, input={"x": call_id})


def tool_completed(call_id: str, tool: str, output: str = "out", step: str = "a", **more: object) -> StepEvent:
    fields: dict[str, object] = {"status": "ok", "exit_code": 0, **more}
    return step, ToolCompleted(tool_id=call_id, name=tool, output=output, **fields)  # type: ignore[arg-type]


def step_started(step: str = "a", cache: str = "miss") -> StepEvent:
    return step, StepStarted(title="A", cache=cache)  # type: ignore[arg-type]


def step_completed(status: str, step: str = "a", usage: Usage | None = None, key: str | None = None) -> StepEvent:
    return step, StepCompleted(status=status, summary="", usage=usage or Usage(), key=key)  # type: ignore[arg-type]


def run_completed(subtype: Subtype) -> StepEvent:
    return None, RunCompleted(subtype=subtype, is_error=subtype != "success", exit_code=0, result="")


RUN_START = (
    run_started(),
    message_added("user", "the request", step=None),
    message_added("context", "<stdin>x</stdin>", step=None),
    plan_updated(),
)


class LogBuilder:
    """Writes runs into a log and reads back their unfinished state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seq = 0

    def add_run(self, run_id: str, *events: StepEvent) -> None:
        with self.path.open("ab") as file:
            for step, event in events:
                self._seq += 1
                attempt = None if step is None else 1
                envelope = Envelope(
                    seq=self._seq, ts="t", session_id="s", run_id=run_id, event=event, step_id=step, attempt=attempt
                )
                file.write(to_line(envelope))

    def unfinished(self, run_id: str = "r1") -> UnfinishedRun:
        return unfinished_run(self.path, run_id, EFFECTS.get)


def rebuild_step(log: LogBuilder, *events: StepEvent) -> UnfinishedStep:
    log.add_run("r1", *RUN_START, step_started(), *events)
    return log.unfinished().steps["a"]


def assistant_calls(*calls: tuple[str, str], content: str = "") -> Message:
    tool_calls = tuple(ToolCall(id=call_id, name=tool, arguments={"x": call_id}) for call_id, tool in calls)
    return Message(role="assistant", content=content, tool_calls=tool_calls)


def tool_result(call_id: str, content: str) -> Message:
    return Message(role="tool", content=content, tool_call_id=call_id)
