"""Tasks of four steps, several workers, and kill -9 at random moments; what must be true afterwards."""

import asyncio
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.task import ENDED, TaskQuery, TaskRequest, TaskState
from agent.vocabulary.task_config import TaskConfig
from tests.cli.terminal_user import User, composer_reply, plan
from tests.running_processes import read_all

STEPS = ("s1", "s2", "s3", "s4")
FILE = "out.txt"
_MARKER = "WINDLASS_CAMPAIGN"


@dataclass(kw_only=True)
class Campaign:
    """Workers of one queue, in processes of their own."""

    user: User
    url: str = ""
    workers: int = 3
    name: str = field(default_factory=lambda: f"{os.getpid()}-{random.getrandbits(32):x}")
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    kills: int = 0

    def engine(self) -> DbosEngine:
        return DbosEngine(self.user.data, self.url)

    def submit(self, count: int, *, first: int = 0) -> list[str]:
        """Queue tasks of four steps each, which need no model but for the plan."""
        self.user.data.mkdir(exist_ok=True, mode=0o700)
        model = self.user.script(plan(*_steps()), composer_reply("All lines are there."))

        async def queue() -> list[str]:
            engine = self.engine()
            requests = [_request(model, number) for number in range(first, first + count)]
            ids = [(await engine.tasks.submit(request)).task_id for request in requests]
            await engine.close()
            return ids

        return asyncio.run(queue())

    def start_workers(self) -> None:
        """Start as many workers as are missing."""
        self.running = [worker for worker in self.running if worker.poll() is None]
        while len(self.running) < self.workers:
            self.running.append(self.start_worker())

    def start_worker(self) -> "subprocess.Popen[bytes]":
        environ = self.user.environment(
            DATABASE_URL=self.url,
            TASK_CLAIM_LEASE_SECONDS="3",
            RETRY_DELAY_SECONDS="1",
            AGENT_PLANNING="always",
            **{_MARKER: self.name},
        )
        command = self.user.command("worker", "--concurrency", "2", "--quiet")
        null = subprocess.DEVNULL
        return subprocess.Popen(
            command, env=environ, cwd=self.user.home, stdin=null, stdout=null, stderr=null, start_new_session=True
        )

    def kill_one(self, rng: random.Random) -> None:
        """Kill one worker, at any moment of its work."""
        victim = rng.choice(self.running)
        victim.kill()
        victim.wait()
        self.kills += 1

    def unfinished(self) -> int:
        """Return how many tasks have not ended."""
        return self._count(set(TaskState) - ENDED)

    def wait_until_one_has_started(self, limit_s: float) -> None:
        """Wait until a worker has registered and works on a task."""
        deadline = time.monotonic() + limit_s
        while not self._count({TaskState.RUNNING, *ENDED}):
            assert time.monotonic() < deadline, "no task has started"
            time.sleep(0.1)

    def wait_until_all_are_alive(self, limit_s: float) -> None:
        """Wait until all workers have registered."""
        deadline = time.monotonic() + limit_s
        while self._alive() < len(self.running):
            assert time.monotonic() < deadline, "not all workers have started"
            time.sleep(0.1)

    def _alive(self) -> int:
        async def count() -> int:
            engine = self.engine()
            workers = (await engine.stats()).workers
            await engine.close()
            return sum(worker.is_alive for worker in workers)

        return asyncio.run(count())

    def _count(self, states: set[TaskState]) -> int:
        async def count() -> int:
            engine = self.engine()
            found = await engine.tasks.list(TaskQuery(limit=10_000, states=frozenset(states)))
            await engine.close()
            return len(found)

        return asyncio.run(count())

    def stop(self) -> None:
        """End all workers in order."""
        for worker in self.running:
            worker.send_signal(signal.SIGTERM)
        for worker in self.running:
            worker.wait(120)

    def run(self, rng: random.Random, *, max_kills: int, limit_s: float) -> None:
        """Kill workers every second or two until all tasks have ended."""
        deadline = time.monotonic() + limit_s
        while self.unfinished():
            assert time.monotonic() < deadline, f"{self.unfinished()} tasks have not ended; {self.kills} kills"
            self.start_workers()
            time.sleep(rng.uniform(1, 2))
            if self.kills < max_kills:
                self.kill_one(rng)
        self.stop()

    def check(self, ids: Sequence[str]) -> None:
        """Everything is done, once, and nothing is left running."""

        async def read() -> list[tuple[str, str, str, str]]:
            engine = self.engine()
            found = [await engine.tasks.get(task_id) for task_id in ids]
            await engine.close()
            return [(task.task_id, task.session_id, str(task.state), task.error) for task in found]

        for task_id, session_id, state, error in asyncio.run(read()):
            assert state == "completed", (task_id, state, error)
            folder = self.user.data / "sessions" / session_id
            lines = (folder / "workspace" / FILE).read_text().split()
            assert lines == list(STEPS), (task_id, lines)
            assert not repeated_steps(folder / "events.jsonl"), task_id
        assert left_running(self.name) == []


def _steps() -> list[dict[str, object]]:
    return [
        {
            "id": name,
            "title": name,
            "tool": "run_command",
            "args": {"command": f"sleep 0.05; echo {name} >> {FILE}; sleep 0.05"},
            "verify": f"grep -qsx {name} {FILE}",
            "depends_on": [STEPS[number - 1]] if number else [],
        }
        for number, name in enumerate(STEPS)
    ]


def _request(model: str, number: int) -> TaskRequest:
    session = f"campaign-{number}"
    return TaskRequest(
        prompt="append four lines", session_id=session, trace_id=f"{number:032x}", config=TaskConfig(model=model)
    )


def repeated_steps(log: Path) -> list[str]:
    """Return the steps that were done again after they had been finished."""
    done: Counter[str] = Counter()
    cached: set[tuple[str, str]] = set()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        key = (event["run_id"], str(event.get("step_id")))
        if event["type"] == "step.started" and event["cache"] != "miss":
            cached.add(key)
        if event["type"] == "step.completed" and event["status"] == "ok" and key not in cached:
            done[key[1]] += 1
    return [name for name, count in done.items() if count > 1]


def left_running(name: str) -> list[int]:
    """Return the processes of a campaign that still exist, once they had time to end."""
    marker = f"{_MARKER}={name}".encode()
    for _ in range(100):
        found = [pid for pid, text in read_all("environ") if marker in text.split(b"\0")]
        if not found:
            return []
        time.sleep(0.1)
    return found
