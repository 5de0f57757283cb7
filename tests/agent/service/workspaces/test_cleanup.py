"""The clean-up of workspaces: off unless wanted, never of one that runs, archives instead of losses."""

import os
import time
from pathlib import Path

import pytest

from agent.service.workspaces.archive import unpack
from agent.service.workspaces.cleanup import CleanupPolicy, WorkspaceCleaner
from agent.service.workspaces.layout import Workspace, WorkspaceLock, WorkspaceStore
from agent.service.workspaces.storage import FolderArchives
from agent.sessions.store import SessionStore
from agent.vocabulary.errors import InputError, SessionBusy

DAY_S = 86_400
ON = CleanupPolicy(is_enabled=True)


class Place:
    def __init__(self, root: Path) -> None:
        self.store = WorkspaceStore(root)
        self.archives = FolderArchives(self.store.archives)
        self.cleaner = WorkspaceCleaner(self.store, self.archives)

    def make(self, session: str, mode: str = "ephemeral", days_old: float = 0) -> Workspace:
        workspace = self.store.open("anna", session, mode)  # type: ignore[arg-type]
        (workspace.path / "output" / "report").write_text(session)
        SessionStore(workspace.data).open(session).events.write_text("{}\n")
        then = time.time() - days_old * DAY_S
        os.utime(workspace.record, (then, then))
        return workspace

    def sessions(self) -> list[str]:
        return [one.session_id for one in self.store.all()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "root")


async def test_by_default_nothing_is_cleaned_up(place: Place) -> None:
    place.make("old", days_old=100)
    assert await place.cleaner.plan(CleanupPolicy()) == []
    assert await place.cleaner.run(CleanupPolicy()) == []
    assert place.sessions() == ["old"]


async def test_old_ephemeral_ones_are_removed_and_old_persistent_ones_archived(place: Place) -> None:
    place.make("gone", days_old=2)
    place.make("kept", "persistent", days_old=2)
    place.make("new")
    planned = await place.cleaner.plan(ON)
    assert [(step.action, Path(step.target).name) for step in planned] == [
        ("remove", "session_gone"),
        ("archive", "session_kept"),
    ]
    assert place.sessions() == ["gone", "kept", "new"]
    assert await place.cleaner.run(ON) == planned
    assert place.sessions() == ["new"]
    (archive,) = await place.archives.list()
    assert archive.key == "user_anna/session_kept.tar.gz"


async def test_an_archive_has_the_files_and_the_log_but_no_locks(place: Place, tmp_path: Path) -> None:
    workspace = place.make("s1", "persistent")
    archive = await place.cleaner.archive(workspace)
    info = unpack(Path(archive.location), tmp_path / "out")
    assert (info["user_id"], info["session_id"], info["container_mode"]) == ("anna", "s1", "persistent")
    assert (tmp_path / "out" / "workspace" / "output" / "report").read_text() == "s1"
    assert (tmp_path / "out" / "session" / "events.jsonl").exists()
    assert not (tmp_path / "out" / "session" / "lock").exists()


async def test_without_archives_persistent_ones_stay(place: Place) -> None:
    place.make("kept", "persistent", days_old=2)
    assert await place.cleaner.run(CleanupPolicy(is_enabled=True, archives=False)) == []
    assert place.sessions() == ["kept"]


async def test_one_that_runs_is_never_touched(place: Place) -> None:
    workspace = place.make("busy", "persistent", days_old=2)
    lock = WorkspaceLock(workspace)
    assert await place.cleaner.run(ON) == []
    for action in (place.cleaner.archive(workspace), place.cleaner.remove(workspace, is_forced=True)):
        with pytest.raises(SessionBusy):
            await action
    lock.release()
    assert place.sessions() == ["busy"]
    assert await place.archives.list() == []


async def test_archives_expire_after_days(place: Place) -> None:
    workspace = place.make("s1", "persistent")
    archive = await place.cleaner.archive(workspace)
    then = time.time() - 8 * DAY_S
    os.utime(archive.location, (then, then))
    await place.cleaner.run(ON)
    assert await place.archives.list() == []


async def test_a_persistent_one_is_removed_only_by_force(place: Place) -> None:
    workspace = place.make("s1", "persistent")
    with pytest.raises(InputError, match="persistent"):
        await place.cleaner.remove(workspace)
    await place.cleaner.remove(workspace, is_forced=True)
    assert place.sessions() == []


async def test_what_a_killed_clean_up_left_is_removed_by_the_next_one(place: Place) -> None:
    workspace = place.make("s1")
    workspace.path.rename(workspace.path.with_name(".removed-session_s1.abcd"))
    assert [step.action for step in await place.cleaner.run(CleanupPolicy())] == ["delete"]
    assert not list(workspace.path.parent.glob(".removed-*"))


async def test_a_workspace_that_cannot_be_archived_is_not_removed(place: Place) -> None:
    place.make("s1", "persistent", days_old=2)
    place.store.archives.parent.mkdir(exist_ok=True)
    place.store.archives.write_text("a file in its place")
    (step,) = await WorkspaceCleaner(place.store, place.archives).run(
        CleanupPolicy(is_enabled=True, archive_days=10_000)
    )
    assert step.problem
    assert place.sessions() == ["s1"]
