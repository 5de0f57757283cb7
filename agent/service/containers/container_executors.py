"""Runs tasks that request a container in the pool, and all others as child processes."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

from agent.protocol.events import RunCompleted
from agent.service.containers.container import PoolError
from agent.service.containers.executor_container import DATA
from agent.service.containers.pool import ContainerPool
from agent.service.dispatcher import Executors
from agent.service.executor_client import ExecutorClient
from agent.service.staging import PreparedTask
from agent.service.task import Task, TaskOutcome
from agent.service.task_runs import outcome_of
from agent.service.workspaces.layout import ContainerMode, Workspace
from agent.sessions.log.log_index import read_lines
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import TaskConfig
from tooling.web.http.httpx_import import httpx

OpenPool: TypeAlias = Callable[[], AbstractAsyncContextManager[ContainerPool]]
NOT_IN_CONTAINERS = "a task in a container cannot have {what}"
NO_RESULT = "the executor has ended the task without a result"
TOO_LONG = "the task took longer than {seconds:g} s"
_POLL_S = 0.3


class ContainerExecutors:
    """Opens the pool with the first task that requests a container; call `close` at the end."""

    def __init__(self, local: Executors, open_pool: OpenPool, *, callback_token: str = "", limit_s: float) -> None:
        self._local = local
        self._open_pool = open_pool
        self._callback_token = callback_token
        self._limit_s = limit_s
        self._opening = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()
        self._pool: ContainerPool | None = None

    async def close(self) -> None:
        """Close the pool."""
        await self._stack.aclose()

    async def acquire(self, task: Task) -> tuple[str, str | None]:
        """Return an executor in a container if the task requests one."""
        config = task.request.config
        if not config.container_mode:
            return await self._local.acquire(task)
        _check(task)
        async with self._opening:
            if self._pool is None:
                self._pool = await self._stack.enter_async_context(self._open_pool())
        # The pool validates the mode.
        mode = cast(ContainerMode, config.container_mode)
        user = str(config.user_id or task.request.user_id)
        return await self._pool.get_or_create_container(task.session_id, user, mode, config.container_id)

    async def release(self, task: Task, container_id: str | None, *, has_failed: bool) -> None:
        """Return a container to the pool."""
        if container_id is None or self._pool is None:
            await self._local.release(task, container_id, has_failed=has_failed)
        else:
            await self._pool.release(container_id, has_failed=has_failed)

    async def execute(self, prepared: PreparedTask, executor_url: str, container_id: str | None) -> TaskOutcome:
        """Run a task. Raises PoolError if its container exits first."""
        if container_id is None or self._pool is None:
            return await self._local.execute(prepared, executor_url, container_id)
        workspace = self._pool.workspace(container_id)
        config = await asyncio.to_thread(_move_in, prepared.config, workspace)
        request = prepared.task.request
        before = await asyncio.to_thread(_results, workspace)
        client = ExecutorClient(trace_id=request.trace_id, token=self._pool.token(container_id))
        token = self._callback_token if request.callback_url else ""
        await client.execute_task(
            executor_url, prepared.task.session_id, request.prompt, request.callback_url, token, config
        )
        ending = asyncio.ensure_future(self._pool.ended(container_id))
        running = asyncio.ensure_future(_wait_for_result(workspace, before, executor_url))
        try:
            await asyncio.wait({ending, running}, timeout=self._limit_s, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            raise PoolError(ending.result() if ending.done() else TOO_LONG.format(seconds=self._limit_s))
        finally:
            for waiting in (ending, running):
                waiting.cancel()
            await asyncio.wait({ending, running})


def _check(task: Task) -> None:
    """Reject options that cannot be passed to an executor; they must not be ignored silently."""
    request = task.request
    wanted = {
        "a folder of yours; it has a workspace of its own": request.cwd,
        "a backend": request.backend,
        "settings of its own": request.settings,
        "grants": request.grants,
    }
    for what, value in wanted.items():
        if value:
            raise InputError(NOT_IN_CONTAINERS.format(what=what), "leave it out, or leave out container_mode")


def _move_in(config: TaskConfig, workspace: Workspace) -> TaskConfig:
    """Copy inputs and skills into the container's folders, and return the configuration with their paths there."""
    inputs = tuple({"path": _copy(source, workspace, "inputs", name), "name": name} for source, name in config.inputs)
    skills = config.skill_files
    if isinstance(skills, Mapping):
        named = {name: _copy_skill(str(path), workspace) for name, path in skills.items()}
        return replace(config, input_files=inputs, skill_files=named)
    return replace(config, input_files=inputs, skill_files=tuple(_copy_skill(name, workspace) for name in skills))


def _copy_skill(given: str, workspace: Workspace) -> str:
    path = Path(given)
    return _copy(path, workspace, "skills", path.name) if path.is_absolute() else given


def _copy(source: Path, workspace: Workspace, kind: str, name: str) -> str:
    target = workspace.data / kind / name
    if not target.exists():
        target.parent.mkdir(mode=0o755, exist_ok=True)
        shutil.copytree(source, target, symlinks=True) if source.is_dir() else shutil.copyfile(source, target)
        for path in (target.parent, target, *target.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
    return f"{DATA}/{kind}/{name}"


def _results(workspace: Workspace) -> list[tuple[str, RunCompleted]]:
    """Return the results in the event log of a session, in order."""
    if not workspace.session.events.is_file() or workspace.session.events.is_symlink():
        return []
    found = (line.envelope() for line in read_lines(workspace.session.events, only=RunCompleted.type))
    return [(one.run_id, one.event) for one in found if one and isinstance(one.event, RunCompleted)]


async def _wait_for_result(
    workspace: Workspace, before: list[tuple[str, RunCompleted]], executor_url: str
) -> TaskOutcome:
    """Return the outcome once the log contains it. Raises PoolError if the executor stopped without one."""
    async with _health(executor_url) as is_working:
        while True:
            was_working = await is_working()
            found = (await asyncio.to_thread(_results, workspace))[len(before) :]
            if found:
                return outcome_of(found[0][1], found[0][0])
            if not was_working:
                raise PoolError(NO_RESULT)
            await asyncio.sleep(_POLL_S)


@asynccontextmanager
async def _health(url: str) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    async with httpx.AsyncClient(trust_env=False) as client:

        async def is_working() -> bool:
            try:
                return int((await client.get(f"{url}/health")).json()["running"]) > 0
            except (httpx.HTTPError, ValueError, KeyError, TypeError):
                # `ended` reports the exit of the container, with the reason.
                return True

        yield is_working
