"""What the endpoints and pages work with; given to them by whoever starts the server."""

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
from agent.service.task import PendingQuestion, Task
from agent.service.task_service import TaskService
from agent.service.workspaces.open_workspaces import Workspaces
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder, SessionStore
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

T = TypeVar("T")


class CardText(Protocol):
    """How front ends show what they ask the user, so that all of them show the same."""

    def __call__(self, request: ApprovalRequested | QuestionAsked, *, step: str) -> str:
        """Return the complete text: what would be done, where, why, and its diff; nothing in it is hidden."""


class Containers(Protocol):
    """The containers of executors, whoever started them."""

    async def rows(self) -> list[ContainerRow]:
        """Return all of them; none if there is no pool or no engine."""

    async def remove(self, container_id: str) -> None:
        """Remove one, with what runs in it. Raises InputError if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorParts:
    """Executors and their workspaces, as the settings say."""

    containers: Containers
    workspaces: Workspaces
    ignores_dot_files: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """Everything an endpoint needs.

    `task_settings` are settings of every task that is created here; `report_bug` gets errors of ours, with the request.
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

    def card_text(self, question: PendingQuestion) -> str:
        """Return what a terminal shows for a question."""
        return self.card(input_request(question), step=question.step_id)

    def run_of(self, task: Task) -> str:
        """Return the id of a task's latest run; empty if it has not started one."""
        if task.outcome and task.outcome.run_id:
            return task.outcome.run_id
        if task.started_at is None:
            return ""
        try:
            started = [line.envelope() for line in read_lines(self._log_of(task), only=RunStarted.type)]
        except (OSError, InputError):
            return ""
        # A session may have had other runs before this task, or between two attempts.
        for found in reversed(started):
            if found and isinstance(found.event, RunStarted) and found.event.task_id == task.task_id:
                return found.run_id
        return ""

    def _log_of(self, task: Task) -> Path:
        return self.store.folder_for(task.session_id).events

    def session(self, session_id: str) -> SessionFolder:
        """Return the folder of a session. Raises NotFound."""
        try:
            return self.store.find(session_id)
        except InputError as error:
            raise NotFound(error.message, error.hint) from error


async def find(lookup: Awaitable[T]) -> T:
    """Return what a lookup finds; what does not exist is a 404, not an invalid request."""
    try:
        return await lookup
    except InputError as error:
        raise NotFound(error.message, error.hint) from error


def input_request(question: PendingQuestion) -> ApprovalRequested | QuestionAsked:
    """Return the event with which the run asked."""
    if question.kind == "question":
        return QuestionAsked(question_id=question.question_id, question=question.text, options=question.options)
    return ApprovalRequested(
        approval_id=question.question_id,
        command=question.text,
        cwd=question.cwd,
        reason=question.reason,
        rule=question.rule,
        tool=question.tool or None,
        involves=question.involves,
        diff=question.diff or None,
    )
