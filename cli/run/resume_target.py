"""Where a command line goes on: `agent resume`, `-c`, `-r` and `--fork`, read from what was left behind."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.sessions.resume.lookup import Found, is_unfinished, last_session, last_unfinished, run_named, unfinished_in
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.upkeep.copying import fork
from agent.sessions.views.session_summary import RunRecord, read_session
from agent.vocabulary.errors import InputError, UsageError
from cli.run.flags import RunFlags
from cli.run.progress import stderr_line
from tooling.contract.fast_dataclass import dataclass

_HINT = 'say what to do next: agent run --continue "your task"'


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingOn:
    """A session to go on in, and the run to be finished in it, if it is not a new request.

    `cwd` is None for the session's own workspace; `settings` are those of the run before, where they still hold.
    """

    session_id: str
    run_id: str | None
    cwd: Path | None
    settings: Mapping[str, object]


def going_on(flags: RunFlags, store: SessionStore) -> GoingOn:
    """Return where to go on."""
    before = _unfinished(flags, store) if flags.asks_nothing_new else _last_run(_session(flags, store))
    going = GoingOn(
        session_id=before.folder.id,
        run_id=before.run.run_id if flags.asks_nothing_new else None,
        cwd=before.cwd,
        settings=_inherited(before, flags),
    )
    return _forked(going, before.folder, store) if flags.fork else going


def _unfinished(flags: RunFlags, store: SessionStore) -> Found:
    """Return the run to be finished, or say why there is none."""
    if flags.finish == "":
        return last_unfinished(store)
    name = flags.finish or flags.resume
    if name is not None and (found := _named_run(name, store)):
        if not is_unfinished(found.run):
            why = "finished successfully" if found.run.subtype == "success" else "was not asked to do anything"
            raise UsageError(f"run {found.run.run_id} {why}; there is nothing to resume", _HINT)
        return found
    folder = last_session(store) if name is None else store.existing(name)
    in_session = unfinished_in(folder)
    if in_session is None:
        raise UsageError(f"the runs of session {folder.id} have finished; there is nothing to resume", _HINT)
    return in_session


def _session(flags: RunFlags, store: SessionStore) -> SessionFolder:
    """Return the session that a new request goes to."""
    if flags.resume is None:
        return last_session(store)
    named = _named_run(flags.resume, store)
    return named.folder if named else store.existing(flags.resume)


def _named_run(name: str, store: SessionStore) -> Found | None:
    """Return the run of this name, None for the name of a session."""
    try:
        store.existing(name)
    except InputError:
        if name.startswith("run-"):
            return run_named(store, name)
    return None


def _last_run(folder: SessionFolder) -> Found:
    runs = read_session(folder).runs
    return Found(folder=folder, run=runs[-1] if runs else RunRecord(run_id="", date=""))


def _inherited(before: Found, flags: RunFlags) -> dict[str, object]:
    """Return the settings that stay as they were; a new request is for the model of today."""
    assigned = {text.partition("=")[0].strip() for text in flags.assignments}
    settings = before.settings.items()
    return {
        name: value
        for name, value in settings
        if name not in assigned and (flags.asks_nothing_new or name == "backend")
    }


def _forked(going: GoingOn, folder: SessionFolder, store: SessionStore) -> GoingOn:
    copy = fork(store, folder)
    stderr_line(f"session {folder.id} goes on as {copy.id}")
    return replace(going, session_id=copy.id)
