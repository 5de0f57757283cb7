"""Judges past commands by the current rules, to show the effect of an edited rule."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.config.settings import Settings
from agent.diagnostics.treatment import Treatment, treat_command
from agent.protocol.events import ApprovalRequested, ApprovalResolved, RunStarted, ToolCompleted, ToolStarted
from agent.sessions.log.event_log import read_events
from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.safety.action_judge import ActionJudge
from tooling.tools.run_command import python_command

_NO_ID = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCommand:
    """A logged command and its treatment."""

    command: str
    cwd: Path
    treatment: Treatment


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentChange:
    """A command that would be treated differently now."""

    command: str
    before: Treatment
    now: Treatment
    reason: str


def find_changes(data_dir: Path, settings: Settings, *, days: float) -> tuple[int, list[TreatmentChange]]:
    """Return the number of past commands, and those that the current rules treat differently."""
    since = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    past = dict.fromkeys(
        command
        for log in sorted((data_dir / "sessions").glob("*/events.jsonl"))
        for command in _past_commands(log, since)
    )
    judged = [(then, *_current_treatment(then, settings)) for then in past]
    changes = [
        TreatmentChange(command=then.command, before=then.treatment, now=now, reason=reason)
        for then, now, reason in judged
        if now != then.treatment
    ]
    return len(past), changes


def _past_commands(log: Path, since: str) -> Iterator[PastCommand]:
    cwd, is_relevant = Path("/"), True
    started: dict[tuple[str | None, str], str] = {}
    asked: dict[str, str] = {}
    for envelope in read_events(log):
        match envelope.event:
            case RunStarted(cwd=folder, backend=backend, approval_mode=mode):
                # Other modes and backends treat commands differently regardless of the rules.
                cwd, is_relevant = Path(folder), backend == "sandbox" and mode in ("ask", "auto-edit")
            case ToolStarted(name="run_command", tool_id=tool_id, input=arguments):
                started[(envelope.step_id, tool_id)] = str(arguments.get("command", ""))
            case ToolStarted(name="run_python", tool_id=tool_id, input=arguments):
                started[(envelope.step_id, tool_id)] = python_command(str(arguments.get("code", "")))
            case ApprovalRequested(approval_id=approval_id, command=command):
                asked[approval_id] = command
            case ApprovalResolved(approval_id=approval_id, by="a rule"):
                # A rule refused it: the user was not asked.
                asked.pop(approval_id, None)
            case ToolCompleted(tool_id=tool_id, status=status):
                command = started.pop((envelope.step_id, tool_id), "")
                if command and is_relevant and envelope.ts >= since:
                    yield PastCommand(
                        command=command, cwd=cwd, treatment=_past_treatment(status, was_asked=command in asked.values())
                    )
            case _:
                pass


def _past_treatment(status: str, *, was_asked: bool) -> Treatment:
    if status == "blocked":
        return "block"
    if was_asked:
        return "ask"
    return "deny" if status in ("denied", "deferred") else "allow"


def _current_treatment(past: PastCommand, settings: Settings) -> tuple[Treatment, str]:
    ctx = ExecCtx(user_id=_NO_ID, task_id=_NO_ID, working_dir=past.cwd)
    action = Action(tool="run_command", effect="execute", subject=past.command, cwd=past.cwd)
    now = treat_command(past.command, ActionJudge().judge(action, ctx), past.cwd, settings, mode="ask")
    return now.treatment, now.reason
