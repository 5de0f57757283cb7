"""Session folders and their locks."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from agent.sessions.lock import LockTimeout, acquire_lock, waiting_message
from agent.sessions.store import SessionLock, SessionStore, busy_message
from agent.vocabulary.errors import InputError, SessionBusy


@pytest.mark.parametrize("name", ["../x", "/etc", "", ".", "..", "a/b", "a\0b", "x" * 65, ".hidden", "a b"])
def test_a_session_id_that_is_not_a_plain_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="session id"):
        SessionStore(tmp_path).open(name)
    assert not (tmp_path / "sessions").exists()


def test_each_session_has_a_private_workspace(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    first, second = store.open("one"), store.open("two")
    assert first.workspace != second.workspace
    assert first.workspace.is_dir()
    assert first.root.stat().st_mode & 0o777 == 0o700


def test_a_busy_session_names_its_holder_and_request(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    with pytest.raises(SessionBusy) as busy:
        SessionLock(folder)
    assert busy.value.message == busy_message("one", str(os.getpid()), "")
    lock.write_holder("count\nthe lines")
    with pytest.raises(SessionBusy) as busy:
        SessionLock(folder)
    assert busy.value.message == busy_message("one", str(os.getpid()), "count the lines")
    lock.release()
    SessionLock(folder).release()


def test_waiting_for_a_busy_session_is_reported_once(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    lock.write_holder("the first request")
    messages: list[str] = []

    def report_and_release(message: str) -> None:
        messages.append(message)
        lock.release()

    acquire_lock(folder, LockTimeout(limit_s=None, on_wait=report_and_release)).release()
    assert messages == [waiting_message(busy_message("one", str(os.getpid()), "the first request"))]


def test_without_a_wait_a_busy_session_fails_silently_at_once(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    messages: list[str] = []
    with pytest.raises(SessionBusy):
        acquire_lock(folder, LockTimeout(limit_s=0, on_wait=messages.append))
    assert messages == []
    lock.release()


def test_a_lock_file_left_by_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("one")
    folder.lock.write_text(f"{os.getpid()}\nsomething long ago\n")
    SessionLock(folder).release()
    assert folder.lock.read_text() == f"{os.getpid()}\n\n"


def test_a_full_disk_does_not_prevent_locking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SessionStore(tmp_path).open("one")

    def no_space(fd: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", no_space)
    SessionLock(folder).release()


def test_a_session_removed_while_locking_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SessionStore(tmp_path).open("one")
    real = fcntl.flock

    def removed_first(fd: int, operation: int) -> None:
        shutil.rmtree(folder.root, ignore_errors=True)
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with pytest.raises(FileNotFoundError):
        SessionLock(folder)
