"""Finds the run to resume: the last unfinished one, the last of a session, or one by id."""

from datetime import UTC, datetime
from pathlib import Path

from agent.sessions.lock import lock_holder
from agent.sessions.resume.resume_state import latest_of_chains, runs_in_chain
from agent.sessions.store import LONGER_PREFIX, SessionFolder, SessionStore
from agent.sessions.views.listing import find_runs_by_prefix, newest_sessions
from agent.sessions.views.session_summary import (
    RunRecord,
    SessionRecord,
    active_runs,
    read_all_runs,
    read_head,
    read_session,
)
from agent.vocabulary.errors import InputError, UsageError
from tooling.contract.fast_dataclass import dataclass

_RUN_PREFIX = "run-"
# Not real model names, so not worth keeping as a setting.
_PLACEHOLDER_MODELS = ("", "replay")
_HINT = "`agent runs list` shows them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumableRun:
    """A run in its session."""

    folder: SessionFolder
    run: RunRecord

    @property
    def cwd(self) -> Path | None:
        """The run's working folder; None for the session's own workspace."""
        return self.folder.folder_of_user(self.run.cwd)

    @property
    def settings(self) -> dict[str, object]:
        """The settings to keep when the run is resumed; permissions are not among them and must be given again."""
        run = self.run
        settings: dict[str, object] = {"backend": run.backend} if run.backend else {}
        if run.image:
            settings["docker_image"] = run.image
        if run.model not in _PLACEHOLDER_MODELS:
            settings["model"] = run.model
            if run.planner_model not in (*_PLACEHOLDER_MODELS, run.model):
                settings["planner_model"] = run.planner_model
        return settings


def last_session(store: SessionStore, here: Path | None = None) -> SessionFolder:
    """Return the most recently used session of a folder, else of any; sessions with nothing but plans are skipped."""
    last: SessionFolder | None = None
    for entry in newest_sessions(store):
        folder = store.folder_for(entry.id)
        is_here = here is None or _is_here(folder, here)
        if (last is None or is_here) and _has_worked(folder):
            if is_here:
                return folder
            last = folder
    if last is None:
        raise UsageError("there is no session yet", 'start one: agent run "your task"')
    return last


def last_unfinished(store: SessionStore, here: Path | None = None) -> ResumableRun:
    """Return the latest unfinished run of a folder, else of any; runs in progress are skipped."""
    best: ResumableRun | None = None
    elsewhere: ResumableRun | None = None
    problem: OSError | None = None
    for entry in newest_sessions(store):
        # A session last modified before that run started cannot contain a later one.
        if best and entry.modified_at < _started_at(best.run):
            break
        folder = store.folder_for(entry.id)
        if elsewhere and entry.modified_at < _started_at(elsewhere.run) and here and not _is_here(folder, here):
            continue
        try:
            found = unfinished_in(folder) if lock_holder(folder) is None else None
        except OSError as error:
            found, problem = None, error
        if found and (here is None or found.run.cwd == str(here)):
            best = _later(best, found)
        elif found:
            elsewhere = _later(elsewhere, found)
    best = best or elsewhere
    if best is None and problem:
        raise problem
    if best is None:
        raise UsageError("there is no unfinished run", _HINT)
    return best


def is_newest_run(store: SessionStore, run: ResumableRun) -> bool:
    """Whether no later run was started in the folder of a run."""
    sessions = (store.folder_for(entry.id) for entry in newest_sessions(store))
    newest = next((folder for folder in sessions if _is_here(folder, Path(run.run.cwd)) and _has_worked(folder)), None)
    return newest == run.folder and read_session(run.folder).runs[-1].run_id == run.run.run_id


def _later(one: ResumableRun | None, other: ResumableRun) -> ResumableRun:
    return one if one and one.run.date >= other.run.date else other


def _is_here(folder: SessionFolder, here: Path) -> bool:
    """Whether the last run of a session worked in a folder; False if the session is unreadable."""
    try:
        return read_head(folder).cwd == str(here)
    except OSError:
        return False


def _has_worked(folder: SessionFolder) -> bool:
    """Whether a session has a run that was more than a plan."""
    try:
        return any(run.run_id.startswith(_RUN_PREFIX) and not run.plan_only for run in read_session(folder).runs)
    except OSError:
        return False


def unfinished_in(folder: SessionFolder) -> ResumableRun | None:
    """Return the newest run of a session that is unfinished and was not resumed, if any.

    One that failed before it could do anything has nothing to continue: it is resumed only by its name.
    """
    record = read_session(folder)
    runs = (run for run in active_runs(record.runs) if is_unfinished(run) and not run.failed_to_start)
    open_ends = latest_of_chains(_parents(record), (run.run_id for run in runs))
    return _resumable_run(folder, record, open_ends[-1]) if open_ends else None


def unfinished_at_end(folder: SessionFolder) -> ResumableRun | None:
    """Return the unfinished run of a session, unless the user has sent other requests since."""
    found = unfinished_in(folder)
    requests = [run for run in active_runs(read_session(folder).runs) if run.run_id.startswith(_RUN_PREFIX)]
    worked = [run for run in requests if not run.plan_only and not run.failed_to_start]
    return found if found and worked[-1].run_id == found.run.run_id else None


def find_resumable_run(store: SessionStore, prefix: str) -> ResumableRun:
    """Return the run with this id or unique id prefix, or the newest run that resumed it."""
    found: dict[str, ResumableRun] = {}
    for run_id, folder in find_runs_by_prefix(store, prefix).items() if prefix.startswith(_RUN_PREFIX) else ():
        record = read_all_runs(folder)
        last = runs_in_chain(_parents(record), run_id)[-1]
        if last not in (run.run_id for run in active_runs(record.runs)):
            raise UsageError(f"{last} was taken back by a rewind", "its conversation and files are gone; ask again")
        found[last] = _resumable_run(folder, record, last)
    if not found:
        raise InputError(f"there is no run {prefix!r}", _HINT)
    if len(found) > 1:
        raise InputError(f"{prefix!r} matches {len(found)} runs", LONGER_PREFIX)
    return next(iter(found.values()))


def is_unfinished(run: RunRecord) -> bool:
    """Whether a run can be resumed: it had a request, was more than a plan, and did not succeed."""
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
