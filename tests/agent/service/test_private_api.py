"""What the queue uses of DBOS beyond its public interface is still there, and does what it is used for."""

import asyncio
import inspect
import threading
from pathlib import Path

import pytest
from dbos import DBOS
from dbos._sys_db import SystemDatabase

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.engine import WorkOptions
from agent.service.task import ScheduleMode, TaskRequest
from tests.agent.service.conftest import ScriptedHandler, rules

pytestmark = pytest.mark.slow


def test_the_private_functions_have_the_parameters_that_are_given() -> None:
    claim = list(inspect.signature(SystemDatabase.start_queued_workflows).parameters)
    assert claim[1:6] == ["queue", "executor_id", "app_version", "queue_partition_key", "local_running_count"]
    assert list(inspect.signature(DBOS._recover_pending_workflows).parameters) == ["executor_ids"]


def claiming_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("queue-worker-")]


async def test_no_task_is_claimed_while_the_queue_shuts_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    destroy, left = DBOS.destroy, []

    def record_and_destroy(**options: bool) -> None:
        left.append(claiming_threads())
        destroy(**options)

    monkeypatch.setattr(DBOS, "destroy", record_and_destroy)
    engine, handler = DbosEngine(tmp_path), ScriptedHandler()
    await engine.tasks.submit(TaskRequest(prompt="count", session_id="s1"))
    worker = engine.worker(rules())
    working = asyncio.ensure_future(worker.work(handler, WorkOptions(concurrency=1, modes=tuple(ScheduleMode))))
    await handler.has_started.wait()
    # Otherwise they have other names now, and none of them was waited for.
    assert claiming_threads()
    await worker.stop()
    await working
    await engine.close()
    assert left == [[]]
