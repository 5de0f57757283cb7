"""The Docker engine of this machine, over its HTTP API on a Unix socket."""

import errno
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Mapping
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
# Some faults repeat the whole request.
_MAX_MESSAGE_CHARS = 500
# Supported since Docker 19.03.
_API = "http://docker/v1.40"
_SOCKET_SCHEME = "unix://"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What `agent doctor` tells about an engine."""

    version: str
    is_rootless: bool
    product: str = "Docker"

    @property
    def is_podman(self) -> bool:
        """Whether it is Podman, which takes a few options in another form."""
        return self.product == PODMAN

    @property
    def description(self) -> str:
        """The product, its version, and whose rights it has."""
        return f"{self.product} {self.version} ({'rootless' if self.is_rootless else 'not rootless'})"


class EngineFault(OSError):
    """The engine refused a request, or did not answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(errno.EIO, message)
        self.message = message if len(message) <= _MAX_MESSAGE_CHARS else f"{message[:_MAX_MESSAGE_CHARS]}…"
        self.status = status

    def __str__(self) -> str:
        return self.message


def find_socket(environ: Mapping[str, str]) -> Path:
    """Return the socket of the engine: DOCKER_HOST, that of a rootless engine, or the usual one."""
    host = environ.get(SOCKET_VARIABLE, "")
    if host and not host.startswith(_SOCKET_SCHEME):
        raise SandboxError(f"the Docker engine at {host} is not on this machine", hint=LOCAL_HINT)
    if host:
        return Path(host.removeprefix(_SOCKET_SCHEME))
    rootless = Path(environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "docker.sock")
    return rootless if not DEFAULT_SOCKET.exists() and rootless.exists() else DEFAULT_SOCKET


class Engine:
    """Sends requests to the engine; use `close` at the end."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._client = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(socket)), timeout=TIMEOUT_S)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def connect(self) -> EngineInfo:
        """Return the version of the engine. Raises SandboxError with what helps if it cannot be used."""
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
        """Return what the engine knows of an image. Raises SandboxError if it does not have it."""
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
        """Return when a container does not run."""
        await self.send("POST", f"/containers/{name}/wait", timeout=None)

    async def exit_code(self, name: str) -> int:
        """Return the exit code of a container when it has ended. Raises EngineFault if it is gone by then."""
        found = await self.send("POST", f"/containers/{name}/wait", timeout=None)
        return int(cast(Mapping[str, int], found.json()).get("StatusCode", 0))

    async def rename_container(self, name: str, new_name: str) -> None:
        """Rename a container."""
        await self.send("POST", f"/containers/{name}/rename", params={"name": new_name})

    async def has_event(self, name: str, event: str, since: float) -> bool:
        """Return whether something has happened to a container lately; it may be gone meanwhile."""
        filters = json.dumps({"container": [name], "event": [event]})
        params = {"since": str(int(since)), "until": f"{time.time():.9f}", "filters": filters}
        return bool((await self.send("GET", "/events", params=params)).content.strip())

    async def follow_logs(self, name: str) -> AsyncIterator[bytes]:
        """Yield what a container writes to stdout and stderr, until it ends."""
        params = {"stderr": "1", "stdout": "1", "follow": "1"}
        url = f"{_API}/containers/{name}/logs"
        try:
            async with self._client.stream("GET", url, params=params, timeout=None) as answer:
                async for chunk in answer.aiter_bytes():
                    yield chunk
        except httpx.HTTPError as fault:
            raise EngineFault(str(fault) or type(fault).__name__) from fault

    async def remove_container(self, name: str) -> None:
        """Remove a container, even if it runs; one that does not exist is no error."""
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
        """Send a request that takes its time, and yield its progress. Raises EngineFault."""
        headers = {"Content-Type": "application/x-tar"}
        try:
            async with self._client.stream(
                method, _API + path, params=params, content=content, headers=headers, timeout=None
            ) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise EngineFault(_message(answer), answer.status_code)
                async for line in answer.aiter_lines():
                    if line.strip():
                        yield cast(Mapping[str, object], json.loads(line))
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
        timeout: float | None = TIMEOUT_S,
    ) -> httpx.Response:
        """Send a request. Raises EngineFault if it is refused or there is no answer."""
        headers = {"Content-Type": "application/x-tar"} if content is not None else {}
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
    """Raise SandboxError with what helps if there is no socket, or this user may not use it."""
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
