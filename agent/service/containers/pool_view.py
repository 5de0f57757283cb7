"""The containers of the pool as seen by processes that do not run tasks."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from agent.backends.docker.engine import Engine, EngineFault, find_socket
from agent.service.containers.container import explain_fault, remove_container
from agent.service.containers.executor_container import ID_LABEL, OWNER, OWNER_LABEL, POOL_LABEL, pool_name
from agent.service.containers.pool import ContainerRow, container_row
from agent.service.containers.supply import label_of, name_of
from agent.service.workspaces.layout import WorkspaceStore
from agent.vocabulary.errors import InputError, SandboxError


class PoolView:
    """Lists and removes the containers of one folder of workspaces."""

    def __init__(self, store: WorkspaceStore, environ: Mapping[str, str]) -> None:
        self._store = store
        self._environ = environ

    async def rows(self) -> list[ContainerRow]:
        """Return all containers; none if there is no pool or no engine."""
        try:
            async with self._engine() as engine:
                return [container_row(found) for found in await self._list(engine)] if engine else []
        except (SandboxError, EngineFault):
            return []

    async def remove(self, container_id: str) -> None:
        """Remove a container and its processes. Raises InputError if there is none."""
        async with self._engine() as engine:
            found = await self._list(engine) if engine else []
            names = [name_of(one) for one in found if container_id in (label_of(one, ID_LABEL), name_of(one))]
            if engine is None or not names:
                raise InputError(f"there is no container {container_id!r}", "`agent stats` shows them")
            try:
                await remove_container(engine, names[0])
            except EngineFault as fault:
                raise explain_fault(fault, "") from fault

    async def _list(self, engine: Engine) -> list[Mapping[str, object]]:
        return await engine.list_containers({OWNER_LABEL: OWNER, POOL_LABEL: pool_name(self._store.root)})

    @asynccontextmanager
    async def _engine(self) -> AsyncIterator[Engine | None]:
        """Yield the engine, or None if this user has never had a container, so that no engine needs to be installed."""
        if not self._store.pool.exists():
            yield None
            return
        engine = Engine(find_socket(self._environ))
        try:
            await engine.connect()
            yield engine
        finally:
            await engine.close()
