"""How the interactive prompt feels: when it is there, how fast a key is seen, and what it costs to show things."""

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
# A letter that nothing else on the screen has.
KEY = "Ж".encode()
_TIMEOUT_S = 60.0
ROOT = Path(__file__).resolve().parents[1]
_TICKS = os.sysconf("SC_CLK_TCK")
# Every fragment is one token; each line of the stream is about as long as a sentence.
_TOKEN_CHARS = 5
WORDS = "word " * 15 + "end.\n"


class PtySession:
    """A program on a terminal of its own, and somebody who types and looks."""

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
        """Wait until something has been shown so often; return when."""
        deadline = time.monotonic() + _TIMEOUT_S
        while self._output.count(text) < times:
            if time.monotonic() > deadline:
                raise BenchError(f"{text!r} was not shown:\n{self._output[-2000:].decode(errors='replace')}")
            self._read_output(0.5)
        return time.monotonic()

    def send_keys(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._pty, keys)

    def measure_cpu(self, seconds: float) -> float:
        """Look on for a while; return how much of a processor the program used, in percent."""
        began, used = time.monotonic(), self._cpu_s()
        while (left := began + seconds - time.monotonic()) > 0:
            self._read_output(left)
        return 100 * (self._cpu_s() - used) / (time.monotonic() - began)

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()
        os.close(self._pty)

    def _read_output(self, seconds: float) -> None:
        if select.select([self._pty], [], [], seconds)[0]:
            self._output = (self._output + os.read(self._pty, 65536))[-200_000:]

    def wait_for_exit(self) -> None:
        """Look on until the program has ended."""
        deadline = time.monotonic() + _TIMEOUT_S
        # On Linux a terminal that the last program has left is an error.
        with suppress(OSError):
            while self._process.poll() is None and time.monotonic() < deadline:
                self._read_output(0.1)
        self._process.wait(_TIMEOUT_S)

    def _cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def prompt() -> list[BenchResult]:
    """Measure how soon the prompt is seen against an interpreter that does nothing, and what it costs to leave open."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))

        def ours() -> float:
            with _open_session(home, AGENT) as sitting:
                return sitting.wait_for(b"> ") - sitting.started_at

        samples, floors = sample_interleaved(ROUNDS, ours, lambda: home.run([PYTHON, "-c", "pass"]).seconds)
        with _open_session(home, AGENT) as sitting:
            sitting.wait_for(b"Ctrl-D leaves")
            sitting.measure_cpu(SETTLED_S)
            idle = sitting.measure_cpu(WATCHED_S)
    return [
        ratio("start → prompt of `agent` against `python -c pass`", 5.0, samples, floors),
        BenchResult(
            what="a prompt nobody types at, of one processor",
            measured=idle,
            limit=0.5,
            unit="%",
            detail=f"over {WATCHED_S:g} s, once all is loaded",
        ),
    ]


def typing() -> list[BenchResult]:
    """Measure how fast a key is seen while eight steps stream a hundred tokens a second each."""
    tokens = TOKENS_PER_SECOND * STREAMED_S
    text = (WORDS * tokens)[: tokens * _TOKEN_CHARS]
    stream = Reply(text=text, fragment_chars=_TOKEN_CHARS, pace=Pace(between_s=1 / TOKENS_PER_SECOND))
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DONE) as provider:
        home = Home(Path(name), provider)
        provider.reply(plan(STEPS), *[stream] * STEPS)
        with _open_session(home, AGENT) as sitting:
            sitting.wait_for(b"Ctrl-D leaves")
            sitting.send_keys(b"do what the benchmark asks\r")
            sitting.wait_for(f"0/{STEPS} steps".encode())
            echoes = [_echo(sitting, number) for number in range(1, KEYS + 1)]
            if len(provider.requests) > STEPS + 1:
                raise BenchError("the steps ended before all keys were typed")
    return [milliseconds(f"key → echo while {STEPS} steps stream {TOKENS_PER_SECOND} tokens/s each", 20, echoes)]


def drawing() -> list[BenchResult]:
    """Measure what it costs to show as many tokens: the real screen, with nothing behind it."""
    with tempfile.TemporaryDirectory() as name:
        home, result = Home(Path(name)), Path(name, "share")
        words = (PYTHON, "-m", "bench.drawing", str(WATCHED_S), str(TOKENS_PER_SECOND), str(result))
        with _open_session(home, *words) as sitting:
            sitting.wait_for_exit()
        if not result.exists():
            raise BenchError("what was to be drawn was not drawn")
        share = 100 * float(result.read_text())
    detail = f"{STEPS} steps, events as they come, over {WATCHED_S:g} s"
    what = f"drawing {STEPS * TOKENS_PER_SECOND} tokens/s, of one processor"
    return [BenchResult(what=what, measured=share, limit=10, unit="%", detail=detail)]


def _echo(sitting: PtySession, number: int) -> float:
    sitting.measure_cpu(KEY_EVERY_S)
    pressed = time.monotonic()
    sitting.send_keys(KEY)
    return sitting.wait_for(KEY, number) - pressed


@contextmanager
def _open_session(home: Home, *words: str) -> Iterator[PtySession]:
    sitting = PtySession(home, words)
    try:
        yield sitting
    finally:
        sitting.close()
