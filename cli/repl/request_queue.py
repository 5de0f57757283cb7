"""Runs requests one after another in one session; later ones wait in a queue."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.protocol.commands import Answer, RunControl, Submit
from agent.protocol.envelope import Envelope
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from cli.screen.sanitize import sanitize
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.app import App
    from agent.sessions.resume.lookup import ResumableRun

BUG_HINT = "this is a bug in Windlass"
_DISPLAY_LINES = 20
_DISPLAY_FAILED = "events can no longer be displayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """One request; with `is_reviewed` its plan is shown to the user before it runs.

    `resumes` is the run to resume, if any. `title` is displayed instead of the prompt, `attached` and `problems` below
    it. An `approval_mode` is used instead of the current one. `on_success` is called after a successful run.
    """

    submit: Submit
    is_reviewed: bool = False
    resumes: "ResumableRun | None" = None
    title: str = ""
    attached: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    approval_mode: str = ""
    on_success: Callable[[], None] = lambda: None

    @property
    def display_text(self) -> str:
        return self.title or self.submit.prompt

    def display_lines(self) -> list[str]:
        """Return the request as it is shown above its run."""
        first, *rest = sanitize(self.display_text).splitlines() or [""]
        lines = [f"> {first}", *(f"  {line}" for line in rest[: _DISPLAY_LINES - 1])]
        if len(rest) >= _DISPLAY_LINES:
            lines.append(f"  … {len(rest) - _DISPLAY_LINES + 1:,} more lines")
        return lines


class RequestQueue:
    """Executes queued requests, each as a separate run in the same session."""

    def __init__(
        self,
        *,
        open_app: Callable[["QueuedRequest"], "App"],
        on_event: Callable[[Envelope], None],
        on_error: Callable[[AgentError], None],
        on_start: Callable[[QueuedRequest], None],
        on_end: Callable[[], None],
    ) -> None:
        self._open_app = open_app
        self._on_event = on_event
        self._on_error = on_error
        self._on_start = on_start
        self._on_end = on_end
        self._app: App | None = None
        self._interruption: tuple[int, str] | None = None
        self._is_redirected = False
        self._wake = asyncio.Event()
        self._is_stopping = False
        self.is_busy = False
        self.is_paused = False
        self.pending: deque[QueuedRequest] = deque()
        self.session_id: str | None = None
        self.run_id: str | None = None

    @property
    def is_starting(self) -> bool:
        """Whether a request was accepted but has not begun, because the input came faster than it is handled."""
        return bool(self.pending) and not (self.is_busy or self.is_paused)

    def add(self, request: QueuedRequest) -> None:
        """Queue a request; on a paused queue, or while a run is being stopped, it is the next one to run."""
        if self.is_paused or self._interruption:
            self._is_redirected = True
            self.pending.appendleft(request)
        else:
            self.pending.append(request)
        self.resume()

    def resume(self) -> None:
        """Continue a paused queue."""
        self.is_paused = False
        self._wake.set()

    def clear(self) -> None:
        """Drop all pending requests."""
        self.pending.clear()
        self.is_paused = False

    def pop(self, number: int) -> QueuedRequest | None:
        """Remove and return a pending request, counted from 1; None if there is no such number."""
        if not 1 <= number <= len(self.pending):
            return None
        request = self.pending[number - 1]
        del self.pending[number - 1]
        self.is_paused = self.is_paused and bool(self.pending)
        return request

    def send(self, command: Answer | RunControl) -> bool:
        """Send an answer or a control command to the current run; return False if nothing accepts it."""
        return self._app.send(command) if self._app else False

    def interrupt(self, exit_code: int = exit_codes.INTERRUPTED, why: str = "interrupted") -> None:
        """Stop the current run; pending requests stay queued."""
        if not self.is_busy:
            return
        self._interruption = self._interruption or (exit_code, why)
        if self._app:
            self._app.interrupt(*self._interruption)

    def stop(self, exit_code: int = exit_codes.INTERRUPTED, why: str = "interrupted") -> None:
        """Interrupt the current run and make `run` return after it."""
        self._is_stopping = True
        self.interrupt(exit_code, why)
        self._wake.set()

    async def run(self) -> None:
        """Run requests in order until `stop`; a request that fails pauses the queue."""
        while not self._is_stopping:
            if not self.pending or self.is_paused:
                self._wake.clear()
                await self._wake.wait()
                continue
            self.is_busy, self._is_redirected = True, False
            request = self.pending.popleft()
            is_success = await self._run_request(request)
            self._app, self.is_busy, self._interruption = None, False, None
            self.is_paused = not is_success and bool(self.pending) and not self._is_redirected
            if is_success:
                request.on_success()
            self._on_end()

    async def _run_request(self, request: QueuedRequest) -> bool:
        """Run one request; return whether it succeeded."""
        self._on_start(request)
        try:
            # In a thread: pending imports or a slow disk must not block the prompt.
            app = self._app = await asyncio.to_thread(self._open_app, request)
            self.session_id, self.run_id = app.scope.folder.id, app.scope.run_id
            if self._interruption:
                app.interrupt(*self._interruption)
            listening = asyncio.ensure_future(self._listen(app))
            try:
                return not (await app.run(request.submit)).is_error
            finally:
                await listening
        except AgentError as error:
            self._on_error(error)
        except Exception as error:  # noqa: BLE001 (the edge of a run: the prompt outlives it)
            self._on_error(AgentError(f"internal error: {error!r}", BUG_HINT))
        return False

    async def _listen(self, app: "App") -> None:
        try:
            async for envelope in app.subscribe():
                self._on_event(envelope)
        except Exception:
            # The user would not see its approvals and questions.
            app.interrupt(exit_codes.FAILED, _DISPLAY_FAILED)
            raise


def paused_notice(count: int) -> str:
    """Return the notice that a failed run paused the queue."""
    requests = "1 request" if count == 1 else f"{count} requests"
    return f"queue paused ({requests}): Enter continues, /queue clear empties it"
