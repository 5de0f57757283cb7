"""The event log survives crashes, full disks and concurrent writers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import WarningRaised
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from tests.house.source_tree import ROOT


def line(seq: int, message: str = "x") -> bytes:
    event = WarningRaised(message=message)
    return to_line(Envelope(seq=seq, ts="t", session_id="s", run_id="r", event=event))


def test_only_an_incomplete_last_line_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(1) + line(2)[:20])
    log = FileLog(path)
    log.append(line(3))
    log.close()
    assert [envelope.seq for envelope in read_events(path)] == [1, 3]
    assert last_seq(path) == 3


def test_the_last_sequence_number_is_found_after_long_and_incomplete_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(1) + line(2, "y" * 200_000) + b'{"torn')
    assert last_seq(path) == 2


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert list(read_events(tmp_path / "none")) == []
    assert last_seq(tmp_path / "none") == 0


def test_only_the_owner_can_read_a_log(tmp_path: Path) -> None:
    FileLog(tmp_path / "events.jsonl").close()
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_name_of_a_new_log_is_synced_after_its_first_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    synced: list[bytes] = []

    def sync(folder: Path) -> None:
        assert folder == tmp_path
        synced.append(path.read_bytes())

    monkeypatch.setattr("agent.sessions.log.event_log.fsync_dir", sync)
    log = FileLog(path)
    log.append(line(1))
    log.append(line(2))
    log.close()
    FileLog(path).close()
    assert synced == [line(1)]


def test_a_log_whose_name_cannot_be_synced_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"

    def fail(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("agent.sessions.log.event_log.fsync_dir", fail)
    log = FileLog(path)
    with pytest.raises(OSError, match="Input/output"):
        log.append(line(1))
    assert path.read_bytes() == b""
    monkeypatch.undo()
    log.append(line(2))
    log.close()
    assert path.read_bytes() == line(2)


def test_a_failed_write_leaves_the_file_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    log = FileLog(path)
    log.append(line(1))

    def no_space(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        log.append(line(2))
    monkeypatch.undo()
    log.close()
    assert path.read_bytes() == line(1)


def test_a_partial_line_is_truncated_but_one_without_its_line_feed_is_completed(tmp_path: Path) -> None:
    partial, complete = tmp_path / "partial.jsonl", tmp_path / "complete.jsonl"
    partial.write_bytes(line(1) + line(2, "y" * 200_000)[:-30])
    complete.write_bytes(line(1) + line(2)[:-1])
    for path in (partial, complete):
        log = FileLog(path)
        log.append(line(3))
        log.close()
    assert partial.read_bytes() == line(1) + line(3)
    assert complete.read_bytes() == line(1) + line(2) + line(3)


def test_a_log_with_only_a_partial_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"v": 1, "ty')
    FileLog(path).close()
    assert path.read_bytes() == b""


APPENDS = """
import sys
from pathlib import Path
from agent.sessions.log.event_log import FileLog
from tests.agent.sessions.log.test_event_log import line
log = FileLog(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(1, 21):
    log.append(line(number, sys.argv[2]) + line(number + 100, sys.argv[2] * 3000))
"""


@pytest.mark.slow
def test_eight_concurrent_writers_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(1) + b'{"torn')
    pipe = subprocess.PIPE
    writers = [
        subprocess.Popen([sys.executable, "-c", APPENDS, path, name], stdin=pipe, stdout=pipe, cwd=ROOT, text=True)
        for name in "abcdefgh"
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("go\n", timeout=60)
    assert [writer.returncode for writer in writers] == [0] * 8
    events = [json.loads(raw) for raw in path.read_bytes().splitlines()]
    assert len(events) == 1 + 8 * 40
    for name in "abcdefgh":
        own = [event["seq"] for event in events if event["message"][0] == name]
        assert own == [seq for number in range(1, 21) for seq in (number, number + 100)]


def test_a_failed_write_does_not_truncate_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    ours, theirs = FileLog(path), FileLog(path)
    ours.append(line(1))
    theirs.append(line(2))
    real, sizes = os.write, iter([10])

    def fills_up(fd: int, data: bytes) -> int:
        if (room := next(sizes, 0)) == 0:
            raise OSError(28, "No space left on device")
        return real(fd, bytes(data)[:room])

    monkeypatch.setattr(os, "write", fills_up)
    with pytest.raises(OSError, match="No space"):
        ours.append(line(3))
    monkeypatch.undo()
    theirs.append(line(4))
    assert path.read_bytes() == line(1) + line(2) + line(4)
    ours.close()
    theirs.close()


def test_the_highest_sequence_number_of_concurrent_writers_counts(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(7) + line(3))
    assert last_seq(path) == 7
