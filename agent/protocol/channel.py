"""The channel: numbers events, has them logged, then lets everybody hear them.

A lasting event is on disk before anyone hears it. Events that arrive while the disk is busy share the next
fsync, so eight steps at once pay for one. Order is kept: nobody hears event n+1 before event n.

When the log breaks, nothing further is called done: what is under way is told as cancelled, then how the run ended.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from agent.protocol.codec import to_line
from agent.protocol.events import (
    ApprovalRequested,
    Envelope,
    ErrorRaised,
    Event,
    MessageSaid,
    RunCompleted,
    RunStarted,
    StepCompleted,
)
from agent.protocol.in_flight import InFlightTracker
from agent.protocol.masking import mask_strings
from agent.protocol.stream_redaction import StreamRedactor
from agent.vocabulary.errors import AgentError
from tooling.safety.secrets.redact import Redactor

DELTA_BACKLOG = 512


class EventLog(Protocol):
    """Where lasting events are kept."""

    def append(self, lines: bytes) -> None:
        """Write and fsync, or raise OSError with nothing half-written left behind."""
        ...


class LogWriteError(AgentError):
    """The event log cannot be written, so nothing further may be called done."""


class Subscription:
    """One listener's queue: fragments of text are dropped when it is slow, lasting events never."""

    def __init__(self) -> None:
        self._queue: deque[Envelope] = deque()
        self._deltas = 0
        self._wake = asyncio.Event()
        self._closed = False

    def push(self, envelope: Envelope) -> None:
        """Take an event in; called by the channel only."""
        if not envelope.is_durable:
            if self._deltas >= DELTA_BACKLOG:
                return
            self._deltas += 1
        self._queue.append(envelope)
        self._wake.set()

    def close(self) -> None:
        """Let the listener end once it has heard everything."""
        self._closed = True
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            while self._queue:
                envelope = self._queue.popleft()
                if not envelope.is_durable:
                    self._deltas -= 1
                yield envelope
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()


class Channel:
    """One run's way out: `publish` waits until a fact is on disk, `whisper` goes on at once."""

    def __init__(
        self,
        *,
        session_id: str,
        run_id: str,
        log: EventLog | None,
        first_seq: int = 1,
        redactor: Redactor | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._session_id = session_id
        self._run_id = run_id
        self._log = log
        self._seq = first_seq - 1
        self._redactor = redactor
        self._now = now
        self._subscriptions: list[Subscription] = []
        self._pending: list[tuple[Envelope, asyncio.Future[None] | None]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "event-log") if log else None
        self._write_error: OSError | None = None
        self._in_flight = InFlightTracker()
        self._fragments: dict[tuple[str | None, int | None], StreamRedactor] = {}

    def subscribe(self) -> Subscription:
        """Add a listener that hears everything from now on."""
        subscription = Subscription()
        self._subscriptions.append(subscription)
        return subscription

    async def publish(self, event: Event, *, step_id: str | None = None, attempt: int | None = None) -> Envelope:
        """Number, log and fan out one lasting event; return when it is on disk and has been handed out."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        envelope = self._enqueue(event, step_id, attempt, done)
        # The flusher goes on when the publisher is cancelled: the event happened.
        await asyncio.shield(done)
        return envelope

    def emit_durable(
        self, event: Event, *, step_id: str | None = None, attempt: int | None = None
    ) -> "asyncio.Future[None]":
        """Number and log one lasting event; what is returned is done when `publish` would have returned."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(event, step_id, attempt, done)
        return done

    def emit(self, event: Event, *, step_id: str | None = None, attempt: int | None = None) -> None:
        """Fan out an event in order with the rest, without waiting; all but fragments are kept like any other."""
        if self._redactor and isinstance(event, MessageSaid) and event.delta:
            stream = self._fragments.setdefault((step_id, attempt), StreamRedactor(self._redactor))
            event = replace(event, content=stream.feed(event.content))
            if not event.content:
                return
        self._enqueue(event, step_id, attempt, None)

    async def close(self) -> None:
        """Wait until everything is out, then end all subscriptions; what is published later is kept by nobody."""
        while self._flusher is not None:
            await asyncio.wait([self._flusher])
        self._log = None
        for subscription in self._subscriptions:
            subscription.close()
        if self._thread:
            self._thread.shutdown(wait=False)

    def _enqueue(
        self, event: Event, step_id: str | None, attempt: int | None, done: asyncio.Future[None] | None
    ) -> Envelope:
        if isinstance(event, (StepCompleted, RunCompleted)) or (isinstance(event, MessageSaid) and not event.delta):
            self._flush_fragments(step_id)
        self._seq += 1
        envelope = Envelope(
            seq=self._seq,
            ts=self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            session_id=self._session_id,
            run_id=self._run_id,
            event=event,
            step_id=step_id,
            attempt=attempt if step_id is None else attempt or 1,
        )
        envelope = self._redact(envelope)
        self._pending.append((envelope, done))
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())
        return envelope

    def _flush_fragments(self, step_id: str | None) -> None:
        """Let the end of a text be heard that was held back, before whatever follows it."""
        for place in [place for place in self._fragments if place[0] == step_id]:
            if rest := self._fragments.pop(place).flush():
                said = MessageSaid(role="assistant", content=rest, delta=True)
                self._enqueue(said, step_id, place[1], None)

    def _redact(self, envelope: Envelope) -> Envelope:
        """Return the event with every secret masked, however it got in."""
        if self._redactor is None or not envelope.is_durable:
            return envelope
        # Whoever approves a command must see all of it: only what we know to be a secret is masked there.
        is_exact = isinstance(envelope.event, ApprovalRequested)
        mask = self._redactor.mask_known if is_exact else self._redactor.redact
        event: Event = mask_strings(envelope.event, mask)
        return envelope if event is envelope.event else replace(envelope, event=event)

    async def _flush(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                await self._append_to_log([envelope for envelope, _ in batch if envelope.is_durable])
                for envelope, done in batch:
                    self._deliver(envelope, done)
        finally:
            self._flusher = None

    async def _append_to_log(self, envelopes: list[Envelope]) -> None:
        if not envelopes or self._log is None or self._write_error:
            return
        lines = b"".join(map(to_line, envelopes))
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._log.append, lines)
        except OSError as error:
            self._write_error = error

    def _deliver(self, envelope: Envelope, done: asyncio.Future[None] | None) -> None:
        # That a run began, and that and why it ended, is told even when nothing can be kept any more.
        is_frame = isinstance(envelope.event, (RunStarted, RunCompleted, ErrorRaised))
        if self._write_error is None or not envelope.is_durable:
            self._broadcast(envelope)
        elif is_frame:
            for event, step_id, attempt in self._in_flight.cancellations(self._write_error_text):
                self._broadcast(replace(envelope, event=event, step_id=step_id, attempt=attempt))
            self._broadcast(envelope)
        if done is None or done.done():
            return
        if self._write_error is None or is_frame:
            done.set_result(None)
        else:
            done.set_exception(
                LogWriteError(self._write_error_text, "free some space or set AGENT_SANDBOX to another folder")
            )
            # Whoever announced it may be gone; the next to publish meets the same problem.
            done.exception()

    @property
    def _write_error_text(self) -> str:
        error = self._write_error
        return f"the event log cannot be written: {error.strerror or error}" if error else ""

    def _broadcast(self, envelope: Envelope) -> None:
        if self._write_error:
            # Of what is told and not kept, only the order matters.
            self._seq += 1
            envelope = replace(envelope, seq=self._seq)
        self._in_flight.on_event(envelope)
        for subscription in self._subscriptions:
            subscription.push(envelope)
