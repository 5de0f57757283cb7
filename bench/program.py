"""Start the measured programs as a user does, each with its own home, and time them on one clock."""

import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.provider.server import ReceivedRequest
from tests.provider.threaded import ThreadedProvider

PYTHON = sys.executable
AGENT = str(Path(sys.executable).with_name("agent"))
_BASELINES = Path(__file__).parent / "baselines"
BARE_CLIENTS = {"httpx": str(_BASELINES / "bare_client.py"), "stdlib": str(_BASELINES / "bare_stdlib.py")}
BARE_GRAPH = str(_BASELINES / "bare_graph.py")
BARE_LOOP = str(_BASELINES / "bare_loop.py")
BARE_STEPS = str(_BASELINES / "bare_steps.py")
BARE_PROMPT = str(_BASELINES / "bare_prompt.py")
_TIMEOUT_S = 120.0


class BenchError(Exception):
    """A measured program failed, so its time is meaningless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRun:
    """One finished process, timed on the same clock as the provider's requests."""

    started_at: float
    ended_at: float
    # User and system time, with that of its children that it has waited for.
    cpu_s: float = 0.0
    requests: tuple[ReceivedRequest, ...] = ()

    @property
    def seconds(self) -> float:
        return self.ended_at - self.started_at

    @property
    def until_first_request(self) -> float:
        """Return the time from the start until the first request has arrived completely."""
        return self.requests[0].received_at - self.started_at

    @property
    def after_last_byte(self) -> float:
        """Return the time from the last byte of the last reply to the end of the process."""
        return self.ended_at - max(reply_ended_at(request) for request in self.requests)


class Home:
    """A temporary home without keys or settings; `planning` is for benches whose provider acts as a planner."""

    def __init__(self, folder: Path, provider: ThreadedProvider | None = None, *, planning: str = "auto") -> None:
        self.folder = folder
        self._provider = provider
        self.environ = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "AGENT_SANDBOX": str(folder / "data"),
            "LANG": "C.UTF-8",
            "AGENT_PLANNING": planning,
        }
        if provider:
            self.environ |= {"AGENT_API_BASE": provider.base_url, "AGENT_API_KEY": "sk-0123456789abcdef"}

    def run(self, words: Sequence[str], *, watch: Callable[[int], None] | None = None) -> ProcessRun:
        """Run a command to its end; `watch` receives the process id as soon as it starts."""
        before = len(self._provider.requests) if self._provider else 0
        with tempfile.TemporaryFile() as output:
            used_before = _children_cpu_s()
            started_at = time.monotonic()
            process = subprocess.Popen(
                words, env=self.environ, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            if watch:
                watch(process.pid)
            # `wait` with a timeout polls; with a timer that kills instead, it returns as soon as the process ends.
            limit = threading.Timer(_TIMEOUT_S, process.kill)
            limit.start()
            exit_code = process.wait()
            ended_at = time.monotonic()
            limit.cancel()
            if exit_code:
                output.seek(0)
                raise BenchError(
                    f"{' '.join(words)} exited with {exit_code}:\n{output.read().decode(errors='replace')}"
                )
        requests = tuple(self._provider.requests[before:]) if self._provider else ()
        cpu_s = _children_cpu_s() - used_before
        return ProcessRun(started_at=started_at, ended_at=ended_at, cpu_s=cpu_s, requests=requests)

    def agent_run(self, *flags: str, watch: Callable[[int], None] | None = None) -> ProcessRun:
        """Run `agent run` against the provider."""
        words = [AGENT, "run", "--model", "openai/bench-model", *flags, "do what the benchmark asks"]
        return self.run(words, watch=watch)

    def bare_request(self, body: Path, script: str = "httpx") -> ProcessRun:
        """Run the bare script that sends a recorded body."""
        return self.run([PYTHON, BARE_CLIENTS[script], self._address, str(body)])

    def bare_loop(self, body: Path, count: int) -> ProcessRun:
        """Run the bare script that sends a recorded body and runs a command, `count` times."""
        return self.run([PYTHON, BARE_LOOP, self._address, str(body), str(count)])

    def bare_graph(self, body: Path, graph: Path) -> ProcessRun:
        """Run the bare script that sends a recorded body for every step of a graph."""
        return self.run([PYTHON, BARE_GRAPH, self._address, str(body), str(graph)])

    def bare_steps(self, body: Path, count: int) -> ProcessRun:
        """Run the bare script that sends a recorded body for `count` steps at once."""
        return self.run([PYTHON, BARE_STEPS, self._address, str(body), str(count)])

    @property
    def _address(self) -> str:
        assert self._provider
        return f"{self._provider.base_url}/chat/completions"


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reply_ended_at(request: ReceivedRequest) -> float:
    """Return when the last byte of a reply was written."""
    if request.answered_at is None:
        raise BenchError("a request was abandoned before its reply was complete")
    return request.answered_at
