"""Prints how long our worker takes to run empty tasks: python -m tests.bench.drain_ours FOLDER COUNT."""

import asyncio
import sys
import time
from pathlib import Path

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.engine import WorkOptions
from agent.service.task import ScheduleMode, Task, TaskOutcome, TaskRequest, TaskState
from tests.agent.service.conftest import rules


class EmptyHandler:
    def __init__(self, count: int) -> None:
        self._left = count
        self.is_done = asyncio.Event()

    async def run(self, task: Task) -> TaskOutcome:
        self._left -= 1
        if not self._left:
            self.is_done.set()
        return TaskOutcome(state=TaskState.COMPLETED, exit_code=0)


async def main(folder: str, count: int) -> None:
    engine = DbosEngine(Path(folder))
    for _ in range(count):
        await engine.tasks.submit(TaskRequest(prompt="x", session_id="s"))
    handler, worker = EmptyHandler(count), engine.worker(rules())
    before = time.monotonic()
    options = WorkOptions(concurrency=5, modes=(ScheduleMode.IMMEDIATE,))
    working = asyncio.ensure_future(worker.work(handler, options))
    await handler.is_done.wait()
    print(time.monotonic() - before)
    await worker.stop()
    await working
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
