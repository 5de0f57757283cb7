"""Resolves `agent resume`, `-c`, `-r` and `--fork` to a session and the run to resume."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import typer

from agent.sessions.resume.lookup import (
    ResumableRun,
    find_resumable_run,
    is_newest_run,
    is_unfinished,
    last_session,
    last_unfinished,
    unfinished_in,
)
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.upkeep.fork import fork
from agent.sessions.views.session_summary import RunRecord, read_session
from agent.vocabulary.errors import AgentError, InputError, UsageError
from cli.run.flags import RunFlags
from cli.run.progress import print_stderr
from cli.screen.format import shorten_path
from cli.screen.sanitize import sanitize
from tooling.contract.fast_dataclass import dataclass

_HINT = 'to continue with a new task: agent run --continue "your task"'
_RUNS_HINT = "`agent runs list` shows all; name one: agent resume RUN"
_REQUEST_CHARS = 60
NONE_HERE = "there is no unfinished run in this folder"
NEWER_HERE = "newer runs were started in this folder"
NOT_RESUMED = "nothing was resumed"
NOTHING_TO_RESUME = "there is nothing to resume"
_START_AGAIN = 'give the task again: agent run --continue "your task"'
FINISHED = "finished successfully"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTarget:
    """The session to continue, and the run to resume in it unless there is a new task.

    `cwd` is None for the session's own workspace; `settings` are inherited from the previous run.
    """

    session_id: str
    run_id: str | None
    cwd: Path | None
    settings: Mapping[str, object]


def find_resume_target(flags: RunFlags, store: SessionStore, *, can_ask: bool) -> ResumeTarget:
    """Resolve the flags, forking the session if requested; a target chosen without a name is reported or confirmed."""
    before = _find_unfinished(flags, store) if flags.has_no_task else _last_run(_find_session(flags, store))
    if flags.has_no_task:
        check_manifest(before.run, is_given=flags.manifest is not None)
    if not (flags.finish or flags.resume):
        _announce(before, flags, store, can_ask=can_ask)
    target = ResumeTarget(
        session_id=before.folder.id,
        run_id=before.run.run_id if flags.has_no_task else None,
        cwd=before.cwd,
        settings=_inherited_settings(before, flags),
    )
    return _fork(target, before.folder, store) if flags.fork else target


def _announce(before: ResumableRun, flags: RunFlags, store: SessionStore, *, can_ask: bool) -> None:
    """Report the chosen run or session; ask before resuming one that is not the newest, or of another folder."""
    where = "" if before.cwd in (None, _here(flags)) else f" in {shorten_path(before.run.cwd)}"
    text = f"{before.run.run_id}{where}, {_describe(before.run)}"
    if flags.has_no_task and can_ask and (where or not is_newest_run(store, before)):
        why = NONE_HERE if where else NEWER_HERE
        if not typer.confirm(f"{why}; resume {text}?", default=True, err=True):
            raise AgentError(NOT_RESUMED, _RUNS_HINT)
    elif not (flags.quiet or flags.output_format == "stream-json"):
        print_stderr(
            f"last unfinished run: {text}" if flags.has_no_task else f"session {before.folder.id}: last {text}"
        )


def _describe(run: RunRecord) -> str:
    started = f"{datetime.fromisoformat(run.date).astimezone():%Y-%m-%d %H:%M}" if run.date else "no date"
    request = sanitize(" ".join(run.user.split()))
    return f"{started}: {request if len(request) <= _REQUEST_CHARS else request[: _REQUEST_CHARS - 1] + '…'}"


def _here(flags: RunFlags) -> Path | None:
    """Return the folder whose sessions have priority; None if it was deleted."""
    try:
        return flags.cwd.resolve() if flags.cwd else Path.cwd()
    except OSError:
        return None


def _find_unfinished(flags: RunFlags, store: SessionStore) -> ResumableRun:
    """Return the run to resume, or raise UsageError saying why there is none."""
    if flags.finish == "":
        return last_unfinished(store, _here(flags))
    name = flags.finish or flags.resume
    if name is not None and (candidate := _find_run(name, store)):
        return check_unfinished(candidate)
    folder = last_session(store, _here(flags)) if name is None else store.find(name)
    in_session = unfinished_in(folder)
    if in_session is None and (lost := _lost_request(folder)):
        raise UsageError(f"run {lost} was interrupted before its task was saved; {NOTHING_TO_RESUME}", _START_AGAIN)
    if in_session is None:
        raise UsageError(f"all runs of session {folder.id} have finished; {NOTHING_TO_RESUME}", _HINT)
    return in_session


def check_unfinished(found: ResumableRun) -> ResumableRun:
    """Return a run that can be resumed. Raises UsageError if there is nothing left to do."""
    if is_unfinished(found.run):
        return found
    is_success = found.run.subtype == "success"
    why = FINISHED if is_success else "only made a plan" if found.run.plan_only else "has no task"
    raise UsageError(f"run {found.run.run_id} {why}; {NOTHING_TO_RESUME}", _HINT)


def check_manifest(run: RunRecord, *, is_given: bool) -> None:
    """Raise UsageError for a run that had a manifest: without it, the rest could do more than it was started for."""
    if run.manifest_file and not is_given:
        raise UsageError(
            f"run {run.run_id} was limited by the manifest {run.manifest_file}",
            f"give it again: agent resume {run.run_id} --manifest {shlex.quote(run.manifest_file)}",
        )


def _lost_request(folder: SessionFolder) -> str | None:
    """Return the last run of a session if its log ends before the task."""
    runs = read_session(folder).runs
    return runs[-1].run_id if runs and runs[-1].subtype == "unfinished" and not runs[-1].user else None


def _find_session(flags: RunFlags, store: SessionStore) -> SessionFolder:
    """Return the session for a new task."""
    if flags.resume is None:
        return last_session(store, _here(flags))
    named = _find_run(flags.resume, store)
    return named.folder if named else store.find(flags.resume)


def _find_run(name: str, store: SessionStore) -> ResumableRun | None:
    """Find a run by id; None if the name is that of a session."""
    try:
        store.find(name)
    except InputError:
        if name.startswith("run-"):
            return find_resumable_run(store, name)
    return None


def _last_run(folder: SessionFolder) -> ResumableRun:
    runs = read_session(folder).runs
    return ResumableRun(folder=folder, run=runs[-1] if runs else RunRecord(run_id="", date=""))


def _inherited_settings(before: ResumableRun, flags: RunFlags) -> dict[str, object]:
    """Return the previous run's settings; a new task inherits only the backend and its image, not the model."""
    assigned = {text.partition("=")[0].strip() for text in flags.assignments}
    if "backend" in {*assigned, *flags.settings}:
        assigned.add("docker_image")
    settings = before.settings.items()
    return {
        name: value
        for name, value in settings
        if name not in assigned and (flags.has_no_task or name in ("backend", "docker_image"))
    }


def _fork(target: ResumeTarget, folder: SessionFolder, store: SessionStore) -> ResumeTarget:
    copy = fork(store, folder)
    print_stderr(forked_text(folder.id, copy.id))
    return replace(target, session_id=copy.id)


def forked_text(session_id: str, copy_id: str) -> str:
    return f"session {session_id} continues as {copy_id}"
