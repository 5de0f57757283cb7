"""A server in a thread of the test, on a port of its own, with a queue in memory and real session folders."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import httpx
import uvicorn

from agent.api.access import PAGE_HOST, Access, BrowserSessions
from agent.api.app import build_app
from agent.api.event_stream import LogWatch
from agent.api.metrics import Metrics
from agent.api.parts import ExecutorParts, ServerParts
from agent.config.service_settings import ServiceSettings
from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import Event
from agent.service.callback_inbox import CallbackInbox
from agent.service.containers.pool_view import PoolView
from agent.service.engine import TaskEngine
from agent.service.night_window import NightWindow
from agent.service.task import PendingQuestion, Task, TaskRequest, TaskState
from agent.service.task_service import TaskService
from agent.service.workspaces.open_workspaces import open_workspaces
from agent.sessions.store import SessionFolder, SessionLock, SessionStore
from cli.screen.cards import card_text
from tests.agent.api.fake_engine import NOW, FakeEngine, result_of

TOKEN = "a-token-that-only-tests-use"
# The servers of tests speak plain HTTP, and loading certificates takes longer than a request.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass
class Server:
    """A running server and what is behind it."""

    port: int
    data: Path
    engine: FakeEngine
    sessions: BrowserSessions
    bugs: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def page_url(self) -> str:
        return f"http://{PAGE_HOST}:{self.port}"

    @property
    def store(self) -> SessionStore:
        return SessionStore(self.data)

    def client(self, token: str = TOKEN, **headers: str) -> httpx.Client:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.url, headers={**given, **headers}, timeout=120, trust_env=False, verify=NO_CERTIFICATES
        )

    def task(self, prompt: str, state: TaskState = TaskState.QUEUED, **more: object) -> Task:
        """Put a task into the queue."""
        request = TaskRequest(prompt=prompt, session_id=f"s{len(self.engine.tasks.by_id) + 1}")
        task = result_of(self.engine.tasks.submit(request))
        return self.engine.tasks.put(replace(task, state=state, **more))  # type: ignore[arg-type]

    def ask(self, task: Task, question_id: str, text: str, **more: object) -> PendingQuestion:
        """Let a task ask for an approval, or with `kind` a question."""
        fields: Mapping[str, object] = {"kind": "approval", "tool": "run_command", "cwd": "/work", "reason": "it asks"}
        question = PendingQuestion(
            question_id=question_id,
            task_id=task.task_id,
            session_id=task.session_id,
            text=text,
            asked_at=NOW,
            expires_at=NOW + timedelta(minutes=10),
            **{**fields, **more},  # type: ignore[arg-type]
        )
        result_of(self.engine.questions.open(task.task_id, question))
        return question


@contextmanager
def serve(
    data: Path, queue: TaskEngine | None = None, translate: Callable[[str], str] = str, **access: object
) -> Iterator[Server]:
    """Run a server until the block ends, with a queue in memory if none is given."""
    engine = FakeEngine()
    rules = Access(token=TOKEN, **{"requests_per_s": 10_000.0, **access})  # type: ignore[arg-type]
    sessions, watch = BrowserSessions(rules.token), LogWatch(poll_s=0.02)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = Server(port=listener.getsockname()[1], data=data, engine=engine, sessions=sessions)
    window = NightWindow(zone="UTC", start_hour=2, start_minute=0, minutes=360)
    service = TaskService(queue or engine, server.store, window)
    workspaces = open_workspaces(ServiceSettings(), {"AGENT_SANDBOX": str(data)})
    containers = PoolView(workspaces.store, {})
    app = build_app(
        ServerParts(
            access=rules,
            sessions=sessions,
            tasks=service,
            executors=ExecutorParts(containers=containers, workspaces=workspaces),
            store=server.store,
            inbox=CallbackInbox(data),
            card=card_text,
            watch=watch,
            metrics=Metrics(watch),
            report_bug=lambda request, error: server.bugs.append(f"{request}: {error!r}"),
            translate=translate,
        )
    )
    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    http = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(http.serve([listener])), name="server", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.should_exit = True
        thread.join(30)
        listener.close()


class WrittenRun:
    """A run in a session folder, written event by event as a worker would."""

    def __init__(self, store: SessionStore, session_id: str, run_id: str = "run-20260504123000-abcdef") -> None:
        store.root.parent.mkdir(exist_ok=True)
        self.folder: SessionFolder = store.open(session_id)
        self.run_id = run_id
        self._seq = 0

    def write(self, event: Event, step: str | None = None) -> int:
        self._seq += 1
        envelope = Envelope(
            event=event,
            seq=self._seq,
            ts=f"2026-05-04T12:30:{self._seq % 60:02}.000Z",
            session_id=self.folder.id,
            run_id=self.run_id,
            step_id=step,
            attempt=1 if step else None,
        )
        with self.folder.events.open("ab") as log:
            log.write(to_line(envelope))
        return self._seq

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the session's lock, as the process of a run does."""
        lock = SessionLock(self.folder)
        try:
            yield
        finally:
            lock.release()


def data_lines(text: str) -> list[dict[str, object]]:
    """Return the events in a stream."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
