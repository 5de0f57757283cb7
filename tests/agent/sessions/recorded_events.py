"""Logs of runs that were cut off, told event by event."""

from pathlib import Path
from typing import TypeAlias

from agent.protocol.codec import to_line
from agent.protocol.events import (
    CallMade,
    Envelope,
    Event,
    MessageSaid,
    PlanMade,
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


def plan_made(reason: str = "request", steps: tuple[PlanStep, ...] = PLAN) -> StepEvent:
    return None, PlanMade(plan_id="p", revision=1, hash="h", reason=reason, steps=steps)


def message_said(role: str, content: str, *calls: tuple[str, str], step: str | None = "a", **more: str) -> StepEvent:
    made = tuple(CallMade(id=name, name=tool, input={"x": name}) for name, tool in calls)
    return step, MessageSaid(role=role, content=content, tool_calls=made or None, **more)


def tool_started(name: str, tool: str, step: str = "a") -> StepEvent:
    return step, ToolStarted(tool_id=name, name=tool, input={"x": name})


def tool_completed(name: str, tool: str, output: str = "out", step: str = "a", **more: object) -> StepEvent:
    given: dict[str, object] = {"status": "ok", "exit_code": 0, **more}
    return step, ToolCompleted(tool_id=name, name=tool, output=output, **given)  # type: ignore[arg-type]


def step_started(step: str = "a", cache: str = "miss") -> StepEvent:
    return step, StepStarted(title="A", cache=cache)  # type: ignore[arg-type]


def step_completed(status: str, step: str = "a", usage: Usage | None = None, key: str | None = None) -> StepEvent:
    return step, StepCompleted(status=status, summary="", usage=usage or Usage(), key=key)  # type: ignore[arg-type]


def run_completed(subtype: Subtype) -> StepEvent:
    return None, RunCompleted(subtype=subtype, is_error=subtype != "success", exit_code=0, result="")


RUN_START = (
    run_started(),
    message_said("user", "the request", step=None),
    message_said("context", "<stdin>x</stdin>", step=None),
    plan_made(),
)


class LogBuilder:
    """A log to write runs into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seq = 0

    def add_run(self, run_id: str, *told: StepEvent) -> None:
        with self.path.open("ab") as file:
            for step, event in told:
                self._seq += 1
                attempt = None if step is None else 1
                place = Envelope(
                    seq=self._seq, ts="t", session_id="s", run_id=run_id, event=event, step_id=step, attempt=attempt
                )
                file.write(to_line(place))

    def unfinished(self, run_id: str = "r1") -> UnfinishedRun:
        return unfinished_run(self.path, run_id, EFFECTS.get)


def rebuild_step(log: LogBuilder, *told: StepEvent) -> UnfinishedStep:
    log.add_run("r1", *RUN_START, step_started(), *told)
    return log.unfinished().steps["a"]


def assistant_calls(*names: tuple[str, str], content: str = "") -> Message:
    made = tuple(ToolCall(id=name, name=tool, arguments={"x": name}) for name, tool in names)
    return Message(role="assistant", content=content, tool_calls=made)


def tool_result(name: str, content: str) -> Message:
    return Message(role="tool", content=content, tool_call_id=name)
