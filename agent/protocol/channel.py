"""The event channel: numbers events, logs them, then delivers them to subscribers.

A durable event is on disk before any subscriber receives it. Events that follow each other closely, or arrive during a
write, share one fsync, so eight concurrent steps pay for one. Subscribers receive events in order.

If the log cannot be written, nothing further is reported as done: running steps and calls are reported as cancelled,
then the end of the run.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ErrorRaised,
    Event,
    FilesChanged,
    MessageAdded,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolOutput,
    ToolStarted,
)
from agent.protocol.masking import mask_strings
from agent.vocabulary.errors import AgentError
from tooling.contract.result import CANCELLED
from tooling.safety.secrets.redact import Redactor

DELTA_BACKLOG = 512
# Time for which an event that no caller awaits may be batched with others.
GROUP_S = 0.002
LIVE_LINES = 5


class EventLog(Protocol):
    """The storage of durable events."""

    def append(self, lines: bytes) -> None:
        """Write and fsync, or raise OSError and leave no partial line."""
        ...


LOG_WRITE_HINT = "free up disk space, or set AGENT_SANDBOX to another folder"


def log_write_error(problem: object) -> str:
    return f"cannot write the event log: {problem}"


class LogWriteError(AgentError):
    """The event log cannot be written, so nothing further may be reported as done."""


class Subscription:
    """The queue of one subscriber; if it is slow, fragments of text are dropped, durable events never."""

    def __init__(self) -> None:
        self._queue: deque[Envelope] = deque()
        self._deltas = 0
        self._wake = asyncio.Event()
        self._closed = False

    def push(self, envelope: Envelope, *, is_durable: bool) -> None:
        """Add an event; called by the channel only."""
        if not is_durable:
            if self._deltas >= DELTA_BACKLOG:
                return
            self._deltas += 1
        self._queue.append(envelope)
        self._wake.set()

    def close(self) -> None:
        """End the iteration after the queued events."""
        self._closed = True
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        while True:
            while self._queue:
                envelope = self._queue.popleft()
                if self._deltas and not envelope.is_durable:
                    self._deltas -= 1
                yield envelope
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()


class InFlightTracker:
    """The steps and calls that subscribers have seen start but not end."""

    def __init__(self) -> None:
        self._steps: dict[str, int | None] = {}
        self._calls: list[tuple[str, str, str]] = []

    def on_event(self, envelope: Envelope) -> None:
        """Update from an event that is delivered."""
        step_id = envelope.step_id
        if step_id is None:
            return
        match envelope.event:
            case StepStarted():
                self._steps[step_id] = envelope.attempt
            case StepCompleted():
                self._steps.pop(step_id, None)
                self._calls = [call for call in self._calls if call[0] != step_id]
            case MessageAdded(tool_calls=calls) if calls:
                self._calls += [(step_id, call.id, call.name) for call in calls]
            case ToolStarted(tool_id=tool_id, name=name) if (step_id, tool_id, name) not in self._calls:
                # A call without a model's message: a tool step or a check.
                self._calls.append((step_id, tool_id, name))
            case ToolCompleted(tool_id=tool_id, name=name) if (step_id, tool_id, name) in self._calls:
                self._calls.remove((step_id, tool_id, name))
            case _:
                pass

    def cancellations(self, why: str) -> Iterator[tuple[ToolCompleted | StepCompleted, str, int | None]]:
        """Yield the end of everything in flight as cancelled, calls before their steps."""
        for step_id, tool_id, name in tuple(self._calls):
            ended = ToolCompleted(tool_id=tool_id, name=name, status="cancelled", exit_code=CANCELLED, output=why)
            yield ended, step_id, self._steps.get(step_id)
        for step_id, attempt in tuple(self._steps.items()):
            yield StepCompleted(status="cancelled", summary=why), step_id, attempt


# How much delivered text is kept, because a secret may be recognised by the text before it.
_CONTEXT_CHARS = 400


class StreamRedactor:
    """Masks secrets in streamed text, holding back a possible start of one, wherever fragments are split."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        self._end = 0
        self._released = ""

    def feed(self, fragment: str) -> str:
        """Add a fragment and return the text that is safe to deliver now."""
        self._text += fragment
        return self._release(self._redactor.safe_length(self._text))

    def flush(self) -> str:
        """Return the text held back, at the end of the stream."""
        return self._release(len(self._text))

    def _release(self, end: int) -> str:
        if end <= self._end:
            return ""
        masked = self._redactor.redact(self._text[:end])
        new = masked[_common_prefix_length(masked, self._released) :]
        self._end, self._released = end, masked
        self._drop_old()
        return new

    def _drop_old(self) -> None:
        """Drop old text, up to a word boundary and never inside a secret."""
        if self._end < 2 * _CONTEXT_CHARS:
            return
        start = self._redactor.safe_length(self._text[: self._end - _CONTEXT_CHARS])
        self._text, self._end = self._text[start:], self._end - start
        self._released = self._redactor.redact(self._text[: self._end])


def _common_prefix_length(one: str, other: str) -> int:
    if one.startswith(other):
        return len(other)
    return next((index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


class Channel:
    """The events of one run: `publish` waits until an event is on disk, `emit` does not."""

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
        # With whether each event is durable, and what to resolve when it is delivered.
        self._pending: list[tuple[Envelope, bool, asyncio.Future[None] | None]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._is_held = False
        self._is_awaited = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "event-log") if log else None
        self._write_error: OSError | None = None
        self._in_flight = InFlightTracker()
        # Changes so far, for the manifest of the run.
        self.file_changes: list[FilesChanged] = []
        self._fragments: dict[tuple[str | None, int | None, str], StreamRedactor] = {}

    def subscribe(self) -> Subscription:
        """Return a subscription to all events from now on."""
        subscription = Subscription()
        self._subscriptions.append(subscription)
        return subscription

    async def publish(self, event: Event, *, step_id: str | None = None, attempt: int | None = None) -> Envelope:
        """Log and deliver one durable event; return when both are done."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        envelope = self._enqueue(event, step_id, attempt, done)
        # If the publisher is cancelled, so is this future, but the flusher continues: the event happened.
        await done
        return envelope

    def emit_durable(
        self, event: Event, *, step_id: str | None = None, attempt: int | None = None
    ) -> "asyncio.Future[None]":
        """Log and deliver one durable event; the returned future is done when `publish` would have returned."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(event, step_id, attempt, done)
        return done

    def emit(self, event: Event, *, step_id: str | None = None, attempt: int | None = None) -> None:
        """Deliver an event in order without waiting; it is logged unless it is a fragment of text."""
        if self._redactor and isinstance(event, MessageAdded) and event.delta:
            key = (step_id, attempt, event.role)
            if key not in self._fragments:
                # The reasoning ends where the answer starts.
                self._flush_fragments(step_id)
            stream = self._fragments.setdefault(key, StreamRedactor(self._redactor))
            content = stream.feed(event.content)
            if not content:
                return
            event = event if content == event.content else replace(event, content=content)
        elif isinstance(event, ToolOutput):
            event = replace(event, text=self._live_lines(event.text))
            if not event.text:
                return
        self._enqueue(event, step_id, attempt, None)

    def hold(self) -> None:
        """Hold back all events until `release`, which writes them to disk at once and then delivers them."""
        self._is_held = True

    def release(self) -> None:
        """Write and deliver the events that were held back."""
        self._is_held = False
        self._start_flusher()

    async def wait_delivered(self) -> None:
        """Wait until all events so far are delivered to the subscriptions."""
        self._is_awaited.set()
        while self._flusher is not None:
            await asyncio.wait([self._flusher])

    async def close(self) -> None:
        """Wait until all events are delivered, then end all subscriptions; later events are not logged."""
        self.release()
        await self.wait_delivered()
        self._log = None
        for subscription in self._subscriptions:
            subscription.close()
        if self._thread:
            self._thread.shutdown(wait=False)

    def _enqueue(
        self, event: Event, step_id: str | None, attempt: int | None, done: asyncio.Future[None] | None
    ) -> Envelope:
        if isinstance(event, (StepCompleted, RunCompleted)) or (isinstance(event, MessageAdded) and not event.delta):
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
        if isinstance(envelope.event, FilesChanged):
            self.file_changes.append(envelope.event)
        self._pending.append((envelope, envelope.is_durable, done))
        if done:
            self._is_awaited.set()
        self._start_flusher()
        return envelope

    def _start_flusher(self) -> None:
        if self._pending and self._flusher is None and not self._is_held:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    def _flush_fragments(self, step_id: str | None) -> None:
        """Deliver the text that was held back, before the next event of the step."""
        for key in [key for key in self._fragments if key[0] == step_id] if self._fragments else ():
            if rest := self._fragments.pop(key).flush():
                _, attempt, role = key
                self._enqueue(MessageAdded(role=role, content=rest, delta=True), step_id, attempt, None)

    def _live_lines(self, output: str) -> str:
        """Return the last lines of an output, masked together with earlier lines, because a key may span many lines."""
        if self._redactor:
            # An incomplete key is not recognized; all other secrets end within a line.
            text = f"{output}\n"
            output = self._redactor.redact(text[: self._redactor.safe_length(text)])
        return "\n".join(output.splitlines()[-LIVE_LINES:])

    def _redact(self, envelope: Envelope) -> Envelope:
        """Return the event with every secret masked."""
        # Fragments of text are masked as a stream.
        if self._redactor is None or (isinstance(envelope.event, MessageAdded) and envelope.event.delta):
            return envelope
        # The user must see exactly which command to approve: only known secrets are masked there, not suspected ones.
        is_exact = isinstance(envelope.event, ApprovalRequested)
        mask = self._redactor.mask_known if is_exact else self._redactor.redact
        event: Event = mask_strings(envelope.event, mask)
        return envelope if event is envelope.event else replace(envelope, event=event)

    async def _flush(self) -> None:
        try:
            while self._pending and not self._is_held:
                if self._log and any(is_durable for _, is_durable, _ in self._pending):
                    await self._wait_for_more()
                batch, self._pending = self._pending, []
                self._is_awaited.clear()
                await self._append_to_log([envelope for envelope, is_durable, _ in batch if is_durable])
                for envelope, is_durable, done in batch:
                    self._deliver(envelope, done, is_durable=is_durable)
        finally:
            self._flusher = None

    async def _wait_for_more(self) -> None:
        """Wait briefly, or until an event is awaited, so that consecutive events share one write."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GROUP_S):
                await self._is_awaited.wait()

    async def _append_to_log(self, envelopes: list[Envelope]) -> None:
        if not envelopes or self._log is None or self._write_error:
            return
        lines = b"".join(map(to_line, envelopes))
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._log.append, lines)
        except OSError as error:
            self._write_error = error

    def _deliver(self, envelope: Envelope, done: asyncio.Future[None] | None, *, is_durable: bool) -> None:
        # The start and the end of a run are delivered even if nothing can be logged any more.
        is_start_or_end = isinstance(envelope.event, (RunStarted, RunCompleted, ErrorRaised))
        if self._write_error is None or not is_durable:
            self._broadcast(envelope, is_durable=is_durable)
        elif is_start_or_end:
            for event, step_id, attempt in self._in_flight.cancellations(self._write_error_text):
                ended = replace(envelope, event=event, step_id=step_id, attempt=attempt)
                self._broadcast(ended, is_durable=True)
            self._broadcast(envelope, is_durable=True)
        if done is None or done.done():
            return
        if self._write_error is None or is_start_or_end:
            done.set_result(None)
        else:
            done.set_exception(LogWriteError(self._write_error_text, LOG_WRITE_HINT))
            # Retrieve it, so that asyncio does not log it if the emitter is gone; the next publish raises it again.
            done.exception()

    @property
    def _write_error_text(self) -> str:
        error = self._write_error
        return log_write_error(error.strerror or error) if error else ""

    def _broadcast(self, envelope: Envelope, *, is_durable: bool) -> None:
        if self._write_error:
            # Events that are delivered but not logged only need to be in order.
            self._seq += 1
            envelope = replace(envelope, seq=self._seq)
        self._in_flight.on_event(envelope)
        for subscription in self._subscriptions:
            subscription.push(envelope, is_durable=is_durable)
