"""Requests one after another in one session: the one at work, and those that wait behind it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.protocol.commands import Answer, RunControl, Submit
from agent.protocol.events import Envelope
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.app import App
    from agent.sessions.resume.lookup import ResumableRun


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRequest:
    """One request; with `is_reviewed` its plan goes through the person's editor before it runs.

    `resumes` is a run to be gone on with; `title` is how the request is shown when it is not the person's own words;
    `then` is done when it has succeeded.
    """

    submit: Submit
    is_reviewed: bool = False
    resumes: "ResumableRun | None" = None
    title: str = ""
    on_success: Callable[[], None] = lambda: None

    @property
    def display_text(self) -> str:
        """Return what the person asked for."""
        return self.title or self.submit.prompt


class RequestQueue:
    """Works off requests; each is a run of its own, and all of them are one conversation."""

    def __init__(
        self,
        *,
        open_app: Callable[["QueuedRequest"], "App"],
        hear: Callable[[Envelope], None],
        fail: Callable[[AgentError], None],
        begin: Callable[[str], None],
        end: Callable[[], None],
    ) -> None:
        self._open_app = open_app
        self._on_event = hear
        self._on_error = fail
        self._on_start = begin
        self._on_end = end
        self._app: App | None = None
        self._interruption: tuple[int, str] | None = None
        self._wake = asyncio.Event()
        self._is_stopping = False
        self.is_busy = False
        self.is_paused = False
        self.pending: deque[QueuedRequest] = deque()
        self.session_id: str | None = None
        self.run_id: str | None = None

    def add(self, turn: QueuedRequest) -> None:
        """Take in a request; it starts when those before it have ended, and before those that are held."""
        if self.is_paused:
            self.pending.appendleft(turn)
        else:
            self.pending.append(turn)
        self.resume()

    def resume(self) -> None:
        """Hold nothing back any longer."""
        self.is_paused = False
        self._wake.set()

    def clear(self) -> None:
        """Drop what waits."""
        self.pending.clear()
        self.is_paused = False

    def pop(self, number: int) -> QueuedRequest | None:
        """Return one of those that wait, counted from 1, and let it wait no longer; None when there is none."""
        if not 1 <= number <= len(self.pending):
            return None
        turn = self.pending[number - 1]
        del self.pending[number - 1]
        self.is_paused = self.is_paused and bool(self.pending)
        return turn

    def send(self, command: Answer | RunControl) -> bool:
        """Hand an answer or a wish to the run; False when nobody waits for it."""
        return self._app.send(command) if self._app else False

    def interrupt(self, exit_code: int = exit_codes.INTERRUPTED, why: str = "interrupted") -> None:
        """End the run that is going on; what waits behind it stays."""
        if not self.is_busy:
            return
        self._interruption = self._interruption or (exit_code, why)
        if self._app:
            self._app.interrupt(*self._interruption)

    def stop(self, exit_code: int = exit_codes.INTERRUPTED, why: str = "interrupted") -> None:
        """Let `work` end after the run that is going on, which is interrupted."""
        self._is_stopping = True
        self.interrupt(exit_code, why)
        self._wake.set()

    async def run(self) -> None:
        """Run the requests in order until somebody leaves; one that did not succeed holds back those behind it."""
        while not self._is_stopping:
            if not self.pending or self.is_paused:
                self._wake.clear()
                await self._wake.wait()
                continue
            self.is_busy, self._interruption = True, None
            turn = self.pending.popleft()
            is_good = await self._run_request(turn)
            self._app, self.is_busy = None, False
            self.is_paused = not is_good and bool(self.pending)
            if is_good:
                turn.on_success()
            self._on_end()

    async def _run_request(self, turn: QueuedRequest) -> bool:
        """Run one request; say whether it succeeded."""
        self._on_start(turn.display_text)
        try:
            # In a thread: what is still being loaded, or a slow disk, must not hold up the prompt.
            app = self._app = await asyncio.to_thread(self._open_app, turn)
            self.session_id, self.run_id = app.scope.folder.id, app.scope.run_id
            if self._interruption:
                app.interrupt(*self._interruption)
            listening = asyncio.ensure_future(self._listen(app))
            try:
                return not (await app.run(turn.submit)).is_error
            finally:
                await listening
        except AgentError as error:
            self._on_error(error)
        except Exception as error:  # noqa: BLE001 (the edge of a run: the prompt outlives it)
            self._on_error(AgentError(f"internal error: {error!r}", "this is a bug in Windlass"))
        return False

    async def _listen(self, app: "App") -> None:
        try:
            async for envelope in app.subscribe():
                self._on_event(envelope)
        except Exception:
            # Nobody would see what it asks.
            app.interrupt(exit_codes.FAILED, "what happens can no longer be shown")
            raise
