"""Session folders and who may use them."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from agent.sessions.lock import LockTimeout, acquire_lock
from agent.sessions.store import SessionLock, SessionStore
from agent.vocabulary.errors import InputError, SessionBusy


@pytest.mark.parametrize("name", ["../x", "/etc", "", ".", "..", "a/b", "a\0b", "x" * 65, ".hidden", "a b"])
def test_a_session_id_that_is_a_path_trick_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="session id"):
        SessionStore(tmp_path).open(name)
    assert not (tmp_path / "sessions").exists()


def test_two_sessions_have_two_workspaces_that_only_their_owner_can_enter(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    first, second = store.open("one"), store.open("two")
    assert first.workspace != second.workspace
    assert first.workspace.is_dir()
    assert first.root.stat().st_mode & 0o777 == 0o700


def test_a_second_run_in_a_session_is_told_who_holds_it(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    with pytest.raises(SessionBusy, match=f"process {os.getpid()} runs in it"):
        SessionLock(folder)
    lock.write_holder("count\nthe lines")
    with pytest.raises(SessionBusy, match=f"process {os.getpid()} runs 'count the lines' in it"):
        SessionLock(folder)
    lock.release()
    SessionLock(folder).release()


def test_a_busy_session_is_waited_for_and_its_holder_named_once(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    lock.write_holder("the first request")
    told: list[str] = []

    def tell(message: str) -> None:
        told.append(message)
        lock.release()

    acquire_lock(folder, LockTimeout(limit_s=None, on_wait=tell)).release()
    assert len(told) == 1 and "'the first request'" in told[0]


def test_patience_ends(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    told: list[str] = []
    with pytest.raises(SessionBusy):
        acquire_lock(folder, LockTimeout(limit_s=0, on_wait=told.append))
    assert told == []
    lock.release()


def test_what_a_dead_process_left_in_the_lock_holds_nobody_up(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    folder.lock.write_text(f"{os.getpid()}\nsomething long ago\n")
    SessionLock(folder).release()
    assert folder.lock.read_text() == f"{os.getpid()}\n\n"


def test_a_full_disk_keeps_nobody_from_holding_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SessionStore(tmp_path).open("one")

    def no_space(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", no_space)
    SessionLock(folder).release()


def test_a_session_that_was_removed_meanwhile_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SessionStore(tmp_path).open("one")
    real = fcntl.flock

    def removed_first(fd: int, operation: int) -> None:
        shutil.rmtree(folder.root, ignore_errors=True)
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with pytest.raises(FileNotFoundError):
        SessionLock(folder)
