"""Gives each writing step its own git worktree within that of the run, and merges its changes."""

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from agent.workspace.worktrees import Worktree, Worktrees
from tooling.contract.command import CommandRequest, CommandRunner

# Changes the run's worktree and records the change as one of a step.
Record = Callable[[str, Callable[[], str]], Awaitable[str]]
CONFLICT = "What it changed was not merged: {reason}. It is on the branch {branch}."
NOT_MERGED = "step {step}: {reason}; its changes are on the branch {branch}"
# Effects of tools that change the workspace.
_CHANGING = ("write", "execute")
_COPY_TIMEOUT_S = 300
_SO_FAR = "work so far"


class StepWorktrees:
    """The worktrees of the steps of one run; git operations are serialized."""

    def __init__(
        self,
        *,
        worktrees: Worktrees,
        run: Worktree,
        folder: Path,
        tools_of: Callable[[PlanStep], Iterable[str]],
        effect_of: Callable[[str], str | None],
        runner: CommandRunner,
        record: Record | None,
        warn: Callable[[str], None],
    ) -> None:
        self._worktrees = worktrees
        self._run = run
        self._inside = folder.relative_to(run.path)
        self._tools_of = tools_of
        self._effect_of = effect_of
        self._runner = runner
        self._record = record or _change_in_thread
        self._warn = warn
        self._titles: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def open(self, step: PlanStep) -> Path | None:
        """Return the folder of a step that may write: a worktree with all changes of the run so far."""
        if not self._may_write(step):
            return None
        self._titles[step.id] = step.title
        async with self._lock:
            known = self._worktrees.step_of(self._run, step.id)
            if known is None:
                await asyncio.to_thread(self._worktrees.commit, self._run, _SO_FAR)
                known = await asyncio.to_thread(self._worktrees.open_step, self._run, step.id)
                await self._copy_ignored(known)
        folder = Path(known.path) / self._inside
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _may_write(self, step: PlanStep) -> bool:
        if step.id == LEAD or step.type == "ask_user":
            return False
        used = (step.tool,) if step.type == "tool" else self._tools_of(step)
        return any(self._effect_of(tool) in _CHANGING for tool in used)

    async def close(self, response: ExecutorResponse) -> ExecutorResponse:
        """Merge the worktree of a successful step, and remove it; keep any other if it has changes."""
        worktree = self._worktrees.step_of(self._run, response.task_id)
        if worktree is None:
            return response
        async with self._lock:
            try:
                return await self._close(worktree, response)
            except AgentError as error:
                if not is_success(response.status):
                    self._warn(NOT_MERGED.format(step=response.task_id, reason=error.message, branch=worktree.branch))
                    return response
                note = CONFLICT.format(reason=error.message, branch=worktree.branch)
                return replace(
                    response, status="partial", summary=f"{response.summary}\n\n{note}", shortfall=note, hint=error.hint
                )

    async def _close(self, worktree: Worktree, response: ExecutorResponse) -> ExecutorResponse:
        step_id = response.task_id
        has_changed = await asyncio.to_thread(self._worktrees.commit, worktree, self._titles.get(step_id, step_id))
        if is_success(response.status):
            await self._record(step_id, lambda: self._merge(worktree))
        elif has_changed:
            reason = f"not merged, because it ended with {response.status}"
            self._warn(NOT_MERGED.format(step=step_id, reason=reason, branch=worktree.branch))
        else:
            await asyncio.to_thread(self._worktrees.discard, worktree)
        return response

    def _merge(self, worktree: Worktree) -> str:
        self._worktrees.commit(self._run, _SO_FAR)
        self._move_ignored(worktree)
        return self._worktrees.merge(worktree)

    async def _copy_ignored(self, worktree: Worktree) -> None:
        """Copy ignored files, such as installed packages, inside the sandbox, because commands may be changing them."""
        names = await asyncio.to_thread(self._worktrees.ignored, self._run)
        if not names:
            return
        copy = ("cp", "-a", "--reflink=auto", "--", *names, worktree.path)
        with contextlib.suppress(OSError):
            await self._runner.run(CommandRequest(argv=copy, cwd=Path(self._run.path), timeout_s=_COPY_TIMEOUT_S))

    def _move_ignored(self, worktree: Worktree) -> None:
        """Move ignored files into the run's worktree; only top-level names, which cannot lead elsewhere."""
        for name in self._worktrees.ignored(worktree):
            old, new = Path(self._run.path, name), Path(worktree.path, name)
            with contextlib.suppress(OSError):
                if old.is_dir() and not old.is_symlink():
                    shutil.rmtree(old)
                new.replace(old)


async def _change_in_thread(step_id: str, change: Callable[[], str]) -> str:
    return await asyncio.to_thread(change)
