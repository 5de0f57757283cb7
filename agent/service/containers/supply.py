"""Creates the containers of a pool within its limit, in order of requests, and keeps warm ones ready."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace

from agent.backends.docker.engine import Engine, EngineFault
from agent.service.containers.callback_relay import CallbackSocket, loopback_port
from agent.service.containers.container import PoolError, PortTaken, RunningContainer, explain_fault, remove_container
from agent.service.containers.executor_container import (
    ID_LABEL,
    MANAGER_LABEL,
    MODE_LABEL,
    OWNER,
    OWNER_LABEL,
    POOL_LABEL,
    Identity,
    PoolOptions,
    container_config,
)
from agent.service.containers.pool_folder import PoolFolder
from agent.service.workspaces.layout import ContainerMode, Workspace
from agent.vocabulary.errors import AgentError

FULL = "all {count} containers of the pool are in use, and none became free within {seconds:g} s"
FULL_HINT = "wait for a task to end, remove persistent containers, or raise max_executor_containers"
# Polling interval for slots freed by other managers of the pool.
_RECHECK_S = 1.0
_LOCK_POLL_S = 0.02
_PORT_TRIES = 3


class ContainerSupply:
    """The containers of one manager; `warn` receives problems that do not fail a task."""

    def __init__(
        self,
        engine: Engine,
        folder: PoolFolder,
        options: PoolOptions,
        *,
        pool: str,
        user: tuple[int, int],
        warn: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._options = options
        self._pool = pool
        self._user = user
        self._warn = warn
        self._sockets: dict[str, CallbackSocket] = {}
        self._warm: list[RunningContainer] = []
        self._turn = asyncio.Lock()
        self._creating = asyncio.Lock()
        self._freed = asyncio.Event()
        self._wake = asyncio.Event()
        self._upkeep = asyncio.create_task(self._keep_up(), name="upkeep of the pool")
        self.waiting = 0

    @property
    def warm(self) -> tuple[str, ...]:
        """Names of the containers that are ready for a task."""
        return tuple(container.name for container in self._warm)

    async def close(self) -> None:
        """Remove the warm containers."""
        self._upkeep.cancel()
        await asyncio.wait({self._upkeep})
        while self._warm:
            await self.discard(self._warm.pop())
        for socket in self._sockets.values():
            await socket.close()

    async def take(self, workspace: Workspace, mode: ContainerMode, wait_s: float | None) -> RunningContainer:
        """Return a container that is ready for a task. Raises PoolError with the reason if there is none."""
        for count in range(1, _PORT_TRIES + 1):
            try:
                async with asyncio.timeout(wait_s):
                    container = await self._wait_for_place(workspace, mode)
            except TimeoutError as error:
                message = FULL.format(count=self._options.max_containers, seconds=wait_s or 0)
                raise PoolError(message, FULL_HINT) from error
            if container.url:
                return container
            try:
                await self._start(container)
            except PortTaken:
                if count == _PORT_TRIES:
                    raise
            else:
                return container
        raise AssertionError

    async def adopt(self, identity: Identity) -> RunningContainer | None:
        """Take over a container of a manager that has exited; remove it and return None if it does not accept tasks."""
        container = RunningContainer(self._engine, identity, self._options)
        if await container.adopt():
            await self._open_socket(identity.container_id)
            return container
        await self.discard(container)
        return None

    async def discard(self, container: RunningContainer) -> None:
        """Remove a container and its folders; `gc` retries what the engine cannot remove now."""
        try:
            await container.remove()
        except EngineFault as fault:
            self._warn(f"{container.name} could not be removed: {fault}")
        else:
            await self.forget(container.identity.container_id)
        finally:
            self.note_free()

    async def forget(self, container_id: str) -> None:
        """Delete the folder of a removed container."""
        if socket := self._sockets.pop(container_id, None):
            await socket.close()
        await asyncio.to_thread(self._folder.remove, container_id)

    def note_free(self) -> None:
        """Wake the next waiting request."""
        self._freed.set()
        self._wake.set()

    async def list_containers(self) -> list[Mapping[str, object]]:
        """Return all containers of the pool, of all managers."""
        return await self._engine.list_containers({OWNER_LABEL: OWNER, POOL_LABEL: self._pool})

    async def gc(self) -> list[str]:
        """Remove the containers, except persistent ones, and the folders of killed managers. Return their names."""
        async with self._exclusively():
            found = await self.list_containers()
            stale = [one for one in found if self.is_stale(one)]
            for one in stale:
                await remove_container(self._engine, name_of(one))
            # The creation lock is held: a folder without a container is a leftover.
            kept = {label_of(one, ID_LABEL) for one in found if one not in stale}
            for container_id in set(self._folder.ids()) - kept:
                await self.forget(container_id)
        if stale:
            self.note_free()
        return [name_of(one) for one in stale]

    def is_stale(self, found: Mapping[str, object]) -> bool:
        """Return whether a container has no manager and is not persistent."""
        is_running = found.get("State") == "running"
        is_ours_to_keep = label_of(found, MODE_LABEL) == "persistent" and is_running
        return not is_ours_to_keep and not self._folder.is_alive(label_of(found, MANAGER_LABEL))

    async def _wait_for_place(self, workspace: Workspace, mode: ContainerMode) -> RunningContainer:
        """Return a warm container, or a new one that must be started."""
        self.waiting += 1
        try:
            # The lock is fair, so only the first waiting request looks for a slot.
            async with self._turn:
                while True:
                    self._freed.clear()
                    if mode == "ephemeral" and (warm := await self._take_warm(workspace)):
                        return warm
                    if created := await self._create(mode, workspace):
                        return created
                    await _wait(self._freed, _RECHECK_S)
        finally:
            self.waiting -= 1

    async def _create(self, mode: ContainerMode, workspace: Workspace | None) -> RunningContainer | None:
        """Create a container if there is a free slot."""
        identity = Identity(
            number=secrets.token_hex(6),
            pool=self._pool,
            manager=self._folder.manager,
            mode=mode,
            session_id=workspace.session_id if workspace else "",
            user_id=workspace.user_id if workspace else "",
        )
        container_id = identity.container_id
        async with self._exclusively():
            try:
                if len(await self.list_containers()) >= self._options.max_containers and not await self._make_room(
                    workspace
                ):
                    return None
                folders = await asyncio.to_thread(self._folder.folders, container_id, workspace)
                self._folder.write_secrets(container_id, self._options.secrets)
                config = container_config(identity, folders, self._options, self._user)
                await self._engine.create_container(identity.name, config)
            except EngineFault as fault:
                await self.forget(container_id)
                raise explain_fault(fault, self._options.image) from fault
            except BaseException:
                await self.forget(container_id)
                raise
        return RunningContainer(self._engine, identity, self._options)

    async def _make_room(self, workspace: Workspace | None) -> bool:
        """Remove a warm container that the task cannot use."""
        if workspace is None or not self._warm:
            return False
        await self.discard(self._warm.pop())
        return True

    async def _start(self, container: RunningContainer) -> None:
        container_id = container.identity.container_id
        try:
            await self._open_socket(container_id)
            await container.start()
        except BaseException:
            await asyncio.shield(self.discard(container))
            raise
        finally:
            self._folder.remove_secrets(container_id)

    async def _open_socket(self, container_id: str) -> None:
        port = loopback_port(self._options.callback_url) if self._options.callback_url else None
        if port is not None:
            socket = self._sockets[container_id] = CallbackSocket(self._folder.run(container_id), port, self._user)
            await socket.open()

    async def _take_warm(self, workspace: Workspace) -> RunningContainer | None:
        while self._warm:
            container = self._warm.pop(0)
            self._wake.set()
            if not await container.is_healthy():
                await self.discard(container)
                continue
            identity = replace(container.identity, session_id=workspace.session_id, user_id=workspace.user_id)
            try:
                await asyncio.to_thread(self._folder.claim, identity.container_id, workspace)
                await container.rename(identity)
            except BaseException:
                await asyncio.shield(self.discard(container))
                raise
            return container
        return None

    async def _keep_up(self) -> None:
        """Replace warm containers that were taken or became unhealthy."""
        while True:
            self._wake.clear()
            for container in [*self._warm]:
                if not await container.is_healthy() and container in self._warm:
                    self._warm.remove(container)
                    await self.discard(container)
            try:
                await self._fill()
            except (AgentError, OSError) as error:
                self._warn(f"no container could be made ready: {error}")
            await _wait(self._wake, self._options.health_interval_s)

    async def _fill(self) -> None:
        while len(self._warm) < self._options.warm and not self.waiting:
            container = await self._create("ephemeral", None)
            if container is None:
                return
            await self._start(container)
            self._warm.append(container)
            self._freed.set()

    @contextlib.asynccontextmanager
    async def _exclusively(self) -> AsyncIterator[None]:
        """Hold the creation lock of the pool, so that its containers can be counted."""
        async with self._creating:
            while not self._folder.try_lock_creation():  # noqa: ASYNC110 (the lock of another process)
                await asyncio.sleep(_LOCK_POLL_S)
            try:
                yield
            finally:
                self._folder.unlock_creation()


async def _wait(event: asyncio.Event, limit_s: float) -> None:
    # Not wait_for, which can swallow a cancellation before Python 3.12.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await event.wait()


def label_of(found: Mapping[str, object], name: str) -> str:
    """Return a label of a container in a listing."""
    labels = found.get("Labels")
    return str(labels.get(name, "")) if isinstance(labels, Mapping) else ""


def name_of(found: Mapping[str, object]) -> str:
    """Return the name of a container in a listing."""
    names = found.get("Names")
    return str(names[0]).removeprefix("/") if isinstance(names, list) and names else str(found.get("Id", ""))
