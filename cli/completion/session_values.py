"""Sessions, runs and steps as candidates, the newest first; titles are told with their ids."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import get_args

from agent.config.places import data_path
from agent.protocol.events import Event
from agent.sessions.resume.lookup import is_unfinished
from agent.sessions.store import SessionStore
from agent.sessions.views.listing import LAST, find_run, newest_first, newest_runs, row_of, runs_of
from agent.sessions.views.session_summary import RunRecord, read_session
from cli.completion.values import Asked, Source, Value

_MOST = 50
_RUN = "run-"


def _store(asked: Asked) -> SessionStore:
    return SessionStore(data_path(asked.environ))


def _sessions(asked: Asked) -> Iterable[Value]:
    store = _store(asked)
    taken = asked.given.get(asked.parameter.name, ())
    fitting = (one for one in newest_first(store) if one.id.startswith(asked.word) and one.id not in taken)
    rows = (row_of(store.named(one.id)) for one in islice(fitting, _MOST))
    return (Value(word=row.id, about=row.title) for row in rows)


def _runs(asked: Asked) -> Iterable[Value]:
    session = asked.first("session")
    store = _store(asked)
    rows = runs_of(store.existing(session)) if session else newest_runs(store, _MOST)
    named = [Value(word=LAST, about="the newest of all runs")] if "session" not in asked.given and rows else []
    return [*named, *(Value(word=row.run_id, about=f"{row.status}: {row.request}") for row in rows)]


def _unfinished(asked: Asked) -> Iterable[Value]:
    store = _store(asked)
    recent = (read_session(store.named(one.id)) for one in islice(newest_first(store), _MOST))
    runs = (run for session in recent for run in reversed(session.runs) if is_unfinished(run))
    return (Value(word=run.run_id, about=f"{run.subtype}: {run.user}") for run in runs)


def _resumable(asked: Asked) -> Iterable[Value]:
    return _unfinished(asked) if asked.word.startswith(_RUN) else _sessions(asked)


def _steps(asked: Asked) -> Iterable[Value]:
    record = _record(asked)
    if record is None:
        return
    ended = {step.id: f"{step.status}: {step.summary}" for step in record.step_results}
    titles = dict(record.titled_steps)
    for name in dict.fromkeys((*titles, *ended)):
        yield Value(word=name, about=ended.get(name) or titles[name])


def _record(asked: Asked) -> RunRecord | None:
    """Return the run whose steps are meant: the one given, else the newest of the session."""
    store = _store(asked)
    if run := asked.first("run"):
        found = find_run(store, run)
        runs = [one for one in read_session(found.folder).runs if one.run_id == found.run_id]
    else:
        runs = list(read_session(store.existing(asked.first("session"))).runs)
    return runs[-1] if runs else None


def _event_types(asked: Asked) -> Iterable[Value]:
    return (Value(word=event.type, about=(event.__doc__ or "").partition("\n")[0]) for event in get_args(Event))


VALUES: Mapping[str, Source] = {
    "session": _sessions,
    "sessions": _sessions,
    "resume": _resumable,
    "finish": _unfinished,
    "run": _runs,
    "step": _steps,
    "steps": _steps,
    "types": _event_types,
}
