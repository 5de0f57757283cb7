"""The Docker engine of this machine, over its HTTP API on a Unix socket."""

import asyncio
import errno
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import quote

from agent.vocabulary.errors import SandboxError
from tooling.contract.fast_dataclass import dataclass
from tooling.web.http.httpx_import import httpx

SOCKET_VARIABLE = "DOCKER_HOST"
DEFAULT_SOCKET = Path("/var/run/docker.sock")
BUILD_HINT = "`agent docker build` builds the default image, `docker pull` gets others; --image NAME chooses one"
START_HINT = "start it (systemctl start docker), or leave out --backend docker"
GROUP_HINT = "join the group that owns it (usermod -aG docker USER, then log in again), or use rootless Docker"
NO_ANSWER = "the Docker engine at {socket} does not answer: {fault}"
LOCAL_HINT = "set DOCKER_HOST to unix:///PATH of an engine on this machine, or unset it"
TIMEOUT_S = 20.0
PODMAN = "Podman"
# Some error messages repeat the whole request.
_MAX_MESSAGE_CHARS = 500
# Supported since Docker 19.03.
_API = "http://docker/v1.40"
_SOCKET_SCHEME = "unix://"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """Facts about an engine for `agent doctor`."""

    version: str
    is_rootless: bool
    product: str = "Docker"

    @property
    def is_podman(self) -> bool:
        """Whether it is Podman, which expects a few options in another form."""
        return self.product == PODMAN

    @property
    def description(self) -> str:
        """The product, its version and its privileges."""
        return f"{self.product} {self.version} ({'rootless' if self.is_rootless else 'not rootless'})"


class EngineFault(OSError):
    """The engine refused a request or did not answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(errno.EIO, message)
        self.message = message if len(message) <= _MAX_MESSAGE_CHARS else f"{message[:_MAX_MESSAGE_CHARS]}…"
        self.status = status

    def __str__(self) -> str:
        return self.message


def find_socket(environ: Mapping[str, str]) -> Path:
    """Return the socket of the engine: DOCKER_HOST, the one of a rootless engine, or the default."""
    host = environ.get(SOCKET_VARIABLE, "")
    if host and not host.startswith(_SOCKET_SCHEME):
        raise SandboxError(f"the Docker engine at {host} is not on this machine", hint=LOCAL_HINT)
    if host:
        return Path(host.removeprefix(_SOCKET_SCHEME))
    rootless = Path(environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "docker.sock")
    return rootless if not DEFAULT_SOCKET.exists() and rootless.exists() else DEFAULT_SOCKET


class Engine:
    """Client of the engine; call `close` at the end."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._client = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(socket)), timeout=TIMEOUT_S)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def connect(self) -> EngineInfo:
        """Return the version of the engine. Raises SandboxError with a hint if it cannot be used."""
        check_socket(self.socket)
        try:
            version = await self.get("/version")
            info = await self.get("/info")
        except EngineFault as fault:
            raise SandboxError(NO_ANSWER.format(socket=self.socket, fault=fault), hint=START_HINT) from fault
        options = info.get("SecurityOptions")
        names = options if isinstance(options, list) else []
        return EngineInfo(
            version=str(version.get("Version", "unknown")),
            is_rootless=any("rootless" in str(name) for name in names),
            product=_product(version),
        )

    async def find_image(self, name: str) -> Mapping[str, object]:
        """Return the engine's data about an image. Raises SandboxError if the image is missing."""
        try:
            return await self.get(f"/images/{quote(name, safe='/:@')}/json")
        except EngineFault as fault:
            if fault.status == HTTPStatus.NOT_FOUND:
                raise SandboxError(f"there is no image {name}", hint=BUILD_HINT) from fault
            raise SandboxError(NO_ANSWER.format(socket=self.socket, fault=fault), hint=START_HINT) from fault

    async def get(self, path: str, **params: str) -> Mapping[str, object]:
        """Return the object at a path."""
        return cast(Mapping[str, object], (await self.send("GET", path, params=params)).json())

    async def list_containers(self, labels: Mapping[str, str]) -> list[Mapping[str, object]]:
        """Return all containers with these labels, running or not."""
        filters = json.dumps({"label": [f"{name}={value}" for name, value in labels.items()]})
        found = await self.send("GET", "/containers/json", params={"all": "1", "filters": filters})
        return cast(list[Mapping[str, object]], found.json())

    async def create_container(self, name: str, config: Mapping[str, object]) -> None:
        """Create a container."""
        await self.send("POST", "/containers/create", params={"name": name}, body=config)

    async def start_container(self, name: str) -> None:
        """Start a container."""
        await self.send("POST", f"/containers/{name}/start")

    async def wait_for_exit(self, name: str) -> None:
        """Wait until a container is not running."""
        await self.send("POST", f"/containers/{name}/wait", has_time_limit=False)

    async def exit_code(self, name: str, began: asyncio.Event) -> int:
        """Wait for the next exit of a container and return its exit code; `began` is set once the engine waits for it.

        Raises EngineFault if the container does not exist.
        """
        async with self._open("POST", f"/containers/{name}/wait", {"condition": "next-exit"}) as answer:
            began.set()
            found: Mapping[str, int] = json.loads(await answer.aread())
        return int(found.get("StatusCode", 0))

    async def rename_container(self, name: str, new_name: str) -> None:
        """Rename a container."""
        await self.send("POST", f"/containers/{name}/rename", params={"name": new_name})

    async def has_event(self, name: str, event: str, since: float) -> bool:
        """Return whether an event of a container happened recently; the container may be gone meanwhile."""
        filters = json.dumps({"container": [name], "event": [event]})
        params = {"since": str(int(since)), "until": f"{time.time():.9f}", "filters": filters}
        return bool((await self.send("GET", "/events", params=params)).content.strip())

    async def follow_output(self, name: str, began: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield the output of a container until it exits; `began` is set once nothing of it can be missed."""
        params = {"logs": "1", "stream": "1", "stdout": "1", "stderr": "1"}
        async with self._open("POST", f"/containers/{name}/attach", params) as answer:
            began.set()
            async for chunk in answer.aiter_bytes():
                yield chunk

    async def remove_container(self, name: str) -> None:
        """Remove a container, even if it is running; a missing one is no error."""
        try:
            await self.send("DELETE", f"/containers/{name}", params={"force": "1", "v": "1"})
        except EngineFault as fault:
            if fault.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    async def read_errors(self, name: str) -> str:
        """Return the last line that the first process of a container wrote to stderr."""
        found = await self.send("GET", f"/containers/{name}/logs", params={"stderr": "1", "stdout": "1", "tail": "1"})
        # Each line has a header of eight bytes.
        return found.content[8:].decode(errors="replace").strip()

    async def stream(
        self, method: str, path: str, *, params: Mapping[str, str], content: bytes
    ) -> AsyncIterator[Mapping[str, object]]:
        """Send a long-running request, and yield its progress. Raises EngineFault."""
        headers = {"Content-Type": "application/x-tar"}
        async with self._open(method, path, params, content=content, headers=headers) as answer:
            async for line in answer.aiter_lines():
                if line.strip():
                    yield cast(Mapping[str, object], json.loads(line))

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request whose answer arrives in parts, without a time limit."""
        try:
            async with self._client.stream(
                method, _API + path, params=params, content=content, headers=headers, timeout=None
            ) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise EngineFault(_message(answer), answer.status_code)
                yield answer
        except httpx.HTTPError as fault:
            raise EngineFault(str(fault) or type(fault).__name__) from fault

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        content: bytes | None = None,
        has_time_limit: bool = True,
    ) -> httpx.Response:
        """Send a request. Raises EngineFault if it is refused or not answered."""
        headers = {"Content-Type": "application/x-tar"} if content is not None else {}
        timeout = TIMEOUT_S if has_time_limit else None
        try:
            answer = await self._client.request(
                method, _API + path, params=params, json=body, content=content, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as fault:
            raise EngineFault(str(fault) or type(fault).__name__) from fault
        if answer.is_error:
            raise EngineFault(_message(answer), answer.status_code)
        return answer


def check_socket(socket: Path) -> None:
    """Raise SandboxError with a hint if the socket is missing, or this user may not use it."""
    try:
        is_socket = stat.S_ISSOCK(socket.stat().st_mode)
    except PermissionError:
        raise SandboxError(f"{socket} cannot be used: permission denied", hint=GROUP_HINT) from None
    except OSError:
        is_socket = False
    if not is_socket:
        raise SandboxError(f"no Docker engine is running: there is no socket {socket}", hint=START_HINT)
    if not os.access(socket, os.R_OK | os.W_OK, effective_ids=True):
        raise SandboxError(f"{socket} cannot be used: permission denied", hint=GROUP_HINT)


def _product(version: Mapping[str, object]) -> str:
    parts = version.get("Components")
    names = [str(part.get("Name", "")) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return PODMAN if any(PODMAN in name for name in names) else "Docker"


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code}"
