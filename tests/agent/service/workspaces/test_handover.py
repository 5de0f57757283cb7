"""A session handed to another machine continues there with its log, results and files."""

import json
import os
from pathlib import Path

import pytest

from agent.app import Windlass, WindlassConfig
from agent.service.workspaces.archive import ArchiveError, ArchiveLimits
from agent.service.workspaces.handover import archive_session, restore_session, session_key
from agent.service.workspaces.storage import FolderArchives
from agent.sessions.store import SessionLock, SessionStore
from agent.sessions.views.session_summary import read_session
from agent.vocabulary.errors import InputError, SessionBusy


class Machine:
    def __init__(self, root: Path) -> None:
        self.data = root
        root.mkdir(mode=0o700)
        self.sessions = SessionStore(root)

    async def run(self, prompt: str, script: Path) -> str:
        environ = {"AGENT_SANDBOX": str(self.data), "AGENT_CONFIG_DIR": str(self.data / "config"), "HOME": "/none"}
        settings = {"model": f"script:{script}", "memory": False, "backend": "host", "approval_mode": "auto-edit"}
        config = WindlassConfig(settings=settings, session_id="s1", environ=environ)
        async with Windlass(config) as windlass:
            async for _ in windlass.run(prompt):
                pass
        assert windlass.outcome
        return windlass.outcome.answer


def write_script(path: Path, *replies: dict[str, object]) -> Path:
    path.write_text("".join(f"{json.dumps(reply)}\n" for reply in replies))
    return path


@pytest.fixture
def archives(tmp_path: Path) -> FolderArchives:
    return FolderArchives(tmp_path / "archives")


async def test_a_session_continues_on_another_machine(tmp_path: Path, archives: FolderArchives) -> None:
    here, there = Machine(tmp_path / "here"), Machine(tmp_path / "there")
    call = {"tool_calls": [{"name": "write_file", "arguments": {"path": "notes.txt", "content": "kept"}}]}
    await here.run("write notes", write_script(tmp_path / "1.jsonl", call, {"text": "first answer"}))
    stored = await archive_session(here.sessions, "s1", archives)
    assert stored.key == session_key("s1")
    folder = await restore_session(there.sessions, "s1", archives)
    assert (folder.workspace / "notes.txt").read_text() == "kept"
    record = read_session(folder)
    assert [(run.user, run.final, run.cwd) for run in record.runs] == [
        ("write notes", "first answer", str(folder.workspace))
    ]
    script = write_script(tmp_path / "2.jsonl", {"text": "second answer"})
    assert await there.run("go on", script) == "second answer"
    # And back again, over the older copy.
    await archive_session(there.sessions, "s1", archives)
    with pytest.raises(InputError, match="already exists"):
        await restore_session(here.sessions, "s1", archives)
    back = await restore_session(here.sessions, "s1", archives, replaces=True)
    assert [run.final for run in read_session(back).runs] == ["first answer", "second answer"]
    assert [path.name for path in here.sessions.root.iterdir()] == ["s1"]


async def test_a_running_session_is_neither_archived_nor_replaced(tmp_path: Path, archives: FolderArchives) -> None:
    here = Machine(tmp_path / "here")
    await here.run("hello", write_script(tmp_path / "1.jsonl", {"text": "hi"}))
    await archive_session(here.sessions, "s1", archives)
    lock = SessionLock(here.sessions.find("s1"))
    with pytest.raises(SessionBusy):
        await archive_session(here.sessions, "s1", archives)
    with pytest.raises(SessionBusy):
        await restore_session(here.sessions, "s1", archives, replaces=True)
    lock.release()
    assert [path.name for path in here.sessions.root.iterdir()] == ["s1"]


async def test_a_session_that_is_too_large_is_said(tmp_path: Path, archives: FolderArchives) -> None:
    here = Machine(tmp_path / "here")
    await here.run("hello", write_script(tmp_path / "1.jsonl", {"text": "hi"}))
    with pytest.raises(ArchiveError, match="bytes for one archive"):
        await archive_session(here.sessions, "s1", archives, ArchiveLimits(max_bytes=10))
    assert await archives.list() == []


async def test_the_archive_of_another_session_is_refused(tmp_path: Path, archives: FolderArchives) -> None:
    here, there = Machine(tmp_path / "here"), Machine(tmp_path / "there")
    await here.run("hello", write_script(tmp_path / "1.jsonl", {"text": "hi"}))
    stored = await archive_session(here.sessions, "s1", archives)
    os.rename(stored.location, tmp_path / "archives" / session_key("s2"))  # noqa: PTH104
    with pytest.raises(ArchiveError, match="not that of session s2"):
        await restore_session(there.sessions, "s2", archives)
    assert there.sessions.ids() == []
