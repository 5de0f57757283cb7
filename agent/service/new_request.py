"""Checks a new request and completes it: session, time of the first start, trace id."""

import uuid
from dataclasses import replace
from datetime import datetime

from agent.service.night_window import NightWindow
from agent.service.task import MAX_PRIORITY, MIN_PRIORITY, ScheduleMode, TaskRequest
from agent.sessions.store import new_session_id
from agent.vocabulary.errors import InputError

MAX_PROMPT_CHARS = 200_000


def complete_request(request: TaskRequest, now: datetime, window: NightWindow) -> TaskRequest:
    """Return a request that can be queued. Raises InputError for one that cannot."""
    if not request.prompt.strip():
        raise InputError("the task is empty", 'say what to do: agent task create "your task"')
    if "\0" in request.prompt or len(request.prompt) > MAX_PROMPT_CHARS:
        raise InputError(f"the task has a NUL character, or more than {MAX_PROMPT_CHARS:,} characters")
    if not MIN_PRIORITY <= request.priority <= MAX_PRIORITY:
        raise InputError(f"the priority is a number from {MIN_PRIORITY} to {MAX_PRIORITY}, not {request.priority}")
    run_at = request.run_at
    if request.mode is ScheduleMode.NIGHTLY:
        run_at = window.next_opening(max(now, run_at) if run_at else now)
    return _with_ids(replace(request, prompt=request.prompt.strip(), run_at=run_at), now)


def fired_request(request: TaskRequest, schedule: str, now: datetime) -> TaskRequest:
    """Return the request of one task of a schedule: a new session, unless one was named, and a new trace."""
    return _with_ids(replace(request, schedule=schedule, trace_id=""), now)


def _with_ids(request: TaskRequest, now: datetime) -> TaskRequest:
    session_id = request.session_id or new_session_id(now)
    return replace(request, session_id=session_id, trace_id=request.trace_id or uuid.uuid4().hex)
