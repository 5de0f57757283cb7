"""MEMORY.md on disk: private, atomically replaced, safe with many writers and manual edits."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent.memory.memory_file import MAX_BACKUPS, MEMORY_FILE, MemoryFile
from tests.house.source_tree import ROOT

APPEND = """
import sys
from pathlib import Path
from agent.memory.memory_file import MemoryFile
memory = MemoryFile(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    memory.append(f"writer {sys.argv[2]} says {number}", tag="CONFIG")
    print(number, flush=True)
"""


def writer(folder: Path, name: str, count: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", APPEND, folder, name, str(count)], stdout=subprocess.PIPE, cwd=ROOT)


@pytest.fixture
def memory(tmp_path: Path) -> MemoryFile:
    return MemoryFile(tmp_path)


def test_the_file_is_created_private_with_the_first_entry(memory: MemoryFile, tmp_path: Path) -> None:
    assert (memory.read(), memory.size()) == ("", 0)
    line = memory.append("uses tabs", tag="PREF")
    path = tmp_path / MEMORY_FILE
    assert path.name == "MEMORY.md"
    assert path.read_text() == f"{line}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_duplicate_is_not_remembered_twice(memory: MemoryFile) -> None:
    assert memory.append("Uses tabs.", tag="PREF") is not None
    assert memory.append("uses  TABS", tag="PREF") is None
    assert memory.append("uses tabs", tag="CONFIG") is not None
    assert memory.append("uses tabs") is not None
    assert memory.append("uses tabs!") is None
    assert len(memory.read().splitlines()) == 3


def test_the_users_lines_are_preserved_byte_for_byte(memory: MemoryFile) -> None:
    mine = b"# Mine\r\n\r\n* not UTF-8: \xff\xfe\n\n   indented, without an end"
    memory.path.write_bytes(mine)
    line = memory.append("uses tabs", tag="PREF")
    assert memory.path.read_bytes() == mine + f"\n{line}\n".encode()


def test_a_symbolic_link_is_preserved(memory: MemoryFile, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "notes.md"
    real.parent.mkdir()
    real.write_text("mine\n")
    memory.path.symlink_to(real)
    memory.append("uses tabs")
    assert memory.path.is_symlink()
    assert real.read_text().startswith("mine\n- ")


def test_concurrent_writers_lose_nothing(memory: MemoryFile, tmp_path: Path) -> None:
    writers = [writer(tmp_path, str(number), 20) for number in range(6)]
    assert [process.communicate() and process.returncode for process in writers] == [0] * 6
    lines = memory.read().splitlines()
    assert sorted(line.partition("] ")[2] for line in lines) == sorted(
        f"writer {name} says {number}" for name in range(6) for number in range(20)
    )


@pytest.mark.slow
def test_a_killed_writer_loses_at_most_its_current_entry(memory: MemoryFile, tmp_path: Path) -> None:
    for number in range(15):
        process = writer(tmp_path, str(number), 10_000)
        assert process.stdout
        for _ in range(1 + number):
            last = process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        last = (process.communicate()[0].splitlines() or [last])[-1]
        text = memory.read()
        assert text.endswith("\n")
        assert all(line.startswith("- 2") and "] writer " in line for line in text.splitlines())
        assert f"writer {number} says {int(last)}\n" in text
    memory.append("the last")
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_a_full_disk_leaves_the_old_file_intact(memory: MemoryFile, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.append("first")
    before = memory.read()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        memory.append("second")
    assert memory.read() == before


def test_a_change_can_create_a_backup_and_only_the_newest_backups_stay(memory: MemoryFile) -> None:
    for number in range(MAX_BACKUPS + 3):
        memory.change(lambda text, number=number: f"{number}\n", has_backup=True)
    copies = [path.read_text() for path in memory.backups]
    assert copies == [f"{number}\n" for number in range(2, MAX_BACKUPS + 2)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in memory.backups} == {0o600}
    assert stat.S_IMODE(memory.backups[0].parent.stat().st_mode) == 0o700


def test_an_unchanged_text_is_not_written(memory: MemoryFile) -> None:
    memory.append("first")
    before = memory.path.stat().st_ino
    assert memory.change(lambda text: text, has_backup=True) is False
    assert (memory.path.stat().st_ino, memory.backups) == (before, [])


def test_clearing_creates_a_backup_or_deletes_all_backups(memory: MemoryFile) -> None:
    memory.append("first")
    memory.append("second")
    assert memory.clear(has_backup=True) == 2
    assert (memory.read(), len(memory.backups)) == ("", 1)
    memory.append("third")
    assert memory.clear(has_backup=False) == 1
    assert (memory.read(), memory.backups) == ("", [])
    assert memory.clear(has_backup=False) == 0
