"""ContainerPool: one executor container per task, up to a limit, removed after use."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from agent.backends.docker.engine import Engine
from agent.service.containers.container import RunningContainer, remove_container
from agent.service.containers.executor_container import (
    ID_LABEL,
    MANAGER_LABEL,
    MODE_LABEL,
    SESSION_LABEL,
    USER_LABEL,
    WARM,
    Identity,
    PoolOptions,
    container_user,
    pool_name,
)
from agent.service.containers.pool_folder import PoolFolder
from agent.service.containers.supply import ContainerSupply, label_of, name_of
from agent.service.workspaces.layout import MODES, ContainerMode, Workspace, WorkspaceLock, WorkspaceStore, touch
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

GONE = "the container is gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRow:
    """A container in the statistics."""

    container_id: str
    name: str
    status: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """The containers of a pool, of all its managers; `waiting` are the requests of this one."""

    total_active: int
    persistent_containers: int
    ephemeral_containers: int
    warm_containers: int
    max_containers: int
    waiting: int
    containers: tuple[ContainerRow, ...]


class _Lease:
    """A container in use by a session."""

    def __init__(self, container: RunningContainer, workspace: Workspace, lock: WorkspaceLock) -> None:
        self.container = container
        self.workspace = workspace
        self.lock = lock
        self.watching: asyncio.Task[None] | None = None


class ContainerPool:
    """Create a pool with `open`, and call `close` at the end."""

    def __init__(
        self, engine: Engine, store: WorkspaceStore, options: PoolOptions, folder: PoolFolder, supply: ContainerSupply
    ) -> None:
        self.options = options
        self._engine = engine
        self._store = store
        self._folder = folder
        self._supply = supply
        self._leases: dict[str, _Lease] = {}

    @classmethod
    async def open(
        cls, engine: Engine, store: WorkspaceStore, options: PoolOptions, warn: Callable[[str], None]
    ) -> "ContainerPool":
        """Connect to the engine, remove the containers of killed managers, and start warm containers.

        `warn` receives problems that do not fail a task. Raises SandboxError if there is no engine.
        """
        info = await engine.connect()
        user = container_user(is_rootless=info.is_rootless)
        store = WorkspaceStore(store.root, user)
        folder = PoolFolder(store, user)
        supply = ContainerSupply(engine, folder, options, pool=pool_name(store.root), user=user, warn=warn)
        pool = cls(engine, store, options, folder, supply)
        try:
            await pool.gc()
        except BaseException:
            await pool.close()
            raise
        return pool

    async def close(self) -> None:
        """Remove all containers except persistent ones, which the next manager adopts."""
        for container_id, lease in [*self._leases.items()]:
            if lease.container.identity.mode == "ephemeral":
                await self.remove(container_id)
            else:
                self._end_lease(container_id)
                await lease.container.stop_watching()
        await self._supply.close()
        self._folder.close()

    def token(self, container_id: str) -> str:
        """Return the bearer token of the executor in a container."""
        return self._folder.token(container_id)

    @property
    def waiting(self) -> int:
        """Number of requests waiting for a container."""
        return self._supply.waiting

    @property
    def warm(self) -> tuple[str, ...]:
        """Names of the containers that are ready for a task."""
        return self._supply.warm

    def workspace(self, container_id: str) -> Workspace:
        """Return the workspace of a container in use. Raises KeyError if it is not in use."""
        return self._leases[container_id].workspace

    async def get_or_create_container(
        self,
        session_id: str,
        user_id: str,
        container_mode: ContainerMode = "ephemeral",
        container_id: str | None = None,
        *,
        wait_s: float | None = None,
    ) -> tuple[str, str]:
        """Return the URL and the id of an executor for a task of a session; `release` must follow.

        An ephemeral container is new; a persistent one is reused by its session while it is healthy. `container_id` is
        the container the caller expects. Requests beyond the limit wait in order of arrival, at
        most `wait_s`. Raises PoolError with the reason if there is no container, SessionBusy if the session is in use,
        InputError for wrong ids.
        """
        if container_mode not in MODES:
            raise InputError(f"{container_mode!r} is not a container mode", "use ephemeral or persistent")
        self._store.place(user_id, session_id)
        if container_mode == "persistent" and (found := await self._find(session_id, user_id, container_id)):
            return found.container.url, found.container.identity.container_id
        workspace = await asyncio.to_thread(self._store.open, user_id, session_id, container_mode)
        lock = WorkspaceLock(workspace)
        lock.admit_run()
        try:
            container = await self._supply.take(workspace, container_mode, wait_s)
        except BaseException:
            lock.release()
            raise
        self._lease(_Lease(container, workspace, lock))
        return container.url, container.identity.container_id

    async def release(self, container_id: str, *, has_failed: bool = False) -> None:
        """Report the end of a task: an ephemeral container is removed, a persistent one if it is old or unhealthy."""
        lease = self._leases.get(container_id)
        if lease is None:
            return
        touch(lease.workspace)
        lease.container.tasks += 1
        is_worn = lease.container.tasks >= self.options.tasks_per_container
        if lease.container.identity.mode == "ephemeral" or has_failed or is_worn:
            await self.remove(container_id)

    async def remove(self, container_id: str) -> None:
        """Remove a container even if it is in use; a missing one is no error."""
        if lease := self._end_lease(container_id):
            await self._supply.discard(lease.container)
            return
        for found in await self._supply.list_containers():
            if label_of(found, ID_LABEL) == container_id:
                await remove_container(self._engine, name_of(found))
                await self._supply.forget(container_id)
                self._supply.note_free()

    async def ended(self, container_id: str) -> str:
        """Wait until a container exits before its task ends, free its slot, and return the reason."""
        lease = self._leases.get(container_id)
        if lease is None:
            return GONE
        watching = lease.watching
        reason = await lease.container.ended()
        if watching:
            await asyncio.wait({watching})
        return reason

    async def stats(self) -> PoolStats:
        """Return the containers of the pool."""
        rows = [container_row(found) for found in await self._supply.list_containers()]
        counts = {mode: sum(row.mode == mode for row in rows) for mode in (*MODES, WARM)}
        return PoolStats(
            total_active=len(rows) - counts[WARM],
            persistent_containers=counts["persistent"],
            ephemeral_containers=counts["ephemeral"],
            warm_containers=counts[WARM],
            max_containers=self.options.max_containers,
            waiting=self._supply.waiting,
            containers=tuple(rows),
        )

    async def gc(self) -> list[str]:
        """Remove the containers, except persistent ones, and the folders of killed managers."""
        return await self._supply.gc()

    async def _find(self, session_id: str, user_id: str, container_id: str | None) -> _Lease | None:
        """Return the persistent container of a session if it is healthy; remove it otherwise."""
        own = (user_id, session_id)
        for lease in [*self._leases.values()]:
            identity = lease.container.identity
            if (lease.workspace.user_id, lease.workspace.session_id) == own and identity.mode == "persistent":
                if await lease.container.is_healthy():
                    return _expect(lease, container_id)
                await self.remove(identity.container_id)
        for found in await self._supply.list_containers():
            labels = tuple(label_of(found, name) for name in (USER_LABEL, SESSION_LABEL, MODE_LABEL))
            if labels == (*own, "persistent") and not self._folder.is_alive(label_of(found, MANAGER_LABEL)):
                adopted = await self._adopt(found, own)
                return _expect(adopted, container_id) if adopted else None
        return None

    async def _adopt(self, found: Mapping[str, object], own: tuple[str, str]) -> _Lease | None:
        workspace = await asyncio.to_thread(self._store.open, *own, "persistent")
        lock = WorkspaceLock(workspace)
        lock.admit_run()
        identity = Identity(
            number=label_of(found, ID_LABEL).removeprefix("exec-"),
            pool=pool_name(self._store.root),
            manager=self._folder.manager,
            mode="persistent",
            user_id=own[0],
            session_id=own[1],
        )
        container = await self._supply.adopt(identity)
        if container is None:
            lock.release()
            return None
        return self._lease(_Lease(container, workspace, lock))

    def _lease(self, lease: _Lease) -> _Lease:
        container_id = lease.container.identity.container_id
        self._leases[container_id] = lease
        lease.watching = asyncio.create_task(self._watch(container_id, lease), name="container in use")
        return lease

    async def _watch(self, container_id: str, lease: _Lease) -> None:
        """Free the slot of a container that exits by itself."""
        await lease.container.ended()
        # This task must not cancel itself.
        lease.watching = None
        if self._end_lease(container_id):
            await self._supply.discard(lease.container)

    def _end_lease(self, container_id: str) -> _Lease | None:
        lease = self._leases.pop(container_id, None)
        if lease is None:
            return None
        if lease.watching:
            lease.watching.cancel()
        with contextlib.suppress(OSError):
            lease.lock.release()
        return lease


def _expect(lease: _Lease, container_id: str | None) -> _Lease:
    found = lease.container.identity.container_id
    if container_id not in (None, "", found):
        raise InputError(f"{container_id} is not the container of this session", f"its container is {found}")
    return lease


def container_row(found: Mapping[str, object]) -> ContainerRow:
    """Return a container as statistics show it."""
    name = name_of(found)
    is_warm = name.startswith(f"executor-{WARM}-") and not label_of(found, SESSION_LABEL)
    return ContainerRow(
        container_id=label_of(found, ID_LABEL),
        name=name,
        status=str(found.get("State", "")),
        mode=WARM if is_warm else label_of(found, MODE_LABEL),
    )
