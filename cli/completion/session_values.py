"""Sessions, runs and steps as candidates, the newest first; titles are told with their ids."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import get_args

from agent.config.user_dirs import data_path
from agent.protocol.events import Event
from agent.sessions.resume.lookup import is_unfinished
from agent.sessions.store import SessionStore
from agent.sessions.views.listing import LAST, find_run, newest_runs, newest_sessions, run_rows, session_row
from agent.sessions.views.session_summary import RunRecord, read_session
from cli.completion.values import CompletionItem, CompletionRequest, CompletionSource

_LIMIT = 50
_RUN_PREFIX = "run-"


def _store(asked: CompletionRequest) -> SessionStore:
    return SessionStore(data_path(asked.environ))


def _sessions(asked: CompletionRequest) -> Iterable[CompletionItem]:
    store = _store(asked)
    taken = asked.given.get(asked.parameter.name, ())
    fitting = (one for one in newest_sessions(store) if one.id.startswith(asked.word) and one.id not in taken)
    rows = (session_row(store.folder_for(one.id)) for one in islice(fitting, _LIMIT))
    return (CompletionItem(word=row.id, description=row.title) for row in rows)


def _runs(asked: CompletionRequest) -> Iterable[CompletionItem]:
    session = asked.first("session")
    store = _store(asked)
    rows = run_rows(store.find(session)) if session else newest_runs(store, _LIMIT)
    named = (
        [CompletionItem(word=LAST, description="the newest of all runs")]
        if "session" not in asked.given and rows
        else []
    )
    return [*named, *(CompletionItem(word=row.run_id, description=f"{row.status}: {row.request}") for row in rows)]


def _unfinished(asked: CompletionRequest) -> Iterable[CompletionItem]:
    store = _store(asked)
    recent = (read_session(store.folder_for(one.id)) for one in islice(newest_sessions(store), _LIMIT))
    runs = (run for session in recent for run in reversed(session.runs) if is_unfinished(run))
    return (CompletionItem(word=run.run_id, description=f"{run.subtype}: {run.user}") for run in runs)


def _resumable(asked: CompletionRequest) -> Iterable[CompletionItem]:
    return _unfinished(asked) if asked.word.startswith(_RUN_PREFIX) else _sessions(asked)


def _steps(asked: CompletionRequest) -> Iterable[CompletionItem]:
    record = _find_record(asked)
    if record is None:
        return
    ended = {step.id: f"{step.status}: {step.summary}" for step in record.step_results}
    titles = dict(record.titled_steps)
    for name in dict.fromkeys((*titles, *ended)):
        yield CompletionItem(word=name, description=ended.get(name) or titles[name])


def _find_record(asked: CompletionRequest) -> RunRecord | None:
    """Return the run whose steps are meant: the one given, else the newest of the session."""
    store = _store(asked)
    if run := asked.first("run"):
        found = find_run(store, run)
        runs = [one for one in read_session(found.folder).runs if one.run_id == found.run_id]
    else:
        runs = list(read_session(store.find(asked.first("session"))).runs)
    return runs[-1] if runs else None


def _event_types(asked: CompletionRequest) -> Iterable[CompletionItem]:
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
