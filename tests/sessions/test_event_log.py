"""The log that is the truth."""

from pathlib import Path

import pytest

from agent.protocol.codec import to_line
from agent.protocol.events import Envelope, WarningRaised
from agent.sessions.event_log import FileLog, last_seq, read_events


def line(seq: int, message: str = "x") -> bytes:
    event = WarningRaised(message=message)
    return to_line(Envelope(seq=seq, ts="t", session_id="s", run_id="r", event=event))


def test_a_line_torn_by_a_crash_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(1) + line(2)[:20])
    log = FileLog(path)
    log.append(line(3))
    log.close()
    assert [envelope.seq for envelope in read_events(path)] == [1, 3]
    assert last_seq(path) == 3


def test_the_last_number_is_found_behind_a_torn_end_and_very_long_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(line(1) + line(2, "y" * 200_000) + b'{"torn')
    assert last_seq(path) == 2


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert list(read_events(tmp_path / "none")) == []
    assert last_seq(tmp_path / "none") == 0


def test_only_the_owner_can_read_a_log(tmp_path: Path) -> None:
    FileLog(tmp_path / "events.jsonl").close()
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

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
