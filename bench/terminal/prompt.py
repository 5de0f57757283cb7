"""Measure the interactive prompt: startup, latency of a key, CPU usage when idle and while drawing."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import AGENT, PYTHON, BenchError, Home
from bench.replies import DONE, plan
from tests.provider.replies import Pace, Reply
from tests.provider.threaded import ThreadedProvider

ROUNDS = 20
STEPS = 8
TOKENS_PER_SECOND = 100
KEYS = 60
KEY_EVERY_S = 0.05
WATCHED_S = 6.0
SETTLED_S = 3.0
STREAMED_S = 30
MODEL = "openai/bench-model"
# A letter that appears nowhere else on the screen.
KEY = "Ж".encode()
# Part of the greeting.
READY = b"Ctrl-D "
_TIMEOUT_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")
# Every fragment is one token; a line of the stream is about a sentence long.
_TOKEN_CHARS = 5
WORDS = "word " * 15 + "end.\n"


class PtySession:
    """A program on its own pseudo-terminal, with simulated typing."""

    def __init__(self, home: Home, words: tuple[str, ...]) -> None:
        self._pty, terminal = os.openpty()
        ioctl(terminal, TIOCSWINSZ, pack("HHHH", 40, 120, 0, 0))
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(
            words,
            env={**home.environ, "TERM": "xterm-256color", "AGENT_MODEL": MODEL, "PYTHONPATH": str(ROOT)},
            cwd=home.folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self._output = b""

    def wait_for(self, text: bytes, times: int = 1) -> float:
        """Wait until a text has been shown a number of times; return the time."""
        deadline = time.monotonic() + _TIMEOUT_S
        while self._output.count(text) < times:
            if time.monotonic() > deadline:
                raise BenchError(f"{text!r} was not shown:\n{self._output[-2000:].decode(errors='replace')}")
            self._read_output(0.5)
        return time.monotonic()

    def send_keys(self, keys: bytes) -> None:
        os.write(self._pty, keys)

    def measure_cpu(self, seconds: float) -> float:
        """Read output for a while; return the CPU usage of the program in percent."""
        started, used = time.monotonic(), self._cpu_s()
        while (left := started + seconds - time.monotonic()) > 0:
            self._read_output(left)
        return 100 * (self._cpu_s() - used) / (time.monotonic() - started)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._pty)

    def _read_output(self, seconds: float) -> None:
        if select.select([self._pty], [], [], seconds)[0]:
            self._output = (self._output + os.read(self._pty, 65536))[-200_000:]

    def wait_for_exit(self) -> None:
        """Read output until the program ends."""
        deadline = time.monotonic() + _TIMEOUT_S
        # On Linux, reading fails once no process has the terminal open.
        with suppress(OSError):
            while self._process.poll() is None and time.monotonic() < deadline:
                self._read_output(0.1)
        self._process.wait(_TIMEOUT_S)

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def prompt() -> list[BenchResult]:
    """Measure the time until the prompt shows against an idle interpreter, and its CPU usage while idle."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))

        def ours() -> float:
            with open_session(home, AGENT) as session:
                return session.wait_for(b"> ") - session.started_at

        samples, floors = sample_interleaved(ROUNDS, ours, lambda: home.run([PYTHON, "-c", "pass"]).seconds)
        with open_session(home, AGENT) as session:
            session.wait_for(READY)
            session.measure_cpu(SETTLED_S)
            idle = session.measure_cpu(WATCHED_S)
    return [
        ratio("start → prompt of `agent` against `python -c pass`", 5.0, samples, floors),
        BenchResult(
            what="idle prompt, share of one CPU",
            measured=idle,
            limit=0.5,
            unit="%",
            detail=f"over {WATCHED_S:g} s, once everything is loaded",
        ),
    ]


def typing() -> list[BenchResult]:
    """Measure the latency of a key while eight steps stream a hundred tokens per second each."""
    tokens = TOKENS_PER_SECOND * STREAMED_S
    text = (WORDS * tokens)[: tokens * _TOKEN_CHARS]
    stream = Reply(text=text, fragment_chars=_TOKEN_CHARS, pace=Pace(between_s=1 / TOKENS_PER_SECOND))
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DONE) as provider:
        home = Home(Path(name), provider, planning="always")
        provider.reply(plan(STEPS), *[stream] * STEPS)
        with open_session(home, AGENT) as session:
            session.wait_for(READY)
            session.send_keys(b"do what the benchmark asks\r")
            session.wait_for(f"0/{STEPS} steps".encode())
            echoes = [_echo(session, number) for number in range(1, KEYS + 1)]
            if len(provider.requests) > STEPS + 1:
                raise BenchError("the steps ended before all keys were typed")
    return [milliseconds(f"key → echo while {STEPS} steps stream {TOKENS_PER_SECOND} tokens/s each", 20, echoes)]


def drawing() -> list[BenchResult]:
    """Measure the CPU usage of drawing as many tokens: the real UI, without a run behind it."""
    with tempfile.TemporaryDirectory() as name:
        home, result = Home(Path(name)), Path(name, "share")
        words = (PYTHON, "-m", "bench.terminal.drawing", str(WATCHED_S), str(TOKENS_PER_SECOND), str(result))
        with open_session(home, *words) as session:
            session.wait_for_exit()
        if not result.exists():
            raise BenchError("nothing was drawn")
        share = 100 * float(result.read_text())
    detail = f"{STEPS} steps, events as they arrive, over {WATCHED_S:g} s"
    what = f"drawing {STEPS * TOKENS_PER_SECOND} tokens/s, share of one CPU"
    return [BenchResult(what=what, measured=share, limit=10, unit="%", detail=detail)]


def _echo(session: PtySession, number: int) -> float:
    session.measure_cpu(KEY_EVERY_S)
    pressed = time.monotonic()
    session.send_keys(KEY)
    return session.wait_for(KEY, number) - pressed


@contextmanager
def open_session(home: Home, *words: str) -> Iterator[PtySession]:
    session = PtySession(home, words)
    try:
        yield session
    finally:
        session.close()
