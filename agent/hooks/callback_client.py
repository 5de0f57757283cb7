"""Posts the events of a run to a URL: in order, with retries, and without ever blocking the run.

The last event of a run is written to disk before it is sent, and stays there until it is delivered: if the receiver
is down, a later run delivers it.
"""

import asyncio
import contextlib
import hashlib
import json
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import read_regular
from tooling.web.http.httpx_import import httpx

# The events that end a run.
TERMINAL = ("task_completed", "task_failed")
MAX_QUEUE = 256
MAX_TEXT = 10_000
MAX_ITEMS = 200
REQUEST_TIMEOUT_S = 10.0
# Time that the end of a run waits for unsent events.
FLUSH_S = 3.0
RETRY_DELAYS_S = (0.1, 0.3, 1.0, 3.0, 10.0)
# Spooled events older than this are dropped.
_KEEP_S = 7 * 24 * 3600
_CUT = "[… {count} characters left out]"
# Statuses that a retry would not change.
_FINAL_STATUSES = frozenset({400, 401, 403, 404, 405, 410, 413, 415, 422})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackEvent:
    """One event to send; `key` is the same for every attempt."""

    url: str
    token_id: str
    key: str
    trace_id: str
    body: JsonObject
    created: float

    @property
    def is_terminal(self) -> bool:
        """Whether the event ends a run."""
        return self.body.get("event") in TERMINAL


class CallbackClient:
    """Sends the events of one session to one URL. `redact` masks secrets, `warn` reports failed deliveries.

    Without a `spool` folder nothing is stored on disk.
    """

    def __init__(
        self,
        url: str,
        *,
        session_id: str,
        token: str = "",
        trace_id: str = "",
        spool: Path | None = None,
        redact: Callable[[str], str] = lambda text: text,
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._url = url
        self._session_id = session_id
        self._token = token
        self._trace_id = trace_id or uuid.uuid4().hex
        self._spool = CallbackSpool(spool) if spool else None
        self._redact = redact
        self._warn = warn
        self._queue: deque[CallbackEvent] = deque()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._dropped = 0
        self._has_warned = False
        # Reason of the last failure, for the warning.
        self._problem = ""

    def start(self) -> None:
        """Start sending, including undelivered events of earlier runs."""
        old = self._spool.load() if self._spool else []
        self._tasks = {asyncio.create_task(self._send_old(old), name="old callbacks")} if old else set()
        if self._url:
            self._tasks.add(asyncio.create_task(self._send_all(), name="callbacks"))

    async def send_callback(self, event: str, data: JsonObject) -> None:
        """Queue an event; it is sent in the background. If the queue is full, the oldest event in it is dropped."""
        body: JsonObject = {
            "event": event,
            "session_id": self._session_id,
            "data": shorten({**data, **({"dropped_events": self._dropped} if self._dropped else {})}, self._redact),
        }
        sent = CallbackEvent(
            url=self._url,
            token_id=_token_id(self._token),
            key=uuid.uuid4().hex,
            trace_id=self._trace_id,
            body=body,
            created=time.time(),
        )
        if self._spool and sent.is_terminal:
            await self._keep(self._spool, sent)
        if len(self._queue) >= MAX_QUEUE:
            self._drop_one()
        self._queue.append(sent)
        self._wake.set()

    async def close(self) -> None:
        """Wait briefly for queued events, then stop; an undelivered last event stays in the spool."""
        if not self._tasks:
            return
        self._closing.set()
        self._wake.set()
        _, late = await asyncio.wait(self._tasks, timeout=FLUSH_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        if any(event.is_terminal for event in self._queue):
            self._report(self._not_taken(is_terminal=True))

    async def _keep(self, spool: "CallbackSpool", event: CallbackEvent) -> None:
        try:
            await asyncio.to_thread(spool.save, event)
        except OSError as error:
            self._report(f"the last callback cannot be kept for later: {error.strerror}")

    def _drop_one(self) -> None:
        """Drop the oldest event that does not end a run."""
        for event in self._queue:
            if not event.is_terminal:
                self._queue.remove(event)
                self._dropped += 1
                return

    async def _send_all(self) -> None:
        """Send queued events until the client is closed and the queue is empty."""
        async with _http_client() as http:
            while True:
                while self._queue:
                    event = self._queue[0]
                    is_taken = await self._deliver(http, event)
                    self._forget(event) if is_taken else self._give_up(event)
                    if self._queue and self._queue[0] is event:
                        self._queue.popleft()
                if self._closing.is_set():
                    return
                self._wake.clear()
                await self._wake.wait()

    async def _send_old(self, events: list[CallbackEvent]) -> None:
        """Send each event of earlier runs once; refused ones stay in the spool."""
        async with _http_client() as http:
            for event in events:
                if event.token_id == _token_id(self._token) and await self._post(http, event) == "taken":
                    self._forget(event)

    def _forget(self, event: CallbackEvent) -> None:
        if self._spool and event.is_terminal:
            self._spool.remove(event)

    def _give_up(self, event: CallbackEvent) -> None:
        self._dropped += not event.is_terminal
        self._report(self._not_taken(is_terminal=event.is_terminal))

    def _not_taken(self, *, is_terminal: bool) -> str:
        later = "; the last one is sent at the start of a later run" if is_terminal and self._spool else ""
        reason = f" ({self._problem})" if self._problem else ""
        return f"{_address(self._url)} does not take callbacks{reason}{later}"

    async def _deliver(self, http: httpx.AsyncClient, event: CallbackEvent) -> bool:
        """Send one event with retries; return whether it was accepted."""
        for delay_s in (*RETRY_DELAYS_S, None):
            result = await self._post(http, event)
            if result != "failed":
                return result == "taken"
            is_last_chance = self._closing.is_set() and not event.is_terminal
            if delay_s is None or is_last_chance:
                return False
            await self._pause(delay_s)
        return False

    async def _pause(self, delay_s: float) -> None:
        """Wait before the next attempt; only briefly if the run has ended."""
        if self._closing.is_set():
            await asyncio.sleep(delay_s)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), delay_s)

    async def _post(self, http: httpx.AsyncClient, event: CallbackEvent) -> Literal["taken", "refused", "failed"]:
        try:
            reply = await http.post(event.url, json=event.body, headers=self._headers(event))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            self._problem = str(error) or type(error).__name__
            return "failed"
        if reply.is_success:
            return "taken"
        self._problem = f"HTTP {reply.status_code}" + (", redirects are not followed" if reply.is_redirect else "")
        return "refused" if reply.status_code in _FINAL_STATUSES else "failed"

    def _headers(self, event: CallbackEvent) -> dict[str, str]:
        headers = {
            "X-Request-ID": uuid.uuid4().hex,
            "X-Trace-ID": event.trace_id,
            "Idempotency-Key": event.key,
        }
        return {**headers, **({"Authorization": f"Bearer {self._token}"} if self._token else {})}

    def _report(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(problem)


class CallbackSpool:
    """A folder of undelivered events, one file each; tokens are not stored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, event: CallbackEvent) -> None:
        """Write an event to disk. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = {name: getattr(event, name) for name in ("url", "token_id", "key", "trace_id", "body", "created")}
        write_atomic(self._path(event), json.dumps(data).encode())

    def remove(self, event: CallbackEvent) -> None:
        """Remove a delivered event; one that was never saved is ignored."""
        with contextlib.suppress(OSError):
            self._path(event).unlink()

    def load(self) -> list[CallbackEvent]:
        """Return the events of earlier runs, oldest first; damaged and very old ones are deleted."""
        found: list[CallbackEvent] = []
        for path in sorted(self._folder.glob("*.json"))[:MAX_QUEUE]:
            try:
                event = CallbackEvent(**json.loads(read_regular(path)))
                is_useful = isinstance(event.body, Mapping) and time.time() - event.created < _KEEP_S
            except OSError:
                # Delivered by another run, or unreadable now: retried later.
                continue
            except (ValueError, TypeError):
                is_useful = False
            if is_useful:
                found.append(event)
            else:
                path.unlink(missing_ok=True)
        return found

    def _path(self, event: CallbackEvent) -> Path:
        return self._folder / f"{event.created:017.6f}-{event.key}.json"


def shorten(value: object, redact: Callable[[str], str]) -> object:
    """Return a value for an event: secrets masked, long texts and lists truncated and marked."""
    if isinstance(value, str):
        masked = redact(value)
        if len(masked) <= MAX_TEXT:
            return masked
        left_out = _CUT.format(count=len(masked) - MAX_TEXT)
        return f"{masked[: MAX_TEXT * 3 // 4]}\n{left_out}\n{masked[-MAX_TEXT // 4 :]}"
    if isinstance(value, Mapping):
        return {str(key): shorten(item, redact) for key, item in list(value.items())[:MAX_ITEMS]}
    if isinstance(value, (list, tuple)):
        items = [shorten(item, redact) for item in value[:MAX_ITEMS]]
        return [*items, f"[… {len(value) - MAX_ITEMS} items left out]"] if len(value) > MAX_ITEMS else items
    return value


def _http_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S, follow_redirects=False, headers={"User-Agent": "windlass"})


def _address(url: str) -> str:
    """Return a URL that may be shown: without the password and the query, which may contain a token."""
    try:
        return str(httpx.URL(url).copy_with(userinfo=b"", query=None))
    except httpx.InvalidURL:
        return "the callback URL"


def _token_id(token: str) -> str:
    return hashlib.sha256(f"windlass callback {token}".encode()).hexdigest()[:16] if token else ""
