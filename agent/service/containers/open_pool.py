"""Opens the container pool described by the user's settings."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from agent.backends.docker.engine import Engine, find_socket
from agent.config.environment import key_variables
from agent.config.load import LoadedSettings
from agent.config.origin import DEFAULT
from agent.config.service_settings import LoadedService, ServiceSettings
from agent.service.containers.executor_container import PoolOptions, container_user, pool_name
from agent.service.containers.pool import ContainerPool
from agent.service.containers.pool_folder import PoolFolder
from agent.service.containers.supply import ContainerSupply, name_of
from agent.service.workspaces.layout import WorkspaceStore
from agent.service.workspaces.open_workspaces import Workspaces, open_workspaces

_MIB = 1024**2
_HOUR_S = 3600


@asynccontextmanager
async def open_pool(
    loaded: LoadedSettings, service: LoadedService, environ: Mapping[str, str], warn: Callable[[str], None]
) -> AsyncIterator[ContainerPool]:
    """Yield the pool; optionally clean up old workspaces in the background. Raises SandboxError without an engine."""
    workspaces = open_workspaces(service.settings, environ)
    engine = Engine(find_socket(environ))
    try:
        pool = await ContainerPool.open(engine, workspaces.store, pool_options(loaded, service), warn)
        cleaning = asyncio.create_task(_keep_clean(workspaces, warn), name="clean-up of workspaces")
        try:
            yield pool
        finally:
            cleaning.cancel()
            await pool.close()
    finally:
        await engine.close()


async def remove_stale_containers(store: WorkspaceStore, environ: Mapping[str, str], *, is_dry_run: bool) -> list[str]:
    """Remove the containers and folders of killed managers; return the names of the containers.

    Raises SandboxError if there is no engine.
    """
    if not store.pool.exists():
        return []
    engine = Engine(find_socket(environ))
    try:
        info = await engine.connect()
        user = container_user(is_rootless=info.is_rootless)
        folder = PoolFolder(store, user)
        options = PoolOptions(image="")
        supply = ContainerSupply(engine, folder, options, pool=pool_name(store.root), user=user, warn=lambda text: None)
        try:
            stale = [name_of(one) for one in await supply.list_containers() if supply.is_stale(one)]
            return stale if is_dry_run else await supply.gc()
        finally:
            await supply.close()
            folder.close()
    finally:
        await engine.close()


def pool_options(loaded: LoadedSettings, service: LoadedService) -> PoolOptions:
    """Return the options of the pool; API keys are secrets, passed to containers in a file."""
    settings = service.settings
    return PoolOptions(
        image=settings.executor_image,
        max_containers=settings.max_executor_containers,
        warm=settings.executor_warm_containers,
        tasks_per_container=settings.executor_max_tasks,
        environment={
            "DEFAULT_MODEL": _model(loaded, service),
            "ANTHROPIC_BASE_URL": settings.anthropic_base_url,
            "DEBUG": str(settings.debug).lower(),
        },
        secrets=_secrets(loaded, settings),
        callback_url=settings.callback_base_url,
        memory_bytes=settings.executor_memory_mb * _MIB if settings.executor_memory_mb else None,
        cpus=settings.executor_cpus,
    )


def _model(loaded: LoadedSettings, service: LoadedService) -> str:
    """Return the model for containers: the one set for them, the user's, or the default."""
    is_chosen = service.origins["default_model"] is not DEFAULT
    return service.settings.default_model if is_chosen else loaded.settings.model or service.settings.default_model


def _secrets(loaded: LoadedSettings, settings: ServiceSettings) -> Mapping[str, str]:
    names = {provider: key_variables(provider)[:1] for provider in loaded.settings.keys}
    keys = {name: loaded.settings.keys[provider] for provider, found in names.items() for name in found}
    token = settings.anthropic_token
    own = {"ANTHROPIC_AUTH_TOKEN": token, "ANTHROPIC_API_KEY": token} if token else {}
    return {name: value for name, value in {**keys, **own}.items() if value}


async def _keep_clean(workspaces: Workspaces, warn: Callable[[str], None]) -> None:
    while True:
        for step in await workspaces.cleaner.run(workspaces.policy):
            if step.problem:
                warn(f"{step.target} could not be cleaned up: {step.problem}")
        await asyncio.sleep(workspaces.policy.interval_hours * _HOUR_S)
