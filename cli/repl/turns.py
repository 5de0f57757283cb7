"""Requests one after another in one session: the one at work, and those that wait behind it."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.protocol.commands import Answer, Submit, Wish
from agent.protocol.events import Envelope
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError

if TYPE_CHECKING:
    from agent.app import App


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request; with `is_reviewed` its plan goes through the person's editor before it runs."""

    submit: Submit
    is_reviewed: bool = False


class Turns:
    """Works off requests; each is a run of its own, and all of them are one conversation."""

    def __init__(
        self,
        *,
        open_app: Callable[["Turn"], "App"],
        hear: Callable[[Envelope], None],
        fail: Callable[[AgentError], None],
        begin: Callable[[str], None],
        end: Callable[[], None],
    ) -> None:
        self._open_app = open_app
        self._hear = hear
        self._fail = fail
        self._begin = begin
        self._end = end
        self._app: App | None = None
        self._wake = asyncio.Event()
        self._is_leaving = False
        self.waiting: deque[Turn] = deque()
        self.session_id: str | None = None
        self.run_id: str | None = None

    @property
    def is_busy(self) -> bool:
        """Say whether a run is going on."""
        return self._app is not None

    def add(self, turn: Turn) -> None:
        """Take in a request; it starts when those before it have ended."""
        self.waiting.append(turn)
        self._wake.set()

    def send(self, command: Answer | Wish) -> bool:
        """Hand an answer or a wish to the run; False when nobody waits for it."""
        return self._app.send(command) if self._app else False

    def interrupt(self) -> None:
        """End the run that is going on; what waits behind it stays."""
        if self._app:
            self._app.interrupt(exit_codes.INTERRUPTED, "interrupted")

    def leave(self) -> None:
        """Let `work` end after the run that is going on, which is interrupted."""
        self._is_leaving = True
        self.interrupt()
        self._wake.set()

    async def work(self) -> None:
        """Run the requests in order until somebody leaves."""
        while not self._is_leaving:
            if not self.waiting:
                self._wake.clear()
                await self._wake.wait()
                continue
            await self._one(self.waiting.popleft())

    async def _one(self, turn: Turn) -> None:
        submit = turn.submit
        self._begin(submit.prompt)
        try:
            app = self._app = self._open_app(turn)
            self.session_id, self.run_id = app.scope.folder.id, app.scope.run_id
            listening = asyncio.ensure_future(self._listen(app))
            try:
                await app.run(submit)
            finally:
                await listening
        except AgentError as error:
            self._fail(error)
        finally:
            self._app = None
            self._end()

    async def _listen(self, app: "App") -> None:
        async for envelope in app.subscribe():
            self._hear(envelope)
