"""Engines for the tests of the queue: every adapter on every database it supports."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.dbos_engine.worker import DbosWorker, WorkerRules
from agent.service.engine import WorkOptions
from agent.service.task import ScheduleMode, Task, TaskOutcome, TaskState
from tests.postgres_server import PostgresServer, run_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with run_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return ""
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
async def engine(tmp_path: Path, database_url: str) -> AsyncIterator[DbosEngine]:
    """The engine under test; another adapter is another fixture of this shape."""
    opened = DbosEngine(tmp_path, database_url)
    yield opened
    await opened.close()


def rules(
    *, attempts: int = 3, delay_s: float = 0.1, is_open: Callable[[ScheduleMode], bool] = lambda mode: True
) -> WorkerRules:
    intervals = dict.fromkeys(ScheduleMode, 0.1)
    return WorkerRules(
        attempts=attempts, delay_s=delay_s, lease_s=30, retention_days=30, intervals=intervals, is_open=is_open
    )


class ScriptedHandler:
    """Runs tasks by their prompt: `fail`, `flaky N`, `hang`, or anything else, which succeeds."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.running = self.most = 0
        self.has_started = asyncio.Event()

    async def run(self, task: Task) -> TaskOutcome:
        self.runs.append(task.task_id)
        self.running += 1
        self.most = max(self.most, self.running)
        self.has_started.set()
        try:
            return await self._run(task)
        finally:
            self.running -= 1

    async def _run(self, task: Task) -> TaskOutcome:
        word, _, number = task.request.prompt.partition(" ")
        if word == "hang":
            await asyncio.Event().wait()
        if word == "fail" or (word == "flaky" and task.attempt <= int(number)):
            return TaskOutcome(state=TaskState.FAILED, exit_code=75, error="overloaded", is_transient=True)
        if word == "refuse":
            return TaskOutcome(state=TaskState.FAILED, exit_code=42, error="bad input")
        if word == "break":
            raise RuntimeError("a bug")
        await asyncio.sleep(0.01)
        return TaskOutcome(state=TaskState.COMPLETED, exit_code=0, answer=f"did {task.request.prompt}")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds, for two minutes at most."""
    async with asyncio.timeout(120):
        while not await condition():  # noqa: ASYNC110 (nothing tells when)
            await asyncio.sleep(0.05)


async def work_once(
    engine: DbosEngine,
    handler: ScriptedHandler,
    *,
    concurrency: int = 5,
    worker: DbosWorker | None = None,
    delay_s: float = 0.0,
) -> int:
    worker = worker or engine.worker(replace(rules(), delay_s=delay_s))
    return await worker.work(handler, WorkOptions(concurrency=concurrency, modes=tuple(ScheduleMode), is_once=True))
