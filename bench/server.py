"""Load on `agent serve`: many clients on the event stream of a live run, and a steady rate of other requests."""

import asyncio
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

from agent.protocol.events import RunCompleted, RunStarted, WarningRaised
from agent.service.dbos_engine.engine import DbosEngine
from agent.service.dbos_engine.records import STARTED
from agent.service.task import TaskRequest
from agent.sessions.store import SessionStore
from bench.measure import BenchResult
from bench.program import BenchError
from tests.agent.api.served import WrittenRun
from tooling.contract.json_codec import encode

CLIENTS, RATE, SECONDS = 200, 50, 60
EVENTS_PER_S = 10
TASK = "bench"
_TOKEN = "token-of-the-benchmark-only"
_ADDRESS = re.compile(r"listening on http://([\d.]+):(\d+)")
_TEXT = "x" * 300
_STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="host", approval_mode="ask", tools=(), task_id=TASK
)


@dataclass
class Load:
    """Measurements: times of requests, errors, and the events received by each stream."""

    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    written: int = 0

    @property
    def missing(self) -> int:
        """Number of events that a client missed or received twice."""
        return sum(abs(self.written - count) for count in self.events)


def server() -> list[BenchResult]:
    """Measure a minute of load."""
    with _before_others():
        load = measure(CLIENTS, RATE, SECONDS)
    if not load.times:
        raise BenchError(f"no request was answered: {load.errors[:3]}")
    p50, p99 = median(load.times), quantiles(load.times, n=100)[98]
    early, late = median(load.memory[2:6]), median(load.memory[-4:])
    what = f"{CLIENTS} clients on the event stream and {RATE} requests/s for {SECONDS} s"
    detail = f"{len(load.times)} requests, {len(load.events) * load.written:,} events"
    return [
        BenchResult(what=f"{what}: errors", measured=len(load.errors), limit=0, unit="", detail=detail),
        BenchResult(what="events lost or sent twice", measured=load.missing, limit=0, unit="", detail=detail),
        BenchResult(
            what="p99 of `GET task` against its p50",
            measured=p99 / p50,
            limit=5,
            unit="×",
            detail=f"{p99 * 1000:.1f} ms against {p50 * 1000:.1f} ms",
        ),
        BenchResult(
            what="growth of the server's memory",
            measured=max(0.0, (late - early) / early * 100),
            limit=5,
            unit="%",
            detail=f"{early / 1e6:.0f} MB to {late / 1e6:.0f} MB",
        ),
    ]


@contextmanager
def _before_others() -> Iterator[None]:
    """Raise the priority of server and clients if allowed, so that other processes do not affect the tail latency."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except (OSError, AttributeError):
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def measure(clients: int, rate: int, seconds: float) -> Load:
    """Run a server in a separate process under load."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        run = WrittenRun(SessionStore(data), "s1", "run-1")
        run.write(_STARTED)
        with run.running(), _served(data) as (process, host, port):
            return asyncio.run(_load(run, process, (host, port), clients, rate, seconds))


@contextmanager
def _served(data: Path) -> Iterator[tuple["subprocess.Popen[str]", str, int]]:
    environ = {
        **os.environ,
        "AGENT_SANDBOX": str(data),
        "AGENT_CONFIG_DIR": str(data),
        "AGENT_INTERNAL_API_TOKEN": _TOKEN,
        "AGENT_REQUESTS_PER_SECOND": "1000",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "serve", "--port", "0"], env=environ, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    try:
        first = process.stderr.readline()
        found = _ADDRESS.search(first)
        if not found:
            raise BenchError(f"the server does not start: {first}{process.stderr.read()}")
        yield process, found[1], int(found[2])
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


async def _load(
    run: WrittenRun,
    process: "subprocess.Popen[str]",
    address: tuple[str, int],
    clients: int,
    rate: int,
    seconds: float,
) -> Load:
    load = Load(written=1)
    await _create_running_task(run.folder.root.parents[1])
    path = f"/api/v1/tasks/{TASK}"
    # Reading the streams takes CPU time: in this process it would delay the timed requests.
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    mark = run.folder.root / "all-clients-are-there"
    streams = asyncio.get_running_loop().run_in_executor(pool, follow_all, address, clients, mark)
    while not mark.exists() and not streams.done():  # noqa: ASYNC110 (another process creates the file)
        await asyncio.sleep(0.05)
    end = time.monotonic() + seconds
    await asyncio.gather(
        _write(run, load, end),
        _watch_memory(process.pid, load, end, seconds / 20),
        *(_ask(address, path, load, end, rate / 5, number / rate) for number in range(5)),
    )
    run.write(RunCompleted(subtype="success", is_error=False, exit_code=0, result="done"))
    load.written += 1
    load.events, errors = await streams
    load.errors += errors
    pool.shutdown()
    return load


async def _create_running_task(data: Path) -> None:
    """Put a task into the queue that looks as if the run was its own, so that showing it needs the log."""
    engine = DbosEngine(data)
    await engine.tasks.submit(TaskRequest(prompt="work", session_id="s1"), TASK)
    await engine.tasks.call(engine.tasks.note, TASK, {STARTED: encode(datetime.now(UTC))})
    await engine.close()


def follow_all(address: tuple[str, int], clients: int, mark: Path) -> tuple[list[int], list[str]]:
    """Follow the run with many clients in a separate process; the file `mark` signals that all have started."""

    async def follow() -> tuple[list[int], list[str]]:
        load, arrived = Load(), asyncio.Semaphore(0)
        streams = [asyncio.create_task(_follow(address, load, arrived)) for _ in range(clients)]
        for _ in streams:
            await arrived.acquire()
        _touch(mark)
        await asyncio.gather(*streams)
        return load.events, load.errors

    return asyncio.run(follow())


def _touch(path: Path) -> None:
    path.touch()


async def _write(run: WrittenRun, load: Load, end: float) -> None:
    while time.monotonic() < end:
        run.write(WarningRaised(message=_TEXT))
        load.written += 1
        await asyncio.sleep(1 / EVENTS_PER_S)


async def _watch_memory(pid: int, load: Load, end: float, pause_s: float) -> None:
    while time.monotonic() < end:
        load.memory.append(_resident_bytes(pid))
        await asyncio.sleep(pause_s)


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def _ask(address: tuple[str, int], path: str, load: Load, end: float, rate: float, offset_s: float) -> None:
    """Send requests at a rate, whether or not the server keeps up, over one connection."""
    await asyncio.sleep(offset_s)
    reader, writer = await asyncio.open_connection(*address)
    due = time.monotonic()
    try:
        while due < end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            started = time.perf_counter()
            writer.write(_head(address, path))
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            await reader.readexactly(int(length[1]) if length else 0)
            load.times.append(time.perf_counter() - started)
            if not head.startswith(b"HTTP/1.1 200"):
                load.errors.append(head.split(b"\r\n")[0].decode())
            due += 1 / rate
    except (OSError, asyncio.IncompleteReadError) as error:
        load.errors.append(repr(error))
    finally:
        writer.close()


async def _follow(address: tuple[str, int], load: Load, arrived: asyncio.Semaphore) -> None:
    """Read a stream to its end, and count its events; `arrived` counts the clients with a first event."""
    count = 0
    try:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(_head(address, "/api/v1/runs/run-1/events"))
        while line := await reader.readline():
            count += line.startswith(b"id: ")
            if line == b"id: 1\n":
                arrived.release()
            if line.startswith(b"event: end"):
                break
        else:
            load.errors.append("a stream ended early")
        writer.close()
    except OSError as error:
        load.errors.append(repr(error))
        arrived.release()
    load.events.append(count)


def _head(address: tuple[str, int], path: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n"
    ).encode()
