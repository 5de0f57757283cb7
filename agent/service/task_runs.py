"""Looks up the runs of a task in the log of its session: one to resume, or one that has already finished."""

from agent.protocol.events import RunCompleted, RunStarted
from agent.service.task import TaskOutcome, TaskState
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder
from agent.sessions.views.session_summary import read_all_runs
from agent.vocabulary import exit_codes
from tooling.contract.fast_dataclass import dataclass

# Failures that another attempt may change: the provider was overloaded, or the work itself failed.
_TRANSIENT = frozenset({exit_codes.FAILED, exit_codes.RETRY_LATER})
_COMPLETED = ("success", "partial")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRuns:
    """The runs of a task in the log: the run to resume, if any, and the outcome of the last one, if it ended."""

    resumes: str = ""
    outcome: TaskOutcome | None = None


def find_runs(folder: SessionFolder, task_id: str) -> TaskRuns:
    """Return the runs of earlier attempts of a task in its session."""
    started = (line.envelope() for line in read_lines(folder.events, only=RunStarted.type))
    ids = [found.run_id for found in started if found and _is_of(found.event, task_id)]
    if not ids:
        return TaskRuns()
    last = next((run for run in read_all_runs(folder).runs if run.run_id == ids[-1]), None)
    resumes = ids[-1] if last and last.user else ""
    ended = (line.envelope() for line in read_lines(folder.events, only=RunCompleted.type))
    results = [found.event for found in ended if found and found.run_id == ids[-1]]
    outcome = outcome_of(results[-1], ids[-1]) if results and isinstance(results[-1], RunCompleted) else None
    return TaskRuns(resumes=resumes, outcome=outcome)


def _is_of(event: object, task_id: str) -> bool:
    return isinstance(event, RunStarted) and event.task_id == task_id


def outcome_of(result: RunCompleted, run_id: str) -> TaskOutcome:
    """Build the outcome of a task from the result of its run."""
    is_completed = result.subtype in _COMPLETED
    return TaskOutcome(
        state=TaskState.COMPLETED if is_completed else TaskState.FAILED,
        exit_code=result.exit_code,
        answer=result.result,
        error="" if is_completed else result.error or result.subtype,
        subtype=result.subtype,
        run_id=run_id,
        cost_usd=result.total_cost_usd or 0.0,
        num_turns=result.num_turns,
        duration_ms=result.duration_ms,
        artifacts=result.artifacts,
        is_transient=not is_completed and result.exit_code in _TRANSIENT,
    )
