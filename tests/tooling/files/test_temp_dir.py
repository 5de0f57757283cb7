"""Temporary directories: private, removed after use, and removed after a crash by whoever comes next."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tooling.files.temp_dir import TempDir, remove_stale, stale_dirs


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remove_stale.cache_clear()
    return tmp_path


def test_it_is_private_and_gone_after_use(folder: Path) -> None:
    with TempDir() as path:
        (path / "file").write_text("x")
        assert path.stat().st_mode & 0o777 == 0o700
        assert [one.stat().st_mode & 0o777 for one in folder.iterdir()] == [0o700]
    assert list(folder.iterdir()) == []


def test_one_in_use_is_not_stale() -> None:
    with TempDir():
        assert list(stale_dirs()) == []


def test_the_next_process_removes_what_a_killed_one_left(folder: Path) -> None:
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
        assert (path.exists(), [one.name for one in folder.iterdir()]) == (False, [mine.parent.name])


def test_nothing_is_removed_for_its_name_alone(folder: Path) -> None:
    theirs = folder / "windlass-tmp-of-a-user"
    (theirs / "work").mkdir(parents=True)
    with TempDir():
        pass
    assert (theirs / "work").is_dir()
