"""Measure the task queue: creating, starting, draining and listing tasks, and an idle worker."""

import asyncio
import os
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.task import TaskRequest
from agent.vocabulary.task_config import TaskConfig
from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import AGENT, PYTHON, BenchError, Home

ROOT = Path(__file__).resolve().parents[1]
HELLO = f"script:{ROOT / 'examples' / 'hello.jsonl'}"
ROUNDS = 10
FEW, MANY = 100, 100_000
TASKS = 60
IDLE_S = 10.0
_CREATE = """
import sys
import sqlalchemy
from dbos import DBOSClient
engine = sqlalchemy.create_engine("sqlite:///" + sys.argv[1])
client = DBOSClient(system_database_engine=engine)
client.enqueue({"workflow_name": "task", "queue_name": "elsewhere"}, {"prompt": "x"})
client.destroy()
"""


def create() -> list[BenchResult]:
    """Measure `agent task create` against a program that imports DBOS, connects and enqueues."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        home.run([AGENT, "task", "create", "x"])
        floor = [PYTHON, "-c", _CREATE, str(Path(name) / "data" / "queue" / "tasks.sqlite")]
        ours, bare = sample_interleaved(
            ROUNDS,
            lambda: home.run([AGENT, "task", "create", "x"]).seconds,
            lambda: home.run(floor).seconds,
        )
    return [ratio("`agent task create` against importing DBOS and enqueueing", 1.3, ours, bare)]


def start() -> list[BenchResult]:
    """Measure the time from creating a task to its start by an idle worker, and the cost of that worker."""
    with tempfile.TemporaryDirectory() as name:
        home, data = Home(Path(name)), Path(name) / "data"
        data.mkdir(mode=0o700)
        worker = subprocess.Popen([AGENT, "worker", "--quiet"], env=home.environ, cwd=name)
        try:
            samples = asyncio.run(_starts(data))
            time.sleep(3)
            before = _cpu_seconds(worker.pid)
            time.sleep(IDLE_S)
            share = (_cpu_seconds(worker.pid) - before) / IDLE_S * 100
        finally:
            worker.terminate()
            worker.wait()
    idle = BenchResult(
        what="idle worker, share of one CPU", measured=share, limit=3, unit="%", detail=f"over {IDLE_S:g} s"
    )
    return [milliseconds("task created → started by an idle worker", 600, samples), idle]


async def _starts(data: Path) -> list[float]:
    engine = DbosEngine(data)
    samples: list[float] = []
    for number in range(ROUNDS + 1):
        request = TaskRequest(prompt="hello", session_id=f"s{number}", config=TaskConfig(model=HELLO))
        task = await engine.tasks.submit(request)
        while not (now := await engine.tasks.get(task.task_id)).is_ended:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        if now.started_at is None:
            raise BenchError(f"the task did not start: {now.error}")
        samples.append((now.started_at - now.created_at).total_seconds())
    await engine.close()
    # The first one includes the start of the worker.
    return samples[1:]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drain() -> list[BenchResult]:
    """Measure how long our worker takes for empty tasks, against plain DBOS with the same concurrency."""
    ours, plain = sample_interleaved(
        3, lambda: _drain("tests.bench.drain_ours"), lambda: _drain("tests.bench.drain_dbos")
    )
    return [ratio(f"{TASKS} empty tasks, five at a time, against plain DBOS", 1.25, ours, plain)]


def _drain(module: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [PYTHON, "-m", module, name, str(TASKS)], cwd=ROOT, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise BenchError(done.stderr)
    return float(done.stdout)


def listing() -> list[BenchResult]:
    """Measure `agent task list` with very many ended tasks against a few."""
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        homes = [Home(Path(few)), Home(Path(many))]
        for home, count in zip(homes, (FEW, MANY), strict=True):
            home.run([AGENT, "task", "create", "x"])
            copy_tasks(Path(home.folder) / "data" / "queue" / "tasks.sqlite", count)
        small, large = sample_interleaved(
            ROUNDS, *(lambda home=home: home.run([AGENT, "task", "list"]).seconds for home in homes)
        )
    return [ratio(f"`agent task list` with {MANY:,} ended tasks against {FEW}", 1.5, large, small)]


def copy_tasks(database: Path, count: int) -> None:
    """Fill a queue with ended tasks: copies of the one that is in it."""
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE workflow_status SET status = 'SUCCESS', queue_name = NULL, completed_at = created_at"
        )
        for table in ("workflow_status", "workflow_input"):
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            values = ", ".join("printf('x%09d', n)" if name == "workflow_uuid" else name for name in names)
            connection.execute(
                f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table}, numbers"
            )
    connection.close()
