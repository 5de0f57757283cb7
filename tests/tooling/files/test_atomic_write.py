"""Files are replaced completely or not at all, also many at once."""

import os
from pathlib import Path

import pytest

from tooling.files.atomic_write import write_atomic, write_many


def test_many_files_are_written_together_and_one_that_cannot_be_fails_alone(tmp_path: Path) -> None:
    files = [(tmp_path / f"{number}.json", str(number).encode()) for number in range(100)]
    (tmp_path / "7.json").mkdir()
    problems = write_many(files)
    assert [number for number, problem in enumerate(problems) if problem] == [7]
    assert isinstance(problems[7], IsADirectoryError)
    assert all(path.read_bytes() == data for path, data in files if path.name != "7.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path, _ in files)


def test_every_file_is_synced_before_it_has_its_name_and_the_folder_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def note_sync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").resolve()
        done.append("sync folder" if path == tmp_path else f"sync {path.name.split('.')[1]}")
        sync(fd)

    def note_replace(source: str, target: str) -> None:
        done.append(f"name {Path(target).stem}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    names = [str(number) for number in range(40)]
    assert write_many([(tmp_path / f"{name}.json", b"x") for name in names]) == [None] * 40
    assert all(done.index(f"sync {name}") < done.index(f"name {name}") for name in names)
    assert done[-1] == "sync folder"
    assert len(done) == 81


def test_a_disk_that_fails_while_syncing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        write_atomic(path, b"new")
    problems = write_many([(path, b"new"), (tmp_path / "other", b"new")])
    assert [str(problem) for problem in problems] == ["[Errno 5] Input/output error"] * 2
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("file", b"old")]
