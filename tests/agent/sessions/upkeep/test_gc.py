"""A session is removed whole, its run ended first, and nothing else is touched."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sessions.store import SessionBusy, SessionLock, SessionStore
from agent.sessions.upkeep.gc import delete_orphan, find_expired, find_orphans, remove, remove_if_unused
from agent.vocabulary.errors import InputError
from tests.agent.sessions.past_runs import completed_run, write_run
from tests.house.source_tree import ROOT

HOLD = """
import signal, sys
from pathlib import Path
from agent.sessions.store import SessionLock, SessionStore
{how}
lock = SessionLock(SessionStore(Path(sys.argv[1])).open("s"))
print("held", flush=True)
signal.pause()
"""
HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def held(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the session `s`; by default it ends when it is asked to."""
    code = HOLD.format(how=getattr(request, "param", ""))
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, cwd=ROOT) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        yield other
        other.kill()


def test_a_session_goes_with_all_it_holds(tmp_path: Path) -> None:
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


def test_a_run_in_it_is_ended_first(tmp_path: Path, held: subprocess.Popen[bytes]) -> None:
    store = SessionStore(tmp_path)
    remove(store, store.folder_for("s"))
    assert held.wait(5) == -signal.SIGTERM
    assert store.ids() == []


@pytest.mark.parametrize("held", ["signal.signal(signal.SIGTERM, signal.SIG_IGN)"], indirect=True)
def test_a_run_that_does_not_end_keeps_its_session(tmp_path: Path, held: subprocess.Popen[bytes]) -> None:
    store = SessionStore(tmp_path)
    with pytest.raises(SessionBusy, match=f"process {held.pid} .*did not end"):
        remove(store, store.folder_for("s"), patience_s=0.2)
    assert store.ids() == ["s"]


def test_a_process_that_only_has_the_number_of_a_holder_is_left_alone(tmp_path: Path) -> None:
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run())
    with subprocess.Popen(["sleep", "60"]) as bystander:
        lock = SessionLock(folder)
        folder.lock.write_text(f"{bystander.pid}\n")
        with pytest.raises(SessionBusy):
            remove(store, folder, patience_s=0.1)
        lock.release()
        assert bystander.poll() is None
        bystander.kill()


def test_a_link_in_the_place_of_a_session_is_not_followed(tmp_path: Path) -> None:
    real = write_run(_make_dir(tmp_path / "elsewhere"), "s", completed_run())
    store = SessionStore(tmp_path)
    store.root.mkdir()
    (store.root / "s").symlink_to(real.root)
    with pytest.raises(InputError, match="is a link"):
        remove(store, store.folder_for("s"))
    assert real.events.exists()


def test_old_sessions_go_and_the_newest_stay(tmp_path: Path) -> None:
    store, now = SessionStore(tmp_path), time.time()
    for days, name in enumerate(("today", "one", "two", "three")):
        write_run(tmp_path, name, completed_run(), mtime=now - days * DAY)

    def ids(older_than_s: float | None, keep_newest: int = 0) -> list[str]:
        return [old.folder.id for old in find_expired(store, older_than_s=older_than_s, keep=keep_newest)]

    assert ids(1.5 * DAY) == ["three", "two"]
    assert ids(None, 1) == ["three", "two", "one"]
    assert ids(1.5 * DAY, 3) == ["three"]
    assert ids(30 * DAY) == []
    for old in find_expired(store, older_than_s=1.5 * DAY, keep=0):
        assert old.size_bytes > 100
        assert remove_if_unused(store, old)
    assert store.ids() == ["one", "today"]


def test_a_session_that_runs_is_never_old(tmp_path: Path) -> None:
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run(), mtime=1.0)
    lock = SessionLock(folder)
    assert find_expired(store, older_than_s=DAY, keep=0) == []
    lock.release()
    (old,) = find_expired(store, older_than_s=DAY, keep=0)
    lock = SessionLock(folder)
    assert not remove_if_unused(store, old)
    lock.release()


def test_a_session_that_was_used_since_it_was_listed_stays(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    write_run(tmp_path, "s", completed_run(), mtime=1.0)
    (old,) = find_expired(store, older_than_s=DAY, keep=0)
    write_run(tmp_path, "s", completed_run(), run="run-20250101130000-bbbbbb")
    assert not remove_if_unused(store, old)
    assert store.ids() == ["s"]


def test_what_crashes_left_behind_is_swept_out_once_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(_make_dir(tmp_path / "tmp")))
    store, folder = SessionStore(tmp_path), write_run(tmp_path, "s", completed_run())
    left = [
        _make_dir(store.root / ".copy-s.1"),
        _make_dir(store.root / ".removed-s.1"),
        _make_dir(folder.root / "SESSION.1.tmp"),
        _make_dir(folder.steps / ".k.json.1.tmp"),
    ]
    assert find_orphans(store) == []
    for path in (*left, folder.events):
        os.utime(path, (1, 1))
    # A temporary directory that no process has locked is an orphan at once.
    left.append(_make_dir(tmp_path / "tmp" / "windlass-tmp-abcdefgh"))
    assert sorted(find_orphans(store)) == sorted(left)
    for path in find_orphans(store):
        delete_orphan(path)
    assert find_orphans(store) == []
    assert folder.events.exists()


def _make_dir(path: Path) -> Path:
    path.mkdir(parents=True)
    return path
