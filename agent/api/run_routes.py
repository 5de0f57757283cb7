"""The endpoints for runs and their event streams, for sessions, and for callbacks of executors."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse

from agent.api.event_stream import RunStream
from agent.api.models import CallbackBody
from agent.api.parts import ServerParts
from agent.api.replies import NotFound, Reply, ok
from agent.api.task_routes import ERRORS, PREFIX, IdempotencyKey, Limit, Name
from agent.service.callback_inbox import Callback, CallbackInbox, SessionReport
from agent.service.task import DEFAULT_USER, TaskProgress
from agent.sessions.log.log_index import run_events
from agent.sessions.store import SessionFolder
from agent.sessions.views.listing import (
    RunRef,
    RunRow,
    SessionRow,
    find_run,
    newest_runs,
    newest_sessions,
    run_rows,
    session_row,
    session_rows,
)
from agent.sessions.views.run_summary import RunView, run_view
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode

# Larger than the number of any event, and still exact as a JavaScript number.
_MAX_SEQ = 2**53
Seq = Annotated[int, Query(ge=0, le=_MAX_SEQ, description="leave out events up to this number")]
TraceId = Annotated[str, Header(alias="X-Trace-ID", max_length=100)]
LastEventId = Annotated[str, Header(alias="Last-Event-ID", max_length=40)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionData:
    """A session with its runs, newest first; `sdk_session_id` continues its conversation.

    `report` is built from the callbacks of executors, the only source for a session that runs elsewhere.
    """

    session_id: str
    user_id: str
    status: str
    sdk_session_id: str
    created_at: str
    updated_at: str
    title: str
    cwd: str
    cost_usd: float | None
    runs: tuple[RunRow, ...]
    report: SessionReport | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackReceipt:
    """Receipt of a callback; `is_new` is false for a duplicate."""

    status: str
    is_new: bool


def run_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for runs."""
    router = APIRouter(prefix=PREFIX, tags=["runs"], responses=ERRORS)

    @router.get("/runs", response_model=Reply[list[RunRow]])
    def list_runs(limit: Limit = 50) -> Response:
        """List the newest runs of all sessions."""
        try:
            return ok(newest_runs(parts.store, limit))
        except OSError as error:
            raise NotFound(f"the sessions cannot be read: {error.strerror}") from error

    @router.get("/runs/{run_id}", response_model=Reply[RunView])
    def show_run(run_id: Name) -> Response:
        """Show a run: plan, steps with their calls, outputs and diffs, answer and cost."""
        return ok(read_run(parts, run_id))

    @router.get(
        "/runs/{run_id}/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "The events of the run."}},
    )
    async def stream_events(run_id: Name, after: Seq = 0, last_event_id: LastEventId = "") -> StreamingResponse:
        """Stream the events of a run until it ends, then an event `end`.

        The id of each is its number: a client that reconnects with `Last-Event-ID` misses nothing and gets nothing
        twice.
        """
        run = await asyncio.to_thread(find_known_run, parts, run_id)
        is_number = last_event_id.isascii() and last_event_id.isdecimal()
        seen = min(int(last_event_id), _MAX_SEQ) if is_number else after
        frames = RunStream(run.folder, run.run_id, parts.watch, after=seen).frames()
        return StreamingResponse(frames, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return router


def session_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for sessions."""
    router = APIRouter(prefix=PREFIX, tags=["sessions"], responses=ERRORS)

    @router.get("/sessions", response_model=Reply[list[SessionRow]])
    def list_sessions(limit: Limit = 50) -> Response:
        """List sessions, the one used last first."""
        return ok(list(session_rows(parts.store, newest_sessions(parts.store), limit)))

    @router.get("/sessions/{session_id}", response_model=Reply[SessionData])
    def show_session(session_id: Name) -> Response:
        """Show a session."""
        try:
            report = parts.inbox.report(session_id)
        except InputError:
            report = None
        if report and session_id not in parts.store.ids():
            return ok(_reported_session(session_id, report))
        return ok(_session_data(parts.session(session_id), report))

    @router.get("/sessions/{session_id}/callbacks", response_model=Reply[list[Callback]])
    def list_callbacks(session_id: Name) -> Response:
        """List what executors have reported about a session, oldest first."""
        return ok(parts.inbox.read(session_id))

    return router


def callback_routes(parts: ServerParts) -> APIRouter:
    """Return the receiver of callbacks."""
    router = APIRouter(prefix=PREFIX, tags=["callbacks"], responses=ERRORS)

    @router.post("/callback", response_model=Reply[CallbackReceipt])
    async def receive_callback(body: CallbackBody, key: IdempotencyKey = "", trace_id: TraceId = "") -> Response:
        """Take an event that an executor reports: it updates session and task.

        One that is sent again, with the same key, changes nothing. How a task ends is decided by its worker, not here.
        """
        text = json.dumps([body.session_id, body.event, body.data], sort_keys=True)
        callback = Callback(
            # Without a key, identical requests count as duplicates.
            key=key or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
            session_id=body.session_id,
            event=body.event,
            data=body.data,
            received_at=str(encode(datetime.now(UTC))),
            trace_id=trace_id,
        )
        is_new, report = await asyncio.to_thread(_receive, parts.inbox, callback)
        if is_new and report:
            progress = TaskProgress(
                progress=report.progress, current_step=report.current_step, error=report.error_message
            )
            await parts.tasks.report(body.session_id, progress)
        return ok(CallbackReceipt(status="received", is_new=is_new))

    return router


def _receive(inbox: CallbackInbox, callback: Callback) -> tuple[bool, SessionReport | None]:
    is_new = inbox.receive(callback)
    return is_new, inbox.report(callback.session_id) if is_new else None


def find_known_run(parts: ServerParts, run_id: str) -> RunRef:
    """Return a run by its id or a unique beginning of it. Raises NotFound."""
    try:
        return find_run(parts.store, run_id)
    except InputError as error:
        raise NotFound(error.message, error.hint) from error
    except OSError as error:
        raise NotFound(f"the sessions cannot be read: {error.strerror}") from error


def read_run(parts: ServerParts, run_id: str) -> RunView:
    """Read a run from its log. Raises NotFound."""
    run = find_known_run(parts, run_id)
    events = run_events(run.folder.events, run.run_id)
    if not events:
        raise NotFound(f"there is no run {run_id!r}", "`agent runs list` shows them")
    return run_view(events)


def _reported_session(session_id: str, report: SessionReport) -> SessionData:
    return SessionData(
        session_id=session_id,
        user_id=DEFAULT_USER,
        status=report.status,
        sdk_session_id=session_id,
        created_at="",
        updated_at=report.updated_at,
        title="",
        cwd="",
        cost_usd=None,
        runs=(),
        report=report,
    )


def _session_data(folder: SessionFolder, report: SessionReport | None) -> SessionData:
    row = session_row(folder)
    try:
        runs = tuple(run_rows(folder))
    except OSError:
        runs = ()
    return SessionData(
        session_id=row.id,
        user_id=DEFAULT_USER,
        status=row.status,
        sdk_session_id=row.id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        title=row.title,
        cwd=row.cwd,
        cost_usd=row.cost_usd,
        runs=runs,
        report=report,
    )
