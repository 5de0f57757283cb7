"""Validates a new request and completes it: session, time of the first start, trace id."""

import json
import uuid
from dataclasses import replace
from datetime import datetime

from agent.service.night_window import NightWindow
from agent.service.task import MAX_PRIORITY, MIN_PRIORITY, ScheduleMode, TaskRequest
from agent.sessions.store import new_session_id
from agent.vocabulary.errors import InputError
from tooling.contract.json_codec import encode

MAX_PROMPT_CHARS = 200_000


def complete_request(request: TaskRequest, now: datetime, window: NightWindow) -> TaskRequest:
    """Return a request that can be queued. Raises InputError if it is invalid."""
    if not request.prompt.strip():
        raise InputError("the task is empty", 'say what to do: agent task create "your task"')
    if "\0" in request.prompt or len(request.prompt) > MAX_PROMPT_CHARS:
        raise InputError(f"the task has a NUL character, or more than {MAX_PROMPT_CHARS:,} characters")
    check_encoding(request, "task")
    if not MIN_PRIORITY <= request.priority <= MAX_PRIORITY:
        raise InputError(f"the priority is a number from {MIN_PRIORITY} to {MAX_PRIORITY}, not {request.priority}")
    _check_addresses(request)
    run_at = request.run_at
    if request.mode is ScheduleMode.NIGHTLY:
        run_at = window.next_opening(max(now, run_at) if run_at else now)
    return _with_ids(replace(request, prompt=request.prompt.strip(), run_at=run_at), now)


def _check_addresses(request: TaskRequest) -> None:
    """Refuse what the run would refuse, perhaps hours later; whether a folder exists is known by the worker alone."""
    if request.callback_url and not request.callback_url.startswith(("http://", "https://")):
        raise InputError("callback_url: expected a URL starting with http:// or https://")
    if request.config.git_branch and not request.config.repo_url:
        raise InputError("a branch needs a repository", "give repo_url, too")
    if "://" in request.config.repo_url:
        from agent.workspace.clone import parse_url

        parse_url(request.config.repo_url)


def check_encoding(value: object, what: str) -> None:
    """Raise InputError for text that a database cannot store."""
    try:
        json.dumps(encode(value), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        hint = "names of folders and files count, too"
        raise InputError(f"the {what} has bytes that are not UTF-8", hint) from error


def fired_request(request: TaskRequest, schedule: str, now: datetime) -> TaskRequest:
    """Return the request for one task of a schedule: a new session, unless one is named, and a new trace."""
    return _with_ids(replace(request, schedule=schedule, trace_id=""), now)


def _with_ids(request: TaskRequest, now: datetime) -> TaskRequest:
    session_id = request.session_id or new_session_id(now)
    return replace(request, session_id=session_id, trace_id=request.trace_id or uuid.uuid4().hex)
