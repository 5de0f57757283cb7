"""Checkpoints of a run: changes by commands in the workspace become events and can be undone.

The workspace is saved while the model answers the first request. From then on, only changed folders are scanned before
and after each command; the scan after a command runs while the model reads the result. Files that commands
left for other tools to run are searched for at the end.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from agent.protocol.channel import Channel
from agent.protocol.events import FilesChanged, WarningRaised
from agent.sessions.checkpoints.command_window import CommandWindow, Workspace, attribute, earliest_change_ns
from agent.vocabulary.errors import AgentError
from agent.vocabulary.outcome import RunnableFile
from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange
from tooling.contract.secrets import Secrets

if TYPE_CHECKING:
    from agent.sessions.checkpoints.code_files import CodeFiles
    from agent.sessions.checkpoints.keeper import CheckpointKeeper, Found, KeptCheckpoint

T = TypeVar("T")
# The first request to the model is sent before anything is saved.
START_DELAY_S = 0.05
NOT_ALL_SEARCHED = "{folder} is too large to search all of it for files that other tools run"
# Replaces the call id where a step's worktree was merged.
MERGE = "merge"
CANNOT_BE_UNDONE = "what commands change in {folder} cannot be undone: {reason}"


class CallWatch:
    """Watches one call; this class is for calls that change no files."""

    async def open(self) -> None:
        """Wait until the call may run."""

    def close(self, changes: Sequence[FileChange]) -> None:
        """Report the end of the call, with the changes that it recorded itself."""


class CommandWatch(CallWatch):
    """Watches a command, which may change anything."""

    def __init__(self, checkpoints: "Checkpoints", window: CommandWindow) -> None:
        self._checkpoints = checkpoints
        self._window = window
        self._is_open = False

    async def open(self) -> None:
        """Wait until everything that the command may change is saved."""
        self._is_open = True
        await self._checkpoints.begin_command(self._window)

    def close(self, changes: Sequence[FileChange]) -> None:
        """Scan for changes in the background."""
        if self._is_open:
            self._checkpoints.end_command(self._window)


class WriteWatch(CallWatch):
    """Watches a file tool, which records its own changes."""

    def __init__(self, checkpoints: "Checkpoints") -> None:
        self._checkpoints = checkpoints
        self._is_open = False

    async def open(self) -> None:
        """Wait until no scan is running."""
        await self._checkpoints.begin_write()
        self._is_open = True

    def close(self, changes: Sequence[FileChange]) -> None:
        """Apply the recorded changes."""
        if self._is_open:
            self._checkpoints.end_write(changes)


class OutsideWatch(CallWatch):
    """Watches a file tool of a step that works outside of the workspace, in its own worktree."""

    def __init__(self, noted: dict[str, str | None]) -> None:
        self._noted = noted

    def close(self, changes: Sequence[FileChange]) -> None:
        """Store the recorded changes: the merge brings them into the workspace later."""
        self._noted.update({change.path: change.after for change in changes})


class Checkpoints:
    """Watches the calls of a run; its failures never fail a call."""

    def __init__(
        self, workspace: Workspace, *, channel: Channel, secrets: Secrets, kept: "KeptCheckpoint | None" = None
    ) -> None:
        self._kept = kept
        self._workspace = workspace
        self._channel = channel
        self._secrets = secrets
        self._lock = asyncio.Lock()
        self._is_needed = asyncio.Event()
        self._keeper: CheckpointKeeper | None = None
        self._building: asyncio.Task[None] | None = None
        self._looks: set[asyncio.Task[None]] = set()
        self._windows: list[CommandWindow] = []
        self._ended_steps: set[str] = set()
        self._problem = ""
        self._told: set[str] = set()
        self._noted: dict[str, dict[str, str | None]] = {}
        self._is_closing = False
        self._code_files: CodeFiles | None = None
        self._all_windows: list[CommandWindow] = []
        self._recorded: dict[str, str | None] = {}
        # Files that commands left for other tools to run; set by `close`.
        self.will_run: tuple[RunnableFile, ...] = ()

    @property
    def has_followed_commands(self) -> bool:
        """Return whether anything ran that may have changed files."""
        return bool(self._all_windows)

    def start(self) -> None:
        """Save the workspace in the background."""
        if self._building is None:
            self._building = asyncio.ensure_future(self._build())

    def watch(self, call_id: str, effect: str | None, arguments: Mapping[str, object], ctx: ExecCtx) -> "CallWatch":
        """Return the watch of a call: a command or server may change anything, a file tool records its changes."""
        folder, roots = ctx.working_dir, self._workspace.roots
        # Nearly always one of them, and comparing paths is much faster.
        if folder not in roots and not any(folder.is_relative_to(root) for root in roots):
            noted = self._noted.setdefault(ctx.step_id, {})
            return OutsideWatch(noted) if effect == "write" else CallWatch()
        if effect in ("execute", "external"):
            is_background = arguments.get("background") is True
            window = CommandWindow(
                step_id=ctx.step_id, attempt=ctx.attempt, command_id=call_id, is_background=is_background
            )
            return CommandWatch(self, window)
        return WriteWatch(self) if effect == "write" else CallWatch()

    async def begin_command(self, window: CommandWindow) -> None:
        """Wait until everything that a command may change is saved."""
        await self._built()
        window.started_ns = earliest_change_ns()
        self._all_windows.append(window)
        if not self._lock.locked() and (self._keeper is None or self._keeper.is_unchanged()):
            self._open_window(window)
            return
        # A scan continues when its caller is cancelled; no other scan may start before it ends.
        await asyncio.shield(self._start(self._begin(window)))

    def end_command(self, window: CommandWindow) -> None:
        """Scan for the changes of a finished command, in the background."""
        window.ended_ns = None if window.is_background else time.time_ns()
        self._start(self._end(window))

    async def begin_write(self) -> None:
        """Keep scans from running while a file tool writes; `end_write` must follow."""
        await self._built()
        await self._lock.acquire()

    def end_write(self, changes: Sequence[FileChange]) -> None:
        """Apply the changes that a file tool recorded itself."""
        recorded = {change.path: change.after for change in changes}
        self._recorded |= recorded
        self._start(self._absorb(recorded))

    async def record_as(self, step_id: str, change: Callable[[], T]) -> T:
        """Change the workspace in a thread; the changes are attributed to the step."""
        await self._built()
        async with self._lock:
            await self._look(None)
            try:
                return await asyncio.to_thread(change)
            finally:
                window = CommandWindow(step_id=step_id, attempt=1, command_id=MERGE)
                others, self._windows = self._windows, [window]
                await self._look(window, self._noted.pop(step_id, {}))
                self._windows = others

    async def settle(self, step_id: str) -> None:
        """Wait until all changes by the commands of an ending step are recorded."""
        while self._looks:
            await asyncio.wait(self._looks)
        if any(window.step_id == step_id for window in self._windows):
            await asyncio.shield(self._start(self._look_again()))
        self._ended_steps.add(step_id)

    def settle_at_once(self, step_id: str) -> bool:
        """Return whether all changes by the commands of an ending step are recorded already; else call `settle`."""
        if self._looks or any(window.step_id == step_id for window in self._windows):
            return False
        self._ended_steps.add(step_id)
        return True

    async def close(self, is_declared: Callable[[str], bool] = lambda path: False) -> None:
        """Finish running scans, and delete saved contents that did not change.

        `is_declared` returns whether the plan declared that a path would be written.
        """
        self._is_closing = True
        self._is_needed.set()
        if self._building:
            await asyncio.wait({self._building})
        while self._looks:
            await asyncio.wait(self._looks)
        keeper, self._keeper = self._keeper, None
        if keeper:
            await asyncio.to_thread(self._release, keeper)
        if self._all_windows and self._code_files:
            self.will_run = await asyncio.to_thread(
                self._code_files.find_changed, self._was_command_running, self._recorded, is_declared
            )
            if not self._code_files.is_complete:
                self._channel.emit(WarningRaised(message=NOT_ALL_SEARCHED.format(folder=self._workspace.cwd)))

    def _was_command_running(self, moment_ns: int) -> bool:
        return any(window.covers(moment_ns) for window in self._all_windows)

    def _release(self, keeper: "CheckpointKeeper") -> None:
        if self._kept:
            with contextlib.suppress(OSError):
                self._kept.keep(keeper, self._workspace)
                return
        keeper.close()

    async def _built(self) -> None:
        self.start()
        assert self._building is not None
        self._is_needed.set()
        await asyncio.shield(self._building)

    async def _build(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_needed.wait(), START_DELAY_S)
        async with self._lock:
            await self._remember_code_files()
            if self._workspace.folder is None:
                return
            from agent.sessions.checkpoints.keeper import CheckpointKeeper
            from agent.sessions.checkpoints.tree import Stopped, TooLarge

            try:
                if self._kept:
                    self._keeper = await asyncio.to_thread(self._kept.take, self._workspace)
                self._keeper = self._keeper or await asyncio.to_thread(
                    CheckpointKeeper.create, self._workspace, self._secrets, is_stopped=lambda: self._is_closing
                )
            except TooLarge as error:
                self._problem = f"the folder {error}"
            except OSError as error:
                self._problem = f"it cannot be saved ({error.strerror or error})"
            except Stopped:
                pass

    async def _remember_code_files(self) -> None:
        from agent.sessions.checkpoints.code_files import CodeFiles

        workspace = self._workspace
        self._code_files = CodeFiles(workspace.roots, workspace.cwd, workspace.hidden)
        await asyncio.to_thread(self._code_files.remember, lambda: self._is_closing)

    def _start(self, looking: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(looking)
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)
        return task

    async def _begin(self, window: CommandWindow) -> None:
        async with self._lock:
            await self._look(window)
            self._open_window(window)

    def _open_window(self, window: CommandWindow) -> None:
        if self._keeper:
            window.started_ns = earliest_change_ns()
            self._windows.append(window)
        else:
            self._tell_problem(window)

    async def _end(self, window: CommandWindow) -> None:
        async with self._lock:
            await self._look(window)
            if not window.is_background and window in self._windows:
                self._windows.remove(window)

    async def _look_again(self) -> None:
        async with self._lock:
            await self._look(None)

    async def _absorb(self, recorded: Mapping[str, str | None]) -> None:
        try:
            await self._look(None, recorded)
        finally:
            self._lock.release()

    async def _look(self, looking: CommandWindow | None, recorded: Mapping[str, str | None] | None = None) -> None:
        """Report the changes since the last scan, except those that a file tool has `recorded`; needs the lock."""
        if self._keeper is None:
            return
        from agent.sessions.checkpoints.tree import TooLarge

        try:
            # Usually nothing has changed, and checking that is faster than starting a thread.
            found = [] if self._keeper.is_unchanged() else await asyncio.to_thread(self._keeper.look)
            own = [one for one in found if one.path in recorded] if recorded else []
            if recorded and own:
                hashes = await asyncio.to_thread(self._keeper.save_after, own)
                own = [one for one in own if hashes[one.path] == recorded[one.path]]
            await self._report([one for one in found if one not in own], looking)
            self._keeper.commit(own)
        except (TooLarge, OSError, AgentError) as error:
            await self._give_up(error, looking)

    async def _report(self, found: "Sequence[Found]", looking: CommandWindow | None) -> None:
        """Publish changes with the commands that may have made them; changes outside of commands are only stored."""
        keeper = self._keeper
        assert keeper is not None
        for owner, overlaps, command_id, changed in self._by_owner(found, looking):
            recorded = await asyncio.to_thread(keeper.record, changed)
            if not recorded.is_empty:
                event = FilesChanged(
                    changes=recorded.changes,
                    command_id=command_id,
                    overlaps=overlaps or None,
                    skipped=recorded.skipped or None,
                )
                await self._channel.publish(event, step_id=owner.step_id, attempt=owner.attempt)
        # Only now: after a kill, changes missing in the index are looked up in the log.
        keeper.commit(found)

    def _by_owner(
        self, found: "Iterable[Found]", looking: CommandWindow | None
    ) -> "list[tuple[CommandWindow, tuple[str, ...], str, list[Found]]]":
        """Group changes by the step that reports them and the other steps that may have made them."""
        groups: dict[tuple[str, tuple[str, ...]], tuple[CommandWindow, str, list[Found]]] = {}
        for one in found:
            candidates = attribute(one.changed_ns, self._windows)
            running = [window for window in candidates if window.step_id not in self._ended_steps]
            owner = looking if looking in candidates else running[0] if running else looking
            if not candidates or owner is None:
                continue
            command_id = owner.command_id if owner in candidates else candidates[0].command_id
            others = tuple(sorted({window.step_id for window in candidates} - {owner.step_id}))
            groups.setdefault((command_id, others), (owner, command_id, []))[2].append(one)
        return [(owner, others, command_id, changed) for (_, others), (owner, command_id, changed) in groups.items()]

    async def _give_up(self, error: Exception, looking: CommandWindow | None = None) -> None:
        """Stop watching the workspace: later changes by commands cannot be undone."""
        from agent.sessions.checkpoints.tree import TooLarge

        reason = f"the folder {error}" if isinstance(error, TooLarge) else f"it cannot be saved ({error})"
        self._problem = reason
        keeper, self._keeper = self._keeper, None
        self._windows.clear()
        if keeper:
            await asyncio.to_thread(keeper.close)
        if looking:
            self._tell_problem(looking)

    def _tell_problem(self, window: CommandWindow) -> None:
        """Report that the changes of a command cannot be undone: once to the user, in the log for each step."""
        if not self._problem:
            return
        message = CANNOT_BE_UNDONE.format(folder=self._workspace.cwd, reason=self._problem)
        if not self._told:
            self._channel.emit(WarningRaised(message=message))
        if window.step_id not in self._told:
            self._told.add(window.step_id)
            event = FilesChanged(changes=(), command_id=window.command_id, skipped=(message,))
            self._channel.emit(event, step_id=window.step_id, attempt=window.attempt)
