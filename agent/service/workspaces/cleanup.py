"""Cleans up unused workspaces: archives or removes them if the user enabled it, and never while they are in use."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from agent.service.workspaces.archive import SUFFIX, ArchiveLimits, pack
from agent.service.workspaces.handover import is_transient
from agent.service.workspaces.layout import Workspace, WorkspaceLock, WorkspaceStore
from agent.service.workspaces.storage import ArchiveStore, StoredArchive
from agent.sessions.upkeep.gc import delete_tree
from agent.vocabulary.errors import AgentError, InputError, SessionBusy
from tooling.contract.fast_dataclass import dataclass
from tooling.files.temp_dir import TempDir

_HOUR_S = 3600
NEEDS_FORCE = "the workspace of session {session} of user {user} is persistent"
FORCE_HINT = "archive it (`agent workspaces archive`), or remove it with --force"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPolicy:
    """Conditions for cleaning up workspaces; off by default."""

    is_enabled: bool = False
    interval_hours: float = 24
    max_age_hours: float = 24
    archives: bool = True
    archive_days: float = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupStep:
    """One action of a clean-up; `target` is a workspace or the key of an archive."""

    action: str
    target: str
    problem: str = ""


class WorkspaceCleaner:
    """Archives and removes workspaces."""

    def __init__(
        self,
        store: WorkspaceStore,
        archives: ArchiveStore,
        limits: ArchiveLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._archives = archives
        self._limits = limits
        self._now = now

    async def archive(self, workspace: Workspace) -> StoredArchive:
        """Archive a workspace with the session's log. Raises SessionBusy if it is in use."""
        lock = WorkspaceLock(workspace)
        try:
            return await self._archive(workspace)
        finally:
            lock.release()

    async def _archive(self, workspace: Workspace) -> StoredArchive:
        parts = {"workspace": workspace.path, "session": workspace.session.root}
        info = {
            "kind": "workspace",
            "user_id": workspace.user_id,
            "session_id": workspace.session_id,
            "container_mode": workspace.mode,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with TempDir() as temporary:
            file = temporary / f"archive{SUFFIX}"
            await asyncio.to_thread(
                pack,
                {name: path for name, path in parts.items() if path.is_dir()},
                file,
                info=info,
                limits=self._limits,
                is_left_out=is_transient,
            )
            return await self._archives.put(archive_key(workspace), file)

    async def remove(self, workspace: Workspace, *, is_forced: bool = False) -> None:
        """Remove a workspace. Raises SessionBusy if it is in use, InputError for a persistent one without force."""
        if workspace.mode == "persistent" and not is_forced:
            found = NEEDS_FORCE.format(session=workspace.session_id, user=workspace.user_id)
            raise InputError(found, FORCE_HINT)
        await asyncio.to_thread(self._store.remove, workspace, WorkspaceLock(workspace))

    async def plan(self, policy: CleanupPolicy) -> list[CleanupStep]:
        """Return the actions of a clean-up without performing them."""
        steps = [CleanupStep(action="delete", target=str(path)) for path in self._store.leftovers()]
        if policy.is_enabled:
            steps += [self._step_for(workspace, policy) for workspace in self._expired(policy)]
            steps += [
                CleanupStep(action="delete archive", target=one.key) for one in await self._expired_archives(policy)
            ]
        return steps

    async def run(self, policy: CleanupPolicy) -> list[CleanupStep]:
        """Clean up once; failures are reported and retried next time."""
        done: list[CleanupStep] = []
        for path in [*self._store.leftovers()]:
            await asyncio.to_thread(delete_tree, path)
            done.append(CleanupStep(action="delete", target=str(path)))
        if not policy.is_enabled:
            return done
        for workspace in [*self._expired(policy)]:
            step = self._step_for(workspace, policy)
            try:
                await self._apply(step, workspace)
            except SessionBusy:
                continue
            except (AgentError, OSError) as error:
                step = CleanupStep(action=step.action, target=step.target, problem=str(error))
            done.append(step)
        for one in await self._expired_archives(policy):
            await self._archives.delete(one.key)
            done.append(CleanupStep(action="delete archive", target=one.key))
        return done

    async def _apply(self, step: CleanupStep, workspace: Workspace) -> None:
        lock = WorkspaceLock(workspace)
        try:
            if step.action == "archive":
                await self._archive(workspace)
        except BaseException:
            lock.release()
            raise
        await asyncio.to_thread(self._store.remove, workspace, lock)

    def _expired(self, policy: CleanupPolicy) -> list[Workspace]:
        limit = self._now() - policy.max_age_hours * _HOUR_S
        return [one for one in self._store.all() if one.last_used < limit and self._may_go(one, policy)]

    def _may_go(self, workspace: Workspace, policy: CleanupPolicy) -> bool:
        # Without archives, only the user removes a persistent workspace.
        return workspace.mode == "ephemeral" or policy.archives

    def _step_for(self, workspace: Workspace, policy: CleanupPolicy) -> CleanupStep:
        action = "archive" if workspace.mode == "persistent" and policy.archives else "remove"
        return CleanupStep(action=action, target=str(workspace.path))

    async def _expired_archives(self, policy: CleanupPolicy) -> list[StoredArchive]:
        limit = datetime.fromtimestamp(self._now(), UTC) - timedelta(days=policy.archive_days)
        return [one for one in await self._archives.list("user_") if one.modified_at < limit]


def archive_key(workspace: Workspace) -> str:
    """Return the key of a workspace's archive; a newer one replaces it."""
    return f"user_{workspace.user_id}/session_{workspace.session_id}{SUFFIX}"
