"""A process that fetches one page and reports the peak memory of itself and its workers."""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from tests.tooling.tool_harness import ToolHarness
from tooling.approvals.policy import PolicyApprover
from tooling.web.session import WebSession
from tooling.web.settings import WebSettings


def peak_kb(pid: int | str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def reset_peaks(pids: list[int]) -> None:
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def worker_pids() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]


async def main(warm_url: str, url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = WebSession(WebSettings(allow_loopback=True))
        tools = ToolHarness(Path(folder), approver=PolicyApprover(mode="yolo"), web=session)
        await tools.call("fetch_page", url=warm_url)
        pids = [os.getpid(), *worker_pids()]
        reset_peaks(pids)
        before = {pid: peak_kb(pid) for pid in pids}
        result = await tools.call("fetch_page", url=url)
        extra = {pid: peak_kb(pid) - before.get(pid, 0) for pid in [os.getpid(), *worker_pids()]}
        own = extra.pop(os.getpid())
        report = {
            "own_kb": own,
            "workers_kb": sum(extra.values()),
            "status": result.meta.status,
            "content": result.content,
        }
        print(json.dumps(report))
        await tools.executor.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
