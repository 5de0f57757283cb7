"""Changes are reported under the command that made them, and what is not certain is said."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from agent.protocol.channel import Channel
from agent.protocol.events import FilesChanged, WarningRaised
from agent.sessions.checkpoints import checkpoints as module
from agent.sessions.checkpoints import tree
from agent.sessions.checkpoints.checkpoints import CallWatch, Checkpoints
from agent.sessions.checkpoints.command_window import CommandWindow, Workspace, attribute, earliest_change_ns
from tooling.contract.context import ExecCtx
from tooling.contract.secrets import NoSecrets
from tooling.files.change_file import change_file


@dataclass
class Run:
    """A run in a folder, and what it has reported."""

    root: Path
    blobs: Path
    checkpoints: Checkpoints
    channel: Channel
    events: list[tuple[str | None, FilesChanged | WarningRaised]] = field(default_factory=list)

    def ctx(self, step: str) -> ExecCtx:
        return ExecCtx(
            user_id=UUID(int=1), task_id=UUID(int=2), working_dir=self.root, step_id=step, blobs_dir=self.blobs
        )

    async def start(self, step: str, call: str = "c1", **arguments: object) -> CallWatch:
        watch = self.checkpoints.watch(call, "execute", arguments, self.ctx(step))
        await watch.open()
        return watch

    async def finish(self, step: str) -> list[tuple[str | None, list[str], tuple[str, ...] | None]]:
        """Return what was reported so far: step, paths, and who else may have done it."""
        await self.checkpoints.settle(step)
        await asyncio.sleep(0)
        return [
            (step_id, [change.path for change in event.changes], event.overlaps)
            for step_id, event in self.events
            if isinstance(event, FilesChanged)
        ]


@asynccontextmanager
async def open_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Run]:
    monkeypatch.setattr(module, "START_DELAY_S", 0)
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a").write_text("a")
    channel = Channel(session_id="s", run_id="r", log=None)
    workspace = Workspace(cwd=root, folder=tmp_path / "checkpoint", blobs=tmp_path / "blobs", run_id="r")
    run = Run(root, workspace.blobs, Checkpoints(workspace, channel=channel, secrets=NoSecrets()), channel)
    subscription = channel.subscribe()

    async def listen() -> None:
        async for envelope in subscription:
            if isinstance(envelope.event, (FilesChanged, WarningRaised)):
                run.events.append((envelope.step_id, envelope.event))

    listening = asyncio.ensure_future(listen())
    try:
        yield run
    finally:
        await run.checkpoints.close()
        await channel.close()
        await listening
    assert not workspace.folder.exists()


async def test_what_was_edited_before_a_command_is_not_its_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_run(tmp_path, monkeypatch) as run:
        (await run.start("s1")).close(())
        await run.checkpoints.settle("another step")
        (run.root / "a").write_text("the user's")
        watch = await run.start("s1", "c2")
        (run.root / "b").write_text("the command's")
        watch.close(())
        assert await run.finish("s1") == [("s1", ["b"], None)]
        (event,) = [event for _, event in run.events if isinstance(event, FilesChanged)]
        assert event.command_id == "c2"


async def test_a_change_while_two_commands_run_names_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_run(tmp_path, monkeypatch) as run:
        first = await run.start("s1")
        second = await run.start("s2")
        (run.root / "b").write_text("by either")
        second.close(())
        assert await run.finish("s2") == [("s2", ["b"], ("s1",))]
        (run.root / "c").write_text("by the first")
        first.close(())
        assert (await run.finish("s1"))[1:] == [("s1", ["c"], None)]


async def test_a_file_tool_beside_a_command_is_not_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_run(tmp_path, monkeypatch) as run:
        command = await run.start("s1")
        tool = run.checkpoints.watch("c9", "write", {}, run.ctx("s2"))
        await tool.open()
        change = change_file("a", run.ctx("s2"), lambda _, __: b"by the tool")
        (run.root / "b").write_text("by the command")
        tool.close((change,))
        command.close(())
        assert await run.finish("s1") == [("s1", ["b"], None)]


async def test_a_background_command_is_followed_until_its_step_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_run(tmp_path, monkeypatch) as run:
        (await run.start("s1", background=True)).close(())
        (run.root / "log").write_text("later")
        assert await run.finish("s1") == [("s1", ["log"], None)]


async def test_a_cancelled_command_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_run(tmp_path, monkeypatch) as run:
        watch = run.checkpoints.watch("c1", "execute", {}, run.ctx("s1"))
        opening = asyncio.ensure_future(watch.open())
        await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait({opening})
        watch.close(())
        assert await run.finish("s1") == []
        later = await run.start("s2")
        (run.root / "b").write_text("b")
        later.close(())
        assert await run.finish("s2") == [("s2", ["b"], None)]


async def test_a_folder_that_is_too_large_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoLimits(tree.Limits):
        pass

    monkeypatch.setattr(tree, "Limits", lambda: NoLimits(max_entries=0))
    async with open_run(tmp_path, monkeypatch) as run:
        for call in ("c1", "c2"):
            (await run.start("s1", call)).close(())
        await run.finish("s1")
    message = f"what commands change in {run.root} cannot be undone: the folder has more than 0 files"
    assert run.events == [
        (None, WarningRaised(message=message)),
        ("s1", FilesChanged(changes=(), command_id="c1", skipped=(message,))),
    ]


def test_the_time_of_a_change_tells_which_command_made_it() -> None:
    one = CommandWindow(step_id="s1", attempt=1, command_id="c", started_ns=10, ended_ns=20)
    two = CommandWindow(step_id="s2", attempt=1, command_id="c", started_ns=15)
    assert attribute(12, [one, two]) == [one]
    assert attribute(17, [one, two]) == [one, two]
    assert attribute(25, [one, two]) == [two]
    # A deletion has no time; a clock that differs proves nothing.
    assert attribute(None, [one, two]) == [one, two]
    assert attribute(5, [one, two]) == [one, two]
    assert attribute(99, [one]) == [one]


def test_a_file_that_is_changed_at_once_is_not_older_than_the_window(tmp_path: Path) -> None:
    for number in range(200):
        started = earliest_change_ns()
        (tmp_path / str(number)).touch()
        assert started <= (tmp_path / str(number)).stat().st_ctime_ns <= time.time_ns()
