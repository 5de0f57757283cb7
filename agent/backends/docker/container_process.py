"""A started container as the process of a world: everything in it ends with its first process."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import signal
import socket
import struct
from pathlib import Path

from agent.backends.docker.container import USER_LABEL, WORKSPACE_LABEL, ContainerPlan
from agent.backends.docker.engine import Engine, EngineFault
from agent.backends.egress.proxy import bindable_path
from agent.backends.process.host_process import KILL_TIMEOUT_S

START_TIMEOUT_S = 30.0
ENDED = "the container has ended while a command ran: it was killed or out of memory, or the Docker engine was stopped"
NOT_HERE = "the Docker engine does not run its containers on this machine"
_CREDENTIALS = struct.Struct("3i")
_KILLED = 137
_MAX_CONTAINERS = 50
# Time for the kernel to report the exit of a killed container.
_NOTICE_S = 0.3


class ContainerProcess:
    """Starts the container in the background; its first process gets the control socket of the world."""

    def __init__(self, engine: Engine, plan: ContainerPlan, sockets: Path, control: int, temporary: str) -> None:
        self._engine = engine
        self._plan = plan
        self._sockets = sockets
        self._control = os.dup(control)
        self._temporary = temporary
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._lock: int | None = None
        self._error: OSError | None = None
        self._was_killed = False
        self._name = ""
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._starting = asyncio.ensure_future(self._start())

    async def finish(self, *, in_doubt: bool) -> int:
        """Kill the container, and wait for its first process to exit. Raises OSError if it exited by itself."""
        if not self._starting.done():
            self._starting.cancel()
        await asyncio.wait({self._starting})
        if self._error is None:
            # A container that was killed externally is about to exit.
            await asyncio.wait({self.exited}, timeout=_NOTICE_S)
            ended_by_itself = self.exited.done() and not self._was_killed
            self._kill()
            await asyncio.wait({self.exited}, timeout=KILL_TIMEOUT_S)
            if ended_by_itself:
                self._error = OSError(ENDED)
            await self._wait_for_engine()
        self._release()
        if self._error is not None:
            raise self._error
        return _KILLED

    async def _wait_for_engine(self) -> None:
        """Wait until the engine also reports the exit: only then can the container be restarted or removed."""
        with contextlib.suppress(EngineFault, TimeoutError):
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await self._engine.wait_for_exit(self._name)

    def close_now(self) -> None:
        """Kill everything, without waiting for the event loop."""
        self._was_killed = True
        if not self._loop.is_closed():
            self._starting.cancel()
        self._kill()
        self._release()

    async def _start(self) -> None:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._run_container()
        except TimeoutError:
            self._fail(OSError(f"the container did not start within {START_TIMEOUT_S:g} s"))
        except OSError as problem:
            self._fail(problem)
        finally:
            os.close(self._control)
            self._control = -1

    async def _run_container(self) -> None:
        key, self._lock = _take_name(self._sockets, self._plan.key)
        name = self._name = f"windlass-{key}"
        listening = _listen(self._sockets, f"{key}.sock", self._owner())
        try:
            await self._find_or_create(name, f"{key}.sock")
            await self._engine.start_container(name)
            await self._connect(name, listening)
        finally:
            listening.close()
            (self._sockets / f"{key}.sock").unlink(missing_ok=True)

    def _owner(self) -> int:
        return int(str(self._plan.config["User"]).partition(":")[0])

    async def _find_or_create(self, name: str, socket_name: str) -> None:
        """Reuse the container of this user and workspace if its configuration is the same; remove unused others."""
        labels = {label: self._plan.labels[label] for label in (USER_LABEL, WORKSPACE_LABEL)}
        is_found = False
        for found in await self._engine.list_containers(labels):
            names = found.get("Names")
            own = isinstance(names, list) and f"/{name}" in names
            is_stopped = found.get("State") in ("exited", "created")
            if own and is_stopped and self._plan.can_restart:
                is_found = True
            elif own or is_stopped:
                # A container of the same name still runs although its lock is free.
                await self._engine.remove_container(str(found.get("Id")))
        if not is_found:
            await self._engine.remove_container(name)
            await self._engine.create_container(name, self._plan.create_request(socket_name))

    async def _connect(self, name: str, listening: socket.socket) -> None:
        """Pass the control socket to the first process, unless that exits first."""
        accepting = asyncio.ensure_future(self._loop.sock_accept(listening))
        ending = asyncio.ensure_future(self._engine.wait_for_exit(name))
        try:
            await asyncio.wait({accepting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not accepting.done():
                raise OSError(
                    f"the container ended at once: {await self._engine.read_errors(name) or 'no reason given'}"
                )
            connection, _ = accepting.result()
        finally:
            for task in (accepting, ending):
                task.cancel()
            await asyncio.wait({accepting, ending})
            _ignore(ending)
        with connection:
            self._watch(_pid_of(connection))
            socket.send_fds(connection, [self._temporary.encode()], [self._control])

    def _watch(self, pid: int) -> None:
        if pid <= 0:
            raise OSError(NOT_HERE)
        self._pidfd = os.pidfd_open(pid)
        self._loop.add_reader(self._pidfd, self._on_exit)

    def _on_exit(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        if not self.exited.done():
            self.exited.set_result(None)

    def _fail(self, problem: OSError) -> None:
        self._error = problem
        self._kill()
        self._release()
        if not self.exited.done():
            self.exited.set_result(None)

    def _kill(self) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _release(self) -> None:
        if self._pidfd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _ignore(task: "asyncio.Future[None]") -> None:
    with contextlib.suppress(asyncio.CancelledError, EngineFault):
        task.result()


def _take_name(folder: Path, key: str) -> tuple[str, int]:
    """Return a name that no other process uses, and its lock."""
    for count in range(1, _MAX_CONTAINERS):
        name = key if count == 1 else f"{key}-{count}"
        lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return name, lock
    raise OSError("too many containers run for this workspace")


def _listen(folder: Path, name: str, owner: int) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.setblocking(False)
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder_fd)
        listening.bind(bindable_path(folder, folder_fd, name))
        os.chmod(name, 0o600, dir_fd=folder_fd)
        if os.getuid() == 0:
            os.chown(name, owner, -1, dir_fd=folder_fd)
        listening.listen(1)
    except OSError:
        listening.close()
        raise
    finally:
        os.close(folder_fd)
    return listening


def _pid_of(connection: socket.socket) -> int:
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[0])


def new_temporary() -> str:
    """Return the path of a temporary folder in the container that no other world has."""
    return f"/tmp/windlass/{secrets.token_hex(8)}"
