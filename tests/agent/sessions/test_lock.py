"""The holder of a session lock is found without taking the lock; titles can be set and cleared."""

import os
import subprocess
import sys
from pathlib import Path

from agent.sessions.lock import has_file_open, lock_holder
from agent.sessions.store import SessionFolder, SessionLock, SessionStore
from agent.sessions.views.titles import custom_title, rename
from tests.house.source_tree import ROOT

HOLD = """
import sys
from pathlib import Path
from agent.sessions.store import SessionLock, SessionStore
lock = SessionLock(SessionStore(Path(sys.argv[1])).open("s"))
print("held", flush=True)
sys.stdin.read()
"""


def test_the_process_that_holds_the_lock_is_found_while_it_lives(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("s")
    assert lock_holder(folder) is None
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        assert lock_holder(folder) == other.pid
        assert has_file_open(other.pid, folder.lock)
        assert not has_file_open(os.getpid(), folder.lock)
        other.kill()
    assert lock_holder(folder) is None


def test_a_reused_process_id_is_not_a_holder(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("s")
    folder.lock.write_text(f"{os.getppid()}\n")
    assert lock_holder(folder) is None
    SessionLock(folder).release()


def test_a_lock_file_without_a_process_id_has_no_holder(tmp_path: Path) -> None:
    folder = SessionFolder(id="s", root=tmp_path)
    folder.lock.write_text("who?\n")
    assert lock_holder(folder) is None


def test_a_title_is_one_line_and_can_be_cleared(tmp_path: Path) -> None:
    folder = SessionStore(tmp_path).open("s")
    assert rename(folder, "  two \n words ") == "two words"
    assert (custom_title(folder), folder.title.stat().st_mode & 0o777) == ("two words", 0o600)
    assert rename(folder, " ") == ""
    assert (custom_title(folder), folder.title.exists()) == ("", False)
