"""Where a command line goes on: `agent resume`, `-c`, `-r` and `--fork`, read from what was left behind."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.sessions.resume.lookup import (
    ResumableRun,
    find_resumable_run,
    is_unfinished,
    last_session,
    last_unfinished,
    unfinished_in,
)
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.upkeep.fork import fork
from agent.sessions.views.session_summary import RunRecord, read_session
from agent.vocabulary.errors import InputError, UsageError
from cli.run.flags import RunFlags
from cli.run.progress import print_stderr
from tooling.contract.fast_dataclass import dataclass

_HINT = 'say what to do next: agent run --continue "your task"'


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTarget:
    """A session to go on in, and the run to be finished in it, if it is not a new request.

    `cwd` is None for the session's own workspace; `settings` are those of the run before, where they still hold.
    """

    session_id: str
    run_id: str | None
    cwd: Path | None
    settings: Mapping[str, object]


def find_resume_target(flags: RunFlags, store: SessionStore) -> ResumeTarget:
    """Return where to go on."""
    before = _find_unfinished(flags, store) if flags.has_no_task else _last_run(_find_session(flags, store))
    going = ResumeTarget(
        session_id=before.folder.id,
        run_id=before.run.run_id if flags.has_no_task else None,
        cwd=before.cwd,
        settings=_inherited_settings(before, flags),
    )
    return _fork(going, before.folder, store) if flags.fork else going


def _find_unfinished(flags: RunFlags, store: SessionStore) -> ResumableRun:
    """Return the run to be finished, or say why there is none."""
    if flags.finish == "":
        return last_unfinished(store)
    name = flags.finish or flags.resume
    if name is not None and (found := _find_run(name, store)):
        if not is_unfinished(found.run):
            why = "finished successfully" if found.run.subtype == "success" else "was not asked to do anything"
            raise UsageError(f"run {found.run.run_id} {why}; there is nothing to resume", _HINT)
        return found
    folder = last_session(store) if name is None else store.find(name)
    in_session = unfinished_in(folder)
    if in_session is None:
        raise UsageError(f"the runs of session {folder.id} have finished; there is nothing to resume", _HINT)
    return in_session


def _find_session(flags: RunFlags, store: SessionStore) -> SessionFolder:
    """Return the session that a new request goes to."""
    if flags.resume is None:
        return last_session(store)
    named = _find_run(flags.resume, store)
    return named.folder if named else store.find(flags.resume)


def _find_run(name: str, store: SessionStore) -> ResumableRun | None:
    """Return the run of this name, None for the name of a session."""
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
    """Return the settings that stay as they were; a new request is for the model of today."""
    assigned = {text.partition("=")[0].strip() for text in flags.assignments}
    settings = before.settings.items()
    return {
        name: value for name, value in settings if name not in assigned and (flags.has_no_task or name == "backend")
    }


def _fork(going: ResumeTarget, folder: SessionFolder, store: SessionStore) -> ResumeTarget:
    copy = fork(store, folder)
    print_stderr(f"session {folder.id} goes on as {copy.id}")
    return replace(going, session_id=copy.id)
