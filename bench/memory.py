"""Measure the peak memory of a run, and the growth of a long run."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.measure import BenchResult
from bench.program import BenchError, Home
from bench.replies import DONE, command, last_result, plan
from tests.provider.server import ReceivedRequest, Responder, ScriptedReply
from tests.provider.threaded import ThreadedProvider

MEGABYTE = 1000 * 1000
SHORT_RUNS = 5
TURNS = 100
FLAT_FROM = 20
FLAT_MB = 5.0
LINE = "a line of output like any other"
ONE_MEGABYTE_OF_LINES = f"yes '{LINE}' | head -c 1000000"
_POLL_S = 0.005


def one_shot() -> list[BenchResult]:
    """Measure the peak of a run with a plan, one step, one command and an answer."""
    with tempfile.TemporaryDirectory() as name, ThreadedProvider() as provider:
        home = Home(Path(name), provider, planning="always")
        peaks: list[float] = []
        for _ in range(SHORT_RUNS):
            provider.reply(plan(1), command("true"), DONE)
            peaks.append(_peak(home, "--approval-mode", "yolo"))
    what, detail = "peak memory of a one-shot run", f"median of {SHORT_RUNS} runs with one command each"
    return [BenchResult(what=what, measured=median(peaks), limit=60, unit="MB", detail=detail)]


def long_run() -> list[BenchResult]:
    """Measure the peak of a hundred turns with a megabyte of output each, and the growth after turn twenty."""
    by_turn: list[float] = []
    pids: list[int] = []

    def next_call(reply: ScriptedReply) -> Responder:
        def respond(request: ReceivedRequest) -> ScriptedReply:
            by_turn.append(_memory(pids[0], "VmRSS"))
            return reply

        return respond

    with tempfile.TemporaryDirectory() as name, ThreadedProvider() as provider:
        # Repeating the identical call would trigger stall detection.
        calls = [next_call(command(f"{ONE_MEGABYTE_OF_LINES}; true {number}")) for number in range(TURNS)]
        provider.reply(plan(1), *calls, next_call(DONE))
        home = Home(Path(name), provider, planning="always")
        flags = ("--approval-mode", "yolo", "--max-turns", str(TURNS + 1))
        peak = _peak(home, *flags, on_start=pids.append)
        _check(provider.requests)
    early, late = median(by_turn[FLAT_FROM - 4 : FLAT_FROM + 1]), median(by_turn[-5:])
    grown = f"{by_turn[0]:.1f} MB at turn 1, {early:.1f} MB at turn {FLAT_FROM}, {late:.1f} MB at turn {TURNS}"
    return [
        BenchResult(
            what=f"peak memory of a {TURNS}-turn run with 1 MB outputs",
            measured=peak,
            limit=120,
            unit="MB",
            detail=grown,
        ),
        BenchResult(
            what=f"its growth after turn {FLAT_FROM}",
            measured=max(late - early, 0.0),
            limit=FLAT_MB,
            unit="MB",
            detail="medians of five turns each",
        ),
    ]


def _check(requests: list[ReceivedRequest]) -> None:
    """Raise unless every turn took place and the commands ran."""
    if len(requests) != TURNS + 2:
        raise BenchError(f"the long run had {len(requests)} requests instead of {TURNS + 2}")
    if LINE not in (result := last_result(requests[-1])):
        raise BenchError(f"the command was not run: {result}")


def _peak(home: Home, *flags: str, on_start: Callable[[int], None] | None = None) -> float:
    """Return the peak memory of a run, sampled every few milliseconds until its end."""
    peaks = [0.0]

    def poll(pid: int) -> None:
        try:
            while now := _memory(pid, "VmHWM"):
                peaks.append(now)
                ended.wait(_POLL_S)
        except OSError:
            return

    def watch(pid: int) -> None:
        if on_start:
            on_start(pid)
        threading.Thread(target=poll, args=(pid,), daemon=True).start()

    # wait4 includes memory of the parent from before exec, so poll the process itself.
    ended = threading.Event()
    home.agent_run(*flags, watch=watch)
    ended.set()
    return max(peaks)


def _memory(pid: int, name: str) -> float:
    """Return a field of a process's status in megabytes, or zero if the process has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / MEGABYTE
    return 0.0
