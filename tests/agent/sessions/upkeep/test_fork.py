"""A fork is an independent copy of a session."""

import os
from pathlib import Path

import pytest

from agent.protocol.events import FilesChanged, RunStarted
from agent.sessions.changes.changes import collect_changes
from agent.sessions.log.event_log import read_events
from agent.sessions.store import SessionBusy, SessionLock, SessionStore
from agent.sessions.upkeep.fork import fork
from agent.sessions.upkeep.fsck import check_session
from agent.sessions.views.session_summary import read_session
from agent.vocabulary.errors import InputError
from tests.agent.sessions.past_runs import completed_run, run_completed, run_start, write_run
from tooling.contract.result import FileChange


def test_a_fork_has_the_same_events_under_its_own_id(tmp_path: Path) -> None:
    source = write_run(tmp_path, "one", completed_run("first", "done"))
    (source.outputs / "s1.txt").write_text("all of it")
    (source.root / "steps").mkdir()
    (source.root / "steps" / "k.json").write_text("{}")
    source.title.write_text("a name\n")
    copy = fork(SessionStore(tmp_path), source, "two")
    assert {envelope.session_id for envelope in read_events(copy.events)} == {"two"}
    assert [e.event for e in read_events(copy.events)] == [e.event for e in read_events(source.events)]
    assert (read_session(copy).id, read_session(copy).request) == ("two", "first")
    assert (copy.outputs / "s1.txt").read_text() == "all of it"
    assert (copy.root / "steps" / "k.json").read_text() == "{}"
    assert copy.title.read_text() == "a name\n"
    assert copy.root.stat().st_mode & 0o777 == 0o700
    assert copy.events.stat().st_mode & 0o777 == 0o600


def test_a_fork_and_its_original_are_independent(tmp_path: Path) -> None:
    source = write_run(tmp_path, "one", completed_run())
    copy = fork(SessionStore(tmp_path), source)
    write_run(tmp_path, copy.id, completed_run("second"), run="run-20250101130000-bbbbbb")
    assert [run.user for run in read_session(copy).runs] == ["count the lines", "second"]
    assert [run.user for run in read_session(source).runs] == ["count the lines"]


def test_a_fork_has_its_own_copy_of_the_workspace(tmp_path: Path) -> None:
    workspace = SessionStore(tmp_path).open("one").workspace
    change = FileChange(path="a.txt", status="added", after="x")
    source = write_run(tmp_path, "one", [*run_start(str(workspace)), FilesChanged(changes=(change,)), run_completed()])
    (workspace / "a.txt").write_text("a")
    (workspace / "link").symlink_to("/etc/passwd")
    os.mkfifo(workspace / "pipe")
    copy = fork(SessionStore(tmp_path), source)
    assert (copy.workspace / "a.txt").read_text() == "a"
    assert (copy.workspace / "link").is_symlink()
    assert not (copy.workspace / "pipe").exists()
    (started,) = [e.event for e in read_events(copy.events) if isinstance(e.event, RunStarted)]
    assert (started.cwd, started.workspace) == (str(copy.workspace), str(copy.workspace))
    assert [change.path for change in collect_changes(read_events(copy.events))] == [copy.workspace / "a.txt"]


def test_a_working_folder_outside_the_session_stays_the_same(tmp_path: Path) -> None:
    copy = fork(SessionStore(tmp_path), write_run(tmp_path, "one", completed_run(cwd="/project")))
    assert read_session(copy).cwd == "/project"


def test_an_incomplete_line_is_copied_unchanged(tmp_path: Path) -> None:
    source = write_run(tmp_path, "one", completed_run())
    with source.events.open("ab") as log:
        log.write(b'{"torn')
    copy = fork(SessionStore(tmp_path), source)
    assert copy.events.read_bytes().endswith(b'{"torn')
    assert len(list(read_events(copy.events))) == len(list(read_events(source.events)))


def test_a_running_session_is_not_forked(tmp_path: Path) -> None:
    source = write_run(tmp_path, "one", completed_run())
    lock = SessionLock(source)
    with pytest.raises(SessionBusy):
        fork(SessionStore(tmp_path), source)
    lock.release()
    assert [folder.id for folder in SessionStore(tmp_path).all()] == ["one"]


@pytest.mark.parametrize("name", ["one", "../x", "a/b"])
def test_an_existing_or_invalid_id_is_refused(tmp_path: Path, name: str) -> None:
    source = write_run(tmp_path, "one", completed_run())
    with pytest.raises(InputError):
        fork(SessionStore(tmp_path), source, name)
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["one"]


def test_a_failed_fork_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_run(tmp_path, "one", completed_run())

    def no_space(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(InputError, match="No space left"):
        fork(SessionStore(tmp_path), source)
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["one"]


def test_invalid_lines_are_copied_unchanged(tmp_path: Path) -> None:
    source = write_run(tmp_path, "one", completed_run("first"))
    invalid = b"[" * 100_000 + b"\n\xff\0\n[1]\n"
    source.events.write_bytes(source.events.read_bytes() + invalid)
    copy = fork(SessionStore(tmp_path), source, "two")
    assert copy.events.read_bytes().endswith(invalid)
    assert read_session(copy).request == "first"


def test_a_fork_has_nothing_to_repair(tmp_path: Path) -> None:
    source = write_run(tmp_path, "one", completed_run())
    assert check_session(fork(SessionStore(tmp_path), source)) == []
