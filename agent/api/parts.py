"""Dependencies of the endpoints and pages, passed in by the caller that starts the server."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol, TypeVar

from agent.api.access import Access, BrowserSessions
from agent.api.event_stream import LogWatch
from agent.api.metrics import Metrics
from agent.api.replies import NotFound
from agent.protocol.events import ApprovalRequested, QuestionAsked, RunStarted
from agent.service.callback_inbox import CallbackInbox
from agent.service.containers.pool import ContainerRow
from agent.service.run_questions import input_request
from agent.service.task import PendingQuestion, Task
from agent.service.task_service import TaskService
from agent.service.workspaces.open_workspaces import Workspaces
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder, SessionStore
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

T = TypeVar("T")
_MAX_LOGS = 1000


class TaskRunIds:
    """Finds the runs of tasks in the logs of their sessions; of a log that it knows, it reads only what is new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, tuple[int, dict[str, str]]] = OrderedDict()

    def latest(self, log: Path, task_id: str) -> str:
        """Return the id of a task's latest run; a session may have runs of other tasks, and several of this one."""
        with self._lock:
            end, runs = self._known.pop(log, (0, {}))
            if end > (size := log.stat().st_size):
                end, runs = 0, {}
            if end < size:
                for line in read_lines(log, end):
                    end = line.end
                    found = line.envelope() if line.type == RunStarted.type else None
                    if found and isinstance(found.event, RunStarted) and found.event.task_id:
                        runs[found.event.task_id] = found.run_id
            self._known[log] = (end, runs)
            if len(self._known) > _MAX_LOGS:
                self._known.popitem(last=False)
            return runs.get(task_id, "")


class CardText(Protocol):
    """Renders a question or an approval, so that all front ends show the same text."""

    def __call__(self, request: ApprovalRequested | QuestionAsked, *, step: str) -> str:
        """Return the complete text: action, folder, reason and diff; nothing is hidden."""


class Containers(Protocol):
    """The containers of executors, started by any process."""

    async def rows(self) -> list[ContainerRow]:
        """Return all containers; none if there is no pool or no engine."""

    async def remove(self, container_id: str) -> None:
        """Remove a container and its processes. Raises InputError if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorParts:
    """Executors and their workspaces according to the settings."""

    containers: Containers
    workspaces: Workspaces
    ignores_dot_files: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """Dependencies of the endpoints.

    `task_settings` apply to every task created here; `report_bug` receives our own errors, with the request;
    `translate` translates the texts of the pages into the user's language.
    """

    access: Access
    sessions: BrowserSessions
    tasks: TaskService
    store: SessionStore
    inbox: CallbackInbox
    card: CardText
    watch: LogWatch
    metrics: Metrics
    executors: ExecutorParts
    report_bug: Callable[[str, Exception], None]
    task_settings: Mapping[str, str] = field(default_factory=dict)
    translate: Callable[[str], str] = str
    runs: TaskRunIds = field(default_factory=TaskRunIds)

    def card_text(self, question: PendingQuestion) -> str:
        """Return the text that a terminal shows for a question."""
        return self.card(input_request(question), step=question.step_id)

    async def run_of(self, task: Task) -> str:
        """Return the id of a task's latest run; empty if it has not started one."""
        if task.outcome and task.outcome.run_id:
            return task.outcome.run_id
        if task.started_at is None:
            return ""
        try:
            log = self.store.folder_for(task.session_id).events
            return await asyncio.to_thread(self.runs.latest, log, task.task_id)
        except (OSError, InputError):
            return ""

    def session(self, session_id: str) -> SessionFolder:
        """Return the folder of a session. Raises NotFound."""
        try:
            return self.store.find(session_id)
        except InputError as error:
            raise NotFound(error.message, error.hint) from error


async def find(lookup: Awaitable[T]) -> T:
    """Return the result of a lookup; a missing object becomes a 404 rather than an invalid request."""
    try:
        return await lookup
    except InputError as error:
        raise NotFound(error.message, error.hint) from error
