"""Finds what to go on with: the last session, the last run that did not finish, or one by its id."""

from datetime import UTC, datetime
from pathlib import Path

from agent.sessions.lock import lock_holder
from agent.sessions.resume.resume_state import latest_of_chains, runs_in_chain
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.listing import find_runs_by_prefix, newest_sessions
from agent.sessions.views.session_summary import RunRecord, SessionRecord, read_all_runs, read_session
from agent.vocabulary.errors import InputError, UsageError
from tooling.contract.fast_dataclass import dataclass

_RUN_PREFIX = "run-"
# Models that only stand for something else.
_PLACEHOLDER_MODELS = ("", "replay")
_HINT = "`agent runs list` shows them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumableRun:
    """A run in its session."""

    folder: SessionFolder
    run: RunRecord

    @property
    def cwd(self) -> Path | None:
        """Return where it worked; None for the session's own workspace."""
        is_elsewhere = self.run.cwd and Path(self.run.cwd).resolve() != self.folder.workspace.resolve()
        return Path(self.run.cwd) if is_elsewhere else None

    @property
    def settings(self) -> dict[str, object]:
        """Return the settings that stay as they were unless somebody says otherwise; what is allowed is said anew."""
        run = self.run
        settings: dict[str, object] = {"backend": run.backend} if run.backend else {}
        if run.model not in _PLACEHOLDER_MODELS:
            settings["model"] = run.model
            if run.planner_model not in (*_PLACEHOLDER_MODELS, run.model):
                settings["planner_model"] = run.planner_model
        return settings


def last_session(store: SessionStore) -> SessionFolder:
    """Return the session in which something happened last."""
    for one in newest_sessions(store):
        return store.folder_for(one.id)
    raise UsageError("there is no session yet", 'begin one: agent run "your task"')


def last_unfinished(store: SessionStore) -> ResumableRun:
    """Return the run that began last among those that did not finish; what runs at this moment is none of them."""
    best: ResumableRun | None = None
    problem: OSError | None = None
    for one in newest_sessions(store):
        # A session that changed before that run began cannot hold a later one.
        if best and one.modified_at < _started_at(best.run):
            break
        folder = store.folder_for(one.id)
        try:
            found = unfinished_in(folder) if lock_holder(folder) is None else None
        except OSError as error:
            found, problem = None, error
        if found and (best is None or found.run.date > best.run.date):
            best = found
    if best is None and problem:
        raise problem
    if best is None:
        raise UsageError("there is no unfinished run", _HINT)
    return best


def unfinished_in(folder: SessionFolder) -> ResumableRun | None:
    """Return the newest run of a session that did not finish and that nobody went on with."""
    record = read_session(folder)
    open_ends = latest_of_chains(_parents(record), (run.run_id for run in record.runs if is_unfinished(run)))
    return _resumable_run(folder, record, open_ends[-1]) if open_ends else None


def find_resumable_run(store: SessionStore, name: str) -> ResumableRun:
    """Return a run by its id or the beginning of it; of a chain of runs the newest."""
    found: dict[str, ResumableRun] = {}
    for run_id, folder in find_runs_by_prefix(store, name).items() if name.startswith(_RUN_PREFIX) else ():
        record = read_all_runs(folder)
        last = runs_in_chain(_parents(record), run_id)[-1]
        found[last] = _resumable_run(folder, record, last)
    if not found:
        raise InputError(f"there is no run {name!r}", _HINT)
    if len(found) > 1:
        raise InputError(f"{name!r} is the beginning of {len(found)} runs", "give more of the id")
    return next(iter(found.values()))


def is_unfinished(run: RunRecord) -> bool:
    """Say whether there is something to go on with: a run that was asked to do something and did not succeed."""
    return run.subtype != "success" and bool(run.user) and not run.plan_only and run.run_id.startswith(_RUN_PREFIX)


def _started_at(run: RunRecord) -> float:
    try:
        return datetime.fromisoformat(run.date).astimezone(UTC).timestamp()
    except ValueError:
        return 0.0


def _parents(record: SessionRecord) -> dict[str, str | None]:
    return {run.run_id: run.resumes for run in record.runs}


def _resumable_run(folder: SessionFolder, record: SessionRecord, run_id: str) -> ResumableRun:
    return ResumableRun(folder=folder, run=next(run for run in record.runs if run.run_id == run_id))
