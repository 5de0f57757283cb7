"""Temporary directories: private, removed after use, and removed by the next process after a crash."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tooling.files.temp_dir import TempDir, remove_stale, stale_dirs


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remove_stale.cache_clear()
    return tmp_path


def test_a_temporary_directory_is_private_and_removed_after_use(folder: Path) -> None:
    with TempDir() as path:
        (path / "file").write_text("x")
        assert path.stat().st_mode & 0o777 == 0o700
        assert [entry.stat().st_mode & 0o777 for entry in folder.iterdir()] == [0o700]
    assert list(folder.iterdir()) == []


def test_a_directory_in_use_is_not_stale() -> None:
    with TempDir():
        assert list(stale_dirs()) == []


def test_the_next_process_removes_the_directory_of_a_killed_one(folder: Path) -> None:
    code = "import sys; from tooling.files.temp_dir import TempDir; print(TempDir().path, flush=True); sys.stdin.read()"
    environ = {"TMPDIR": str(folder), "PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().decode().strip())
        with TempDir():
            assert path.is_dir()
        os.kill(process.pid, signal.SIGKILL)
    remove_stale.cache_clear()
    with TempDir() as mine:
        assert (path.exists(), [entry.name for entry in folder.iterdir()]) == (False, [mine.parent.name])


def test_a_directory_without_the_marker_is_not_removed(folder: Path) -> None:
    theirs = folder / "windlass-tmp-of-a-user"
    (theirs / "work").mkdir(parents=True)
    with TempDir():
        pass
    assert (theirs / "work").is_dir()


def test_what_version_0_1_left_behind_is_removed_after_a_week(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("windlass-bait-1", "windlass-box-2", "windlass-plan-3"):
        (folder / name / "home").mkdir(parents=True)
    (folder / "windlass-box-link").symlink_to(folder / "windlass-plan-3")
    assert list(stale_dirs()) == []
    later = time.time() + 8 * 86_400
    monkeypatch.setattr("tooling.files.temp_dir.time.time", lambda: later)
    assert [path.name for path in stale_dirs()] == ["windlass-bait-1", "windlass-box-2"]


def test_a_process_without_free_descriptors_fails_instead_of_trying_forever(folder: Path) -> None:
    code = (
        "import resource, tempfile; from tooling.files.temp_dir import TempDir; tempfile.gettempdir(); "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)); TempDir()"
    )
    environ = {"TMPDIR": str(folder), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Too many open files" in done.stderr
    assert list(folder.iterdir()) == []


def test_a_directory_that_cannot_be_locked_is_an_error_and_not_tried_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("tooling.files.temp_dir.fcntl.flock", no_locks)
    with pytest.raises(OSError, match="No locks"):
        TempDir()
    assert list(folder.iterdir()) == []


def test_a_start_does_not_wait_for_thousands_of_directories_that_something_left(folder: Path) -> None:
    for number in range(300):
        (folder / f"windlass-tmp-{number}").mkdir()
    with TempDir():
        assert len(list(folder.iterdir())) == 101
    remove_stale.cache_clear()
    with TempDir():
        assert len(list(folder.iterdir())) == 1


def test_a_directory_that_is_left_empty_is_removed_without_slow_imports(folder: Path) -> None:
    code = """
import sys
from tooling.files.temp_dir import TempDir
with TempDir(sys.argv[1]) as path:
    assert path.is_dir()
print(sorted({"shutil", "tempfile", "random"} & set(sys.modules)))
"""
    argv = [sys.executable, "-c", code, str(folder)]
    ended = subprocess.run(
        argv, env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, timeout=60, check=True
    )
    assert (ended.stdout, list(folder.iterdir())) == ("[]\n", [])
