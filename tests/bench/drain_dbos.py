"""Prints how long plain DBOS takes to run empty tasks: python -m tests.bench.drain_dbos FOLDER COUNT."""

import sys
import threading
import time

from dbos import DBOS, DBOSClient


def main(folder: str, count: int) -> None:
    url = f"sqlite:///{folder}/tasks.sqlite"
    dbos = DBOS(config={"name": "plain", "system_database_url": url, "log_level": "ERROR", "enable_otlp": False})
    assert dbos
    left, is_done, lock = [count], threading.Event(), threading.Lock()

    @DBOS.step(name="nothing")
    async def nothing() -> None:
        with lock:
            left[0] -= 1
        if not left[0]:
            is_done.set()

    @DBOS.workflow(name="task")
    async def task() -> None:
        await nothing()

    DBOS.migrate(url)
    client = DBOSClient(system_database_url=url)
    for _ in range(count):
        client.enqueue({"workflow_name": "task", "queue_name": "plain"})
    before = time.monotonic()
    DBOS.launch()
    DBOS.register_queue("plain", worker_concurrency=5, polling_interval_sec=0.5)
    is_done.wait()
    print(time.monotonic() - before)
    DBOS.destroy()
    client.destroy()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
