"""A worker in a process of its own whose tasks only write their id into a file: python -m … DATA URL FILE."""

import asyncio
import os
import sys
from pathlib import Path

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.engine import WorkOptions
from agent.service.task import ScheduleMode, Task, TaskOutcome, TaskState
from tests.agent.service.conftest import rules


class RecordingHandler:
    def __init__(self, file: Path) -> None:
        self._file = file

    async def run(self, task: Task) -> TaskOutcome:
        fd = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{task.task_id}\n".encode())
        os.close(fd)
        return TaskOutcome(state=TaskState.COMPLETED, exit_code=0)


async def main(data: str, url: str, file: str) -> None:
    engine = DbosEngine(Path(data), url)
    options = WorkOptions(concurrency=5, modes=tuple(ScheduleMode), is_once=True)
    await engine.worker(rules()).work(RecordingHandler(Path(file)), options)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
