"""Completes sessions, runs and steps, newest first."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import get_args

from agent.config.user_dirs import data_path
from agent.protocol.events import Event
from agent.sessions.resume.lookup import is_unfinished
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.listing import LAST, find_run, newest_runs, newest_sessions, run_rows, session_row
from agent.sessions.views.session_summary import RunRecord, read_session
from cli.completion.candidates import CompletionItem, CompletionRequest, CompletionSource

_LIMIT = 50
_RUN_PREFIX = "run-"


def _store(request: CompletionRequest) -> SessionStore:
    return SessionStore(data_path(request.environ))


def _sessions(request: CompletionRequest) -> Iterable[CompletionItem]:
    store = _store(request)
    given = request.given.get(request.parameter.name, ())
    matching = (
        entry for entry in newest_sessions(store) if entry.id.startswith(request.word) and entry.id not in given
    )
    rows = (session_row(store.folder_for(entry.id)) for entry in islice(matching, _LIMIT))
    return (CompletionItem(word=row.id, description=row.title) for row in rows)


def _runs(request: CompletionRequest) -> Iterable[CompletionItem]:
    session = request.first("session")
    store = _store(request)
    rows = run_rows(store.find(session)) if session else newest_runs(store, _LIMIT)
    last = [CompletionItem(word=LAST, description="the newest run")] if "session" not in request.given and rows else []
    return [*last, *(CompletionItem(word=row.run_id, description=f"{row.status}: {row.request}") for row in rows)]


def _unfinished(request: CompletionRequest) -> Iterable[CompletionItem]:
    store = _store(request)
    recent = (_runs_of(store.folder_for(entry.id)) for entry in islice(newest_sessions(store), _LIMIT))
    runs = (run for session in recent for run in reversed(session) if is_unfinished(run))
    return (CompletionItem(word=run.run_id, description=f"{run.subtype}: {run.user}") for run in runs)


def _runs_of(folder: SessionFolder) -> tuple[RunRecord, ...]:
    try:
        return read_session(folder).runs
    except OSError:
        return ()


def _resumable(request: CompletionRequest) -> Iterable[CompletionItem]:
    return _unfinished(request) if request.word.startswith(_RUN_PREFIX) else _sessions(request)


def _steps(request: CompletionRequest) -> Iterable[CompletionItem]:
    record = _find_record(request)
    if record is None:
        return
    results = {step.id: f"{step.status}: {step.summary}" for step in record.step_results}
    titles = dict(record.titled_steps)
    for step_id in dict.fromkeys((*titles, *results)):
        yield CompletionItem(word=step_id, description=results.get(step_id) or titles[step_id])


def _find_record(request: CompletionRequest) -> RunRecord | None:
    """Return the run whose steps are completed: the given one, else the newest of the session."""
    store = _store(request)
    if run := request.first("run"):
        ref = find_run(store, run)
        runs = [record for record in read_session(ref.folder).runs if record.run_id == ref.run_id]
    else:
        runs = list(read_session(store.find(request.first("session"))).runs)
    return runs[-1] if runs else None


def _event_types(request: CompletionRequest) -> Iterable[CompletionItem]:
    return (
        CompletionItem(word=event.type, description=(event.__doc__ or "").partition("\n")[0])
        for event in get_args(Event)
    )


VALUES: Mapping[str, CompletionSource] = {
    "session": _sessions,
    "sessions": _sessions,
    "resume": _resumable,
    "finish": _unfinished,
    "run": _runs,
    "step": _steps,
    "steps": _steps,
    "types": _event_types,
}
