"""Session folders and who may use them."""

from pathlib import Path

import pytest

from agent.sessions.store import SessionBusy, SessionLock, SessionStore
from agent.vocabulary.errors import InputError


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
    import os

    folder = SessionStore(tmp_path).open("one")
    lock = SessionLock(folder)
    with pytest.raises(SessionBusy, match=f"process {os.getpid()}"):
        SessionLock(folder)
    lock.release()
    SessionLock(folder).release()
