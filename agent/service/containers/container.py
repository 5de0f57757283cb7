"""One container of the pool: start, health, and exit."""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from agent.backends.docker.engine import Engine, EngineFault
from agent.service.containers.executor_container import Identity, PoolOptions
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.web.http.httpx_import import httpx

HEALTH_PATH = "/health"
REMOVED = "the container was removed"
HEALTH_TIMEOUT_S = 5.0
_POLL_S, _MAX_POLL_S = 0.05, 1.0
_LOG_BYTES = 4000
_LAST_WORDS_CHARS = 500
_LAST_OUTPUT_S = 2.0
_REMOVE_TRIES = 3
_KILLED = 137
# Each piece of a container's output begins with a stream number and a length.
_FRAME = lazy_pattern(rb"[\0\1\2]\0\0\0.{4}", re.DOTALL)
_PORT_TAKEN = ("port is already allocated", "address already in use")


class PoolError(AgentError):
    """A container could not be started, or has failed; another attempt may succeed."""

    exit_code = exit_codes.RETRY_LATER


class PortTaken(PoolError):
    """The port chosen by the engine was in use."""


def explain_fault(fault: EngineFault, image: str) -> PoolError:
    """Translate an error of the engine into a PoolError."""
    text = fault.message
    if fault.status == 0:
        return PoolError(f"the Docker engine does not answer: {text}", "start it: systemctl start docker")
    if fault.status == HTTPStatus.NOT_FOUND and "image" in text.lower():
        hint = f"build or pull it (docker pull {image}), or choose another: executor_image"
        return PoolError(f"there is no image {image}", hint)
    if any(sign in text for sign in _PORT_TAKEN):
        return PortTaken(f"no free port for the container: {text}")
    return PoolError(f"the Docker engine refused the container: {text}")


class RunningContainer:
    """Starts a created container and records when and why it exits."""

    def __init__(self, engine: Engine, identity: Identity, options: PoolOptions) -> None:
        self._engine = engine
        self._options = options
        self.identity = identity
        self.name = identity.name
        self.url = ""
        self.tasks = 0
        self._since = time.time()
        self._log = b""
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watching: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def has_ended(self) -> bool:
        """Return whether the container is known to have exited."""
        return self._end.done()

    async def start(self) -> None:
        """Start the container and wait until it accepts tasks. Raises PoolError with the reason if it does not."""
        options = self._options
        # The engine removes a container that exits: what is not listened to from the beginning may be lost.
        attached = asyncio.Event()
        self._reading = asyncio.create_task(self._read_log(attached), name="log of a container")
        try:
            await attached.wait()
            await self.watch().wait()
            await self._engine.start_container(self.name)
            await self._wait("start", options.start_timeout_s, self._find_port)
            await self._wait("answer", options.ready_timeout_s, self.is_healthy)
        except EngineFault as fault:
            raise explain_fault(fault, options.image) from fault
        finally:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def adopt(self) -> bool:
        """Take over a container started by another manager; return whether it accepts tasks."""
        with contextlib.suppress(EngineFault):
            if await self._find_port() and await self.is_healthy():
                self.watch()
                return True
        return False

    def watch(self) -> asyncio.Event:
        """Start watching for the exit of the container; the event says that no exit can be missed."""
        began = asyncio.Event()
        self._watching = asyncio.create_task(self._watch(began), name="end of a container")
        return began

    async def ended(self) -> str:
        """Wait until the container exits and return the reason."""
        return await asyncio.shield(self._end)

    async def is_healthy(self) -> bool:
        """Return whether the executor in the container accepts tasks."""
        if self.has_ended:
            return False
        try:
            async with httpx.AsyncClient(timeout=HEALTH_TIMEOUT_S, trust_env=False) as client:
                answer = await client.get(f"{self.url}{HEALTH_PATH}")
                return answer.is_success and answer.json().get("status") == "ok"
        except (httpx.HTTPError, OSError, ValueError, AttributeError):
            return False

    async def rename(self, identity: Identity) -> None:
        """Assign the container to a session by renaming it; its labels cannot be changed."""
        await self._engine.rename_container(self.name, identity.name)
        self.identity, self.name = identity, identity.name

    async def remove(self) -> None:
        """Stop and remove the container. Raises EngineFault if the engine cannot."""
        await self.stop_watching()
        if not self._end.done():
            self._end.set_result(REMOVED)
        await remove_container(self._engine, self.name)

    async def stop_watching(self) -> None:
        """Stop watching; another manager takes over the container."""
        if self._watching:
            self._watching.cancel()
            await asyncio.wait({self._watching})

    async def _find_port(self) -> bool:
        found = await self._engine.get(f"/containers/{self.name}/json")
        port = published_port(found)
        self.url = f"http://127.0.0.1:{port}" if port else ""
        state = found.get("State")
        return bool(port) and isinstance(state, Mapping) and state.get("Running") is True

    async def _wait(self, what: str, limit_s: float, check: Callable[[], Awaitable[bool]]) -> None:
        pause_s = _POLL_S
        try:
            async with asyncio.timeout(limit_s):
                while not await check():
                    if self.has_ended:
                        raise PoolError(await self.ended())
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 1.5, _MAX_POLL_S)
        except TimeoutError as error:
            message = f"the container did not {what} within {limit_s:g} s{self._last_words()}"
            raise PoolError(message) from error
        except EngineFault as fault:
            if fault.status == HTTPStatus.NOT_FOUND:
                raise PoolError(await self.ended()) from fault
            raise explain_fault(fault, self._options.image) from fault

    async def _watch(self, began: asyncio.Event) -> None:
        try:
            reason = await self._wait_for_end(began)
        finally:
            began.set()
        if not self._end.done():
            self._end.set_result(reason)

    async def _wait_for_end(self, began: asyncio.Event) -> str:
        try:
            code = await self._engine.exit_code(self.name, began)
        except EngineFault as fault:
            if fault.status == 0:
                return f"the Docker engine was stopped, and the container with it: {fault}"
            return f"the container is gone{self._last_words()}"
        if self._reading:
            # What it wrote last may arrive after its exit code.
            await asyncio.wait({self._reading}, timeout=_LAST_OUTPUT_S)
        with contextlib.suppress(EngineFault):
            if code == _KILLED and await self._engine.has_event(self.name, "oom", self._since):
                return "the container ran out of memory and was killed (137)"
        how = "was killed (137)" if code == _KILLED else f"ended with exit code {code}"
        return f"the container {how}{self._last_words()}"

    async def _read_log(self, attached: asyncio.Event) -> None:
        try:
            async for chunk in self._engine.follow_output(self.name, attached):
                self._log = (self._log + chunk)[-_LOG_BYTES:]
        except EngineFault:
            # The reason is what watching the container finds.
            pass
        finally:
            attached.set()

    def _last_words(self) -> str:
        text = _FRAME.sub(b"", self._log).decode(errors="replace").strip()
        lines = text[text.rfind("error: ") :].splitlines() if "error: " in text else text.splitlines()[-1:]
        return f": {'; '.join(lines)[:_LAST_WORDS_CHARS]}" if lines else ""


def published_port(found: Mapping[str, object]) -> str:
    """Return the host port of a container; empty if it has none yet."""
    match found.get("NetworkSettings"):
        case {"Ports": {"8000/tcp": [{"HostPort": str(port)}, *_]}}:
            return port
        case _:
            return ""


async def remove_container(engine: Engine, name: str) -> None:
    """Remove a container and wait until it is gone; the engine reports a conflict while a removal is in progress."""
    for _ in range(_REMOVE_TRIES):
        await engine.remove_container(name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEALTH_TIMEOUT_S):
                while await _exists(engine, name):  # noqa: ASYNC110 (the engine sends no event)
                    await asyncio.sleep(_POLL_S)
                return


async def _exists(engine: Engine, name: str) -> bool:
    try:
        await engine.get(f"/containers/{name}/json")
    except EngineFault as fault:
        if fault.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True
