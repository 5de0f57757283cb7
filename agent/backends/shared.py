"""A backend that outlives one run: in the REPL, files in /tmp and background commands stay until the session ends."""

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.backends.backend import Backend, BackendOptions
from agent.backends.table import build_backend
from agent.vocabulary.errors import SandboxError
from tooling.contract.fast_dataclass import dataclass
from tooling.jobs import BackgroundJobs
from tooling.safety.secrets.redact import Redactor
from tooling.web.network_attempt import NetworkAttempt

if TYPE_CHECKING:
    from tooling.mcp.connection import KeptConnections


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A backend with the options it was built from."""

    name: str
    options: BackendOptions
    backend: Backend
    jobs: BackgroundJobs

    async def close(self) -> None:
        await self.jobs.close()
        await self.backend.close()


class SharedBackend:
    """Keeps the backend and the background commands of a session; a run with other folders or hosts gets new ones."""

    def __init__(self) -> None:
        self._opened: _Opened | None = None
        self._run: BackendOptions | None = None
        self._closing: set[asyncio.Future[None]] = set()
        # The MCP servers of the session, if it uses any.
        self.connections: KeptConnections | None = None

    def open(self, name: str, options: BackendOptions, secrets: Iterable[str] = ()) -> tuple[Backend, BackgroundJobs]:
        """Return the backend and jobs for the next run, which receives all events until it closes the backend."""
        wanted = options.without_callbacks()
        opened = self._opened
        if opened is None or (opened.name, opened.options) != (name, wanted):
            if opened is not None:
                self._close_later(opened)
            opened = self._opened = self._build(name, wanted, secrets)
        self._run = options
        return replace(opened.backend, close=self._end_run), opened.jobs

    def report_to_current_run(self, options: BackendOptions) -> BackendOptions:
        """Return the options with callbacks that go to the current run."""
        return replace(options, on_attempt=self._on_attempt, warn=self._warn, on_sandbox_error=self._on_sandbox_error)

    async def close(self) -> None:
        """End all background commands, the MCP servers and the backend."""
        if self.connections is not None:
            await self.connections.close()
        if self._opened is not None:
            self._close_later(self._opened)
            self._opened = None
        if self._closing:
            await asyncio.wait(self._closing)

    def _build(self, name: str, options: BackendOptions, secrets: Iterable[str]) -> _Opened:
        backend = build_backend(name, self.report_to_current_run(options))
        jobs = BackgroundJobs(backend.runner, Redactor(secrets).redact_file)
        return _Opened(name=name, options=options, backend=backend, jobs=jobs)

    async def _end_run(self) -> None:
        self._run = None
        if self._opened is not None:
            self._opened.backend.end_run()

    def _close_later(self, opened: _Opened) -> None:
        closing = asyncio.ensure_future(opened.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _on_attempt(self, attempt: NetworkAttempt) -> Awaitable[None] | None:
        # A background command may try to reach a host between two runs.
        return None if self._run is None else self._run.on_attempt(attempt)

    def _warn(self, message: str) -> None:
        if self._run is not None:
            self._run.warn(message)

    def _on_sandbox_error(self, error: SandboxError) -> None:
        # The next run tries again.
        self._opened = None
        if self._run is not None:
            self._run.on_sandbox_error(error)
