"""A child process that runs `agent run` for a worker: reads commands, writes events, and is killed with the worker."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from agent.backends.process.orphans import kill_orphans
from agent.backends.process.watchdog import MARKER, get_watchdog
from tooling.contract.json_codec import JsonObject

# Upper limit of one event; events contain outputs and diffs.
_MAX_LINE = 64_000_000
_STDERR_BYTES = 8_000
# Time for a stopped run to finish cleanly.
GRACE_S = 10.0


class AgentProcess:
    """One process of `agent run --input-format stream-json`, in its own process session."""

    def __init__(self, process: asyncio.subprocess.Process, marker: str) -> None:
        self._process = process
        self._marker = marker
        self._last_words = b""
        self._reading = asyncio.ensure_future(self._read_stderr())

    @classmethod
    async def start(cls, argv: Sequence[str], environ: Mapping[str, str], cwd: Path) -> "AgentProcess":
        """Start the program; it is killed if this process is killed."""
        watchdog = get_watchdog()
        marker = watchdog.add_command()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**environ, MARKER: marker},
                cwd=cwd,
                start_new_session=True,
                limit=_MAX_LINE,
            )
        except BaseException:
            watchdog.remove_command()
            raise
        return cls(process, marker)

    @property
    def last_words(self) -> str:
        """The last lines that the program wrote to stderr."""
        return self._last_words.decode(errors="replace").strip()

    async def send(self, command: JsonObject) -> None:
        """Write a command; a program that has ended ignores it."""
        if self._process.stdin:
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._process.stdin.write(json.dumps(command).encode() + b"\n")
                await self._process.stdin.drain()

    async def events(self) -> AsyncIterator[JsonObject]:
        """Yield the events that the program writes, until it closes its output."""
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    yield event

    async def close_input(self) -> None:
        """Signal that no more commands follow."""
        if self._process.stdin:
            self._process.stdin.close()

    async def read_all(self) -> str:
        """Return everything that the program writes."""
        assert self._process.stdout
        return (await self._process.stdout.read()).decode(errors="replace")

    async def end(self) -> int:
        """End the program and everything it has started, and return its exit code."""
        try:
            if self._process.returncode is None:
                await self._stop()
        finally:
            # Only before it is reaped: afterwards its pid may belong to another process.
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            marker = f"{MARKER}={self._marker}"
            await asyncio.shield(asyncio.to_thread(kill_orphans, session=self._process.pid, marker=marker))
            get_watchdog().remove_command()
        code = await self._process.wait()
        self._reading.cancel()
        return code

    async def _stop(self) -> None:
        """Let the run finish cleanly: close its input, then send SIGTERM, then SIGKILL."""
        if self._process.stdin:
            self._process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            # Not `send_signal`, which reaps a process that has just ended, before asyncio does.
            os.kill(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._drain()

    async def _drain(self) -> None:
        """Wait for the exit while reading the remaining output; a full pipe would block the program."""
        assert self._process.stdout
        while await self._process.stdout.read(1 << 16):
            pass
        await self._process.wait()

    async def _read_stderr(self) -> None:
        assert self._process.stderr
        while chunk := await self._process.stderr.read(4096):
            self._last_words = (self._last_words + chunk)[-_STDERR_BYTES:]
