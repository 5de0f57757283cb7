"""Callbacks received from executors, stored once each per session and folded into a report."""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path

from agent.hooks.callback_client import TERMINAL
from agent.sessions.store import SessionStore
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject, decode, encode
from tooling.files.open_regular import open_fd

TASK_STARTED = "task_started"
_END_STATES = {"task_completed": "completed", "task_failed": "failed"}
# More than a run sends; callbacks that end a run are always stored.
MAX_KEPT = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """One event reported by an executor; resending it uses the same `key`."""

    key: str
    session_id: str
    event: str
    data: JsonObject
    received_at: str
    trace_id: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether the event ends a run."""
        return self.event in TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedMessage:
    """Text that the model wrote in a turn."""

    turn: int
    text: str
    received_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecution:
    """One call of a tool; long outputs are cut by the sender."""

    turn: int
    tool_name: str
    tool_input: JsonObject
    tool_output: str
    received_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """The latest run of a session as reported by its executor; `status` is running, completed or failed."""

    status: str = "running"
    progress: int = 0
    error_message: str = ""
    current_step: str = ""
    todos: tuple[JsonObject, ...] = ()
    workspace_state: JsonObject = field(default_factory=dict)
    messages: tuple[ReportedMessage, ...] = ()
    tool_executions: tuple[ToolExecution, ...] = ()
    updated_at: str = ""


def fold_callbacks(callbacks: Iterable[Callback]) -> SessionReport | None:
    """Return the state that the callbacks describe; None if they describe none.

    A new start resets the state but keeps messages and calls. Callbacks that arrive after the end do not undo it.
    """
    report: SessionReport | None = None
    for callback in callbacks:
        before = report or SessionReport()
        if callback.event == TASK_STARTED and before.status in _END_STATES.values():
            before = SessionReport(messages=before.messages, tool_executions=before.tool_executions)
        report = _apply(before, callback)
    return report


def _apply(report: SessionReport, callback: Callback) -> SessionReport:
    data, at = callback.data, callback.received_at
    messages, calls = report.messages, report.tool_executions
    if callback.event == "agent_response":
        messages = (
            *messages,
            ReportedMessage(turn=_number(data, "turn"), text=_text(data, "response"), received_at=at),
        )
    elif callback.event == "tool_call":
        made = ToolExecution(
            turn=_number(data, "turn"),
            tool_name=_text(data, "tool_name"),
            tool_input=_object(data, "tool_input"),
            tool_output=_text(data, "tool_output"),
            received_at=at,
        )
        calls = (*calls, made)
    kept = replace(report, messages=messages, tool_executions=calls, updated_at=at)
    if report.status != "running":
        return kept
    status = _END_STATES.get(callback.event, "running")
    patch = _object(data, "state_patch")
    todos = patch.get("todos")
    return replace(
        kept,
        status=status,
        progress=100 if status == "completed" else max(report.progress, min(99, _number(data, "progress"))),
        error_message=_text(data, "error_message"),
        current_step=_text(patch, "current_step"),
        todos=tuple(item for item in todos if isinstance(item, dict)) if isinstance(todos, list) else report.todos,
        workspace_state=_object(patch, "workspace_state") or report.workspace_state,
    )


# Callbacks are external data: fields without the documented form are ignored.


def _text(data: JsonObject, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _number(data: JsonObject, name: str) -> int:
    value = data.get(name)
    return int(value) if isinstance(value, (int, float)) and -(2**53) < value < 2**53 else 0


def _object(data: JsonObject, name: str) -> JsonObject:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


class CallbackInbox:
    """A file of callbacks for each session, which several processes may read and write."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "queue" / "callbacks"
        # Validates session ids.
        self._sessions = SessionStore(data)

    def receive(self, callback: Callback) -> bool:
        """Store a callback; False if it is a duplicate or there are too many. Raises InputError for a wrong id."""
        path = self._path(callback.session_id)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            known = self.read(callback.session_id)
            if any(one.key == callback.key for one in known) or (len(known) >= MAX_KEPT and not callback.is_terminal):
                return False
            line = json.dumps(encode(callback), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
            fd = open_fd(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(fd, line)
                os.fsync(fd)
            finally:
                os.close(fd)
        return True

    def read(self, session_id: str) -> list[Callback]:
        """Return the callbacks of a session in order of arrival; a line truncated by a crash is skipped."""
        try:
            lines = self._path(session_id).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [found for found in map(_parse, lines) if found]

    def report(self, session_id: str) -> SessionReport | None:
        """Return the report about a session; None if there are no callbacks. Raises InputError for a wrong id."""
        return fold_callbacks(self.read(session_id))

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{self._sessions.folder_for(session_id).id}.jsonl"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    fd = open_fd(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _parse(line: bytes) -> Callback | None:
    try:
        return decode(Callback, json.loads(line), extra="ignore")
    except (ValueError, RecursionError):
        return None
