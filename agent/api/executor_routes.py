"""The endpoints for executors, their containers, and workspaces."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from agent.api.parts import ServerParts, find
from agent.api.replies import NotFound, Reply, ok
from agent.api.task_routes import ERRORS, PREFIX, Name
from agent.service.containers.pool import ContainerRow
from agent.service.task import ACTIVE, QueueStats, TaskState
from agent.service.workspaces.layout import Workspace
from agent.service.workspaces.listing import WorkspaceFile, WorkspaceRow, list_files, workspace_row
from agent.service.workspaces.storage import StoredArchive
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

Force = Annotated[bool, Query(description="also remove a persistent one")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorStats:
    """The containers of executors, and the figures of the queue."""

    total_active: int
    persistent_containers: int
    ephemeral_containers: int
    containers: tuple[ContainerRow, ...]
    queue: QueueStats


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLoad:
    """The load of the workers: `load` is the share of their slots in use."""

    running: int
    queued: int
    capacity: int
    load: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStats:
    """All workspaces together."""

    workspaces: int
    running: int
    files: int
    size_bytes: int


def executor_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for executors."""
    executors = parts.executors
    router = APIRouter(prefix=PREFIX, tags=["executors"], responses=ERRORS)

    @router.get("/executor/stats", response_model=Reply[ExecutorStats])
    async def show_stats() -> Response:
        """Show the containers of executors, and the figures of the queue."""
        rows = await executors.containers.rows()
        modes = [row.mode for row in rows]
        stats = ExecutorStats(
            total_active=modes.count("persistent") + modes.count("ephemeral"),
            persistent_containers=modes.count("persistent"),
            ephemeral_containers=modes.count("ephemeral"),
            containers=tuple(rows),
            queue=await parts.tasks.stats(),
        )
        return ok(stats)

    @router.get("/executor/load", response_model=Reply[ExecutorLoad])
    async def show_load() -> Response:
        """Show how busy the workers are."""
        stats = await parts.tasks.stats()
        running = sum(stats.tasks.get(state, 0) for state in ACTIVE)
        capacity = sum(worker.concurrency for worker in stats.workers if worker.is_alive)
        load = running / capacity if capacity else float(running > 0)
        queued = stats.tasks.get(TaskState.QUEUED, 0)
        return ok(ExecutorLoad(running=running, queued=queued, capacity=capacity, load=round(load, 3)))

    @router.delete("/executor/containers/{container_id}", response_model=Reply[None])
    async def remove_container(container_id: Name) -> Response:
        """Remove a container, with what runs in it."""
        await find(executors.containers.remove(container_id))
        return ok(None)

    return router


def workspace_routes(parts: ServerParts) -> APIRouter:
    """Return the endpoints for workspaces."""
    executors = parts.executors
    router = APIRouter(prefix=PREFIX, tags=["workspaces"], responses=ERRORS)

    def rows() -> list[WorkspaceRow]:
        ignores = executors.ignores_dot_files
        return [workspace_row(one, ignores_dot_files=ignores) for one in executors.workspaces.store.all()]

    @router.get("/workspaces", response_model=Reply[list[WorkspaceRow]])
    def list_workspaces() -> Response:
        """List the workspaces of executors."""
        return ok(rows())

    @router.get("/workspaces/stats", response_model=Reply[WorkspaceStats])
    def show_workspace_stats() -> Response:
        """Show how many workspaces there are, and their size."""
        found = rows()
        stats = WorkspaceStats(
            workspaces=len(found),
            running=sum(row.is_running for row in found),
            files=sum(row.files for row in found),
            size_bytes=sum(row.size_bytes for row in found),
        )
        return ok(stats)

    @router.get("/workspaces/{user_id}/{session_id}/files", response_model=Reply[list[WorkspaceFile]])
    def list_workspace_files(user_id: Name, session_id: Name) -> Response:
        """List the files of a workspace."""
        return ok(list_files(_find(user_id, session_id), ignores_dot_files=executors.ignores_dot_files))

    @router.post("/workspaces/{user_id}/{session_id}/archive", response_model=Reply[StoredArchive])
    async def archive_workspace(user_id: Name, session_id: Name) -> Response:
        """Archive a workspace in the folder of archives, or in the bucket of the settings."""
        workspace = await asyncio.to_thread(_find, user_id, session_id)
        return ok(await executors.workspaces.cleaner.archive(workspace))

    @router.delete("/workspaces/{user_id}/{session_id}", response_model=Reply[None])
    async def remove_workspace(user_id: Name, session_id: Name, *, force: Force = False) -> Response:
        """Remove a workspace with all its files; one in use is refused."""
        workspace = await asyncio.to_thread(_find, user_id, session_id)
        await executors.workspaces.cleaner.remove(workspace, is_forced=force)
        return ok(None)

    def _find(user_id: str, session_id: str) -> Workspace:
        try:
            return executors.workspaces.store.find(user_id, session_id)
        except InputError as error:
            raise NotFound(error.message, error.hint) from error

    return router
