"""Which workers are alive, and what DBOS is used for beyond its public interface."""

import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from dbos import DBOS
from dbos._sys_db import SystemDatabase

from agent.service.dbos_engine.database import open_database
from agent.service.dbos_engine.engine import DbosEngine
from agent.service.dbos_engine.liveness import LeaseLiveness, new_worker, open_liveness
from agent.service.dbos_engine.slots import Slots
from agent.service.task import TaskQuery, TaskRequest
from tests.postgres_server import PostgresServer

_HOLD = """
import sys
from pathlib import Path
from agent.service.dbos_engine.liveness import FileLiveness, new_worker
FileLiveness(Path(sys.argv[1])).register(new_worker("other", "here", 1, ["immediate"]))
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_private_names_of_dbos_are_still_what_they_were() -> None:
    recover = inspect.signature(DBOS._recover_pending_workflows)
    assert list(recover.parameters) == ["executor_ids"]
    claim = inspect.signature(SystemDatabase.start_queued_workflows)
    names = ["self", "queue", "executor_id", "app_version", "queue_partition_key", "local_running_count"]
    assert list(claim.parameters)[:6] == names


@pytest.mark.slow
def test_a_killed_worker_is_dead_at_once(tmp_path: Path) -> None:
    liveness = open_liveness(open_database(tmp_path), 30)
    liveness.register(new_worker("mine", "here", 2, ["nightly"]))
    folder = tmp_path / "queue" / "workers"
    held = subprocess.Popen([sys.executable, "-c", _HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert held.stdout
    held.stdout.readline()
    assert {worker.worker_id: worker.is_alive for worker in liveness.workers()} == {"mine": True, "other": True}
    os.kill(held.pid, signal.SIGKILL)
    held.communicate()
    assert {worker.worker_id: worker.is_alive for worker in liveness.workers()} == {"mine": True, "other": False}
    assert liveness.remove_dead("other")
    assert not liveness.remove_dead("mine")
    assert liveness.renew("mine")
    assert [worker.worker_id for worker in liveness.workers()] == ["mine"]


@pytest.mark.slow
def test_a_lease_ends_by_the_clock_of_the_database(tmp_path: Path, postgres: PostgresServer) -> None:
    database = open_database(tmp_path, postgres.new_database())
    liveness = LeaseLiveness(database.engine, 600)
    liveness.register(new_worker("mine", "here", 1, ["immediate"]))
    assert liveness.renew("mine")
    assert [worker.is_alive for worker in liveness.workers()] == [True]
    with database.engine.begin() as connection:
        connection.execute(sa.text("UPDATE windlass.workers SET lease_until = now() - interval '1 second'"))
    assert [worker.is_alive for worker in liveness.workers()] == [False]
    # The database was away for longer than the lease, and nobody has taken over.
    assert liveness.renew("mine")
    assert [worker.is_alive for worker in liveness.workers()] == [True]
    assert not liveness.remove_dead("mine")
    with database.engine.begin() as connection:
        connection.execute(sa.text("UPDATE windlass.workers SET lease_until = now() - interval '1 second'"))
    # Only one of the others takes over, and the worker learns it.
    assert [liveness.remove_dead("mine"), liveness.remove_dead("mine")] == [True, False]
    assert not liveness.renew("mine")
    database.engine.dispose()


@pytest.mark.slow
async def test_the_queue_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    engine = DbosEngine(tmp_path)
    await engine.tasks.submit(TaskRequest(prompt="secret plan", session_id="s"))
    await engine.close()
    modes = {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "queue").iterdir()}
    assert set(modes.values()) == {0}


@pytest.mark.slow
async def test_who_reads_the_queue_waits_for_nobody_who_writes_to_it(tmp_path: Path) -> None:
    engine = DbosEngine(tmp_path)
    task = await engine.tasks.submit(TaskRequest(prompt="x", session_id="s"))
    with open_database(tmp_path).engine.begin():
        assert (await engine.tasks.get(task.task_id)).task_id == task.task_id
        assert len(await engine.tasks.list(TaskQuery())) == 1
        assert (await engine.stats()).open_questions == 0
    await engine.close()


async def test_nothing_is_pickled(tmp_path: Path) -> None:
    engine = DbosEngine(tmp_path)
    task = await engine.tasks.submit(TaskRequest(prompt="plain words", session_id="s"))
    with sa.create_engine(f"sqlite:///{tmp_path}/queue/tasks.sqlite").begin() as connection:
        [(form,)] = connection.execute(sa.text("SELECT serialization FROM workflow_status"))
        [(inputs,)] = connection.execute(sa.text("SELECT inputs FROM workflow_input"))
    assert "plain words" in inputs
    assert form == "portable_json"
    assert [found.task_id for found in await engine.tasks.list(TaskQuery())] == [task.task_id]
    await engine.close()


def test_slots_count_what_is_claimed_and_forget_what_never_began() -> None:
    now = [0.0]
    slots = Slots(2, clock=lambda: now[0])
    slots.claim(["a", "b"])
    assert (slots.free(), slots.held) == (0, 2)
    assert slots.enter("a")
    assert not slots.enter("c")
    now[0] = 100.0
    assert slots.free() == 1
    slots.release("a")
    assert slots.free() == 2
