"""Sessions are removed completely, after their run was stopped, and nothing else is touched."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sessions.store import SessionBusy, SessionLock, SessionStore, busy_message
from agent.sessions.upkeep.gc import delete_orphan, did_not_stop, find_expired, find_orphans, remove, remove_if_unused
from agent.vocabulary.errors import InputError
from tests.agent.sessions.past_runs import completed_run, write_run
from tests.house.source_tree import ROOT

HOLD = """
import signal, sys
from pathlib import Path
from agent.sessions.store import SessionLock, SessionStore
{setup}
lock = SessionLock(SessionStore(Path(sys.argv[1])).open("s"))
print("held", flush=True)
signal.pause()
"""
HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def holder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock of session `s`; by default SIGTERM ends it."""
    code = HOLD.format(setup=getattr(request, "param", ""))
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, cwd=ROOT) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        yield other
        other.kill()


def test_a_session_is_removed_with_all_its_files(tmp_path: Path) -> None:
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("a")
    (folder.workspace / "link").symlink_to(outside)
    (folder.workspace / "closed").mkdir()
    (folder.workspace / "closed" / "b").write_text("b")
    (folder.workspace / "closed").chmod(0o500)
    remove(store, folder)
    assert list(store.root.iterdir()) == []
    assert (outside / "a").read_text() == "a"


def test_a_running_process_is_stopped_first(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    store = SessionStore(tmp_path)
    remove(store, store.folder_for("s"))
    assert holder.wait(30) == -signal.SIGTERM
    assert store.ids() == []


@pytest.mark.parametrize("holder", ["signal.signal(signal.SIGTERM, signal.SIG_IGN)"], indirect=True)
def test_a_session_whose_process_ignores_sigterm_is_kept(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    store = SessionStore(tmp_path)
    with pytest.raises(SessionBusy) as busy:
        remove(store, store.folder_for("s"), stop_timeout_s=0.2)
    assert busy.value.message == did_not_stop(busy_message("s", str(holder.pid), ""))
    assert store.ids() == ["s"]


def test_a_process_with_a_reused_id_is_not_signalled(tmp_path: Path) -> None:
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run())
    with subprocess.Popen(["sleep", "60"]) as bystander:
        lock = SessionLock(folder)
        folder.lock.write_text(f"{bystander.pid}\n")
        with pytest.raises(SessionBusy):
            remove(store, folder, stop_timeout_s=0.1)
        lock.release()
        assert bystander.poll() is None
        bystander.kill()


def test_a_symlink_instead_of_a_session_is_not_followed(tmp_path: Path) -> None:
    real = write_run(_make_dir(tmp_path / "elsewhere"), "s", completed_run())
    store = SessionStore(tmp_path)
    store.root.mkdir()
    (store.root / "s").symlink_to(real.root)
    with pytest.raises(InputError, match="is a symlink"):
        remove(store, store.folder_for("s"))
    assert real.events.exists()


def test_old_sessions_are_removed_and_the_newest_kept(tmp_path: Path) -> None:
    store, now = SessionStore(tmp_path), time.time()
    for days, name in enumerate(("today", "one", "two", "three")):
        write_run(tmp_path, name, completed_run(), mtime=now - days * DAY)

    def ids(older_than_s: float | None, keep_newest: int = 0) -> list[str]:
        return [expired.folder.id for expired in find_expired(store, older_than_s=older_than_s, keep=keep_newest)]

    assert ids(1.5 * DAY) == ["three", "two"]
    assert ids(None, 1) == ["three", "two", "one"]
    assert ids(1.5 * DAY, 3) == ["three"]
    assert ids(30 * DAY) == []
    for old in find_expired(store, older_than_s=1.5 * DAY, keep=0):
        assert old.size_bytes > 100
        assert remove_if_unused(store, old)
    assert store.ids() == ["one", "today"]


def test_a_running_session_never_expires(tmp_path: Path) -> None:
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run(), mtime=1.0)
    lock = SessionLock(folder)
    assert find_expired(store, older_than_s=DAY, keep=0) == []
    lock.release()
    (old,) = find_expired(store, older_than_s=DAY, keep=0)
    lock = SessionLock(folder)
    assert not remove_if_unused(store, old)
    lock.release()


def test_a_session_used_after_it_was_listed_is_kept(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    write_run(tmp_path, "s", completed_run(), mtime=1.0)
    (old,) = find_expired(store, older_than_s=DAY, keep=0)
    write_run(tmp_path, "s", completed_run(), run="run-20250101130000-bbbbbb")
    assert not remove_if_unused(store, old)
    assert store.ids() == ["s"]


def test_leftovers_of_crashes_are_removed_once_they_are_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(_make_dir(tmp_path / "tmp")))
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run())
    leftovers = [
        _make_dir(store.root / ".copy-s.1"),
        _make_dir(store.root / ".removed-s.1"),
        _make_dir(folder.root / "SESSION.1.tmp"),
        _make_dir(folder.steps / ".k.json.1.tmp"),
    ]
    assert find_orphans(store) == []
    for path in (*leftovers, folder.events):
        os.utime(path, (1, 1))
    # A temporary directory that no process has locked is an orphan at once.
    leftovers.append(_make_dir(tmp_path / "tmp" / "windlass-tmp-abcdefgh"))
    assert sorted(find_orphans(store)) == sorted(leftovers)
    for path in find_orphans(store):
        delete_orphan(path)
    assert find_orphans(store) == []
    assert folder.events.exists()


def _make_dir(path: Path) -> Path:
    path.mkdir(parents=True)
    return path
