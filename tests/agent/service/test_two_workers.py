"""Several processes on one queue: every task is run once."""

import asyncio
import sys
from pathlib import Path

import pytest

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.task import TaskQuery, TaskRequest, TaskState
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow


async def test_two_workers_run_a_hundred_tasks_once_each(tmp_path: Path, database_url: str) -> None:
    engine = DbosEngine(tmp_path, database_url)
    ids = [(await engine.tasks.submit(TaskRequest(prompt="x", session_id="s"))).task_id for _ in range(100)]
    file = tmp_path / "ran"
    command = [sys.executable, "-m", "tests.agent.service.recording_worker", str(tmp_path), database_url, str(file)]
    workers = [await asyncio.create_subprocess_exec(*command, cwd=ROOT) for _ in range(2)]
    async with asyncio.timeout(300):
        assert [await worker.wait() for worker in workers] == [0, 0]
    assert sorted(file.read_text().split()) == sorted(ids)
    ended = await engine.tasks.list(TaskQuery(states=frozenset({TaskState.COMPLETED}), limit=200))
    assert len(ended) == 100
    await engine.close()
