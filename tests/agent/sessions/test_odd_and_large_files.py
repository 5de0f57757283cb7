"""Files of the wrong kind, and enormous ones: nothing hangs, nothing is quadratic, memory is bounded."""

import os
import socket
from pathlib import Path

import pytest

from agent.config.rules import CommandRule, add_rule
from agent.config.user_file import MAX_FILE_BYTES, read_user_file
from agent.memory.memory_file import MAX_BYTES, MemoryFile
from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import WarningRaised
from agent.sessions.checkpoints.pack import open_pack
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.sessions.store import SessionFolder
from agent.sessions.upkeep.fsck import check_session
from agent.sessions.views import evidence
from agent.sessions.views.titles import custom_title
from agent.vocabulary.errors import ConfigError

KINDS = ("fifo", "socket", "device", "folder", "loop")


def put(kind: str, path: Path) -> None:
    """Put something that is no regular file in a place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as end:
                here = Path.cwd()
                os.chdir(path.parent)
                try:
                    end.bind(path.name)
                finally:
                    os.chdir(here)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(path.name)


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_settings_file_is_a_configuration_error(tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / "config.toml")
    with pytest.raises(ConfigError, match=r"cannot read .*config\.toml"):
        read_user_file(tmp_path / "config.toml")


@pytest.mark.parametrize("kind", KINDS)
def test_odd_locks_titles_memories_and_checkpoints_never_block(tmp_path: Path, kind: str) -> None:
    folder = SessionFolder(id="s", root=tmp_path / "s")
    put(kind, folder.title)
    assert custom_title(folder) == ""
    put(kind, folder.checkpoint / "index")
    assert open_pack(folder.checkpoint) is None
    put(kind, tmp_path / "MEMORY.md")
    with pytest.raises(OSError):
        MemoryFile(tmp_path).read()
    put(kind, tmp_path / ".rules.lock")
    with pytest.raises(OSError):
        add_rule(tmp_path / "config.toml", CommandRule(words="git push", effect="allow"))


def test_enormous_settings_and_memories_are_refused_before_they_are_read_completely(tmp_path: Path) -> None:
    for name, size in (("config.toml", MAX_FILE_BYTES), ("MEMORY.md", MAX_BYTES)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size * 100)
    with pytest.raises(ConfigError, match="larger than"):
        read_user_file(tmp_path / "config.toml")
    with pytest.raises(OSError, match="larger than"):
        MemoryFile(tmp_path).read()


def test_a_torn_last_line_of_forty_megabytes_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    envelope = Envelope(seq=1, ts="t", session_id="s", run_id="r", event=WarningRaised(message="kept"))
    path.write_bytes(to_line(envelope) + b'{"v": 1, "type": "warning", "message": "' + b"x" * 40_000_000)
    FileLog(path).close()
    assert (path.read_bytes(), last_seq(path)) == (to_line(envelope), 1)


def test_an_event_of_several_chunks_that_only_lacks_its_line_feed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first, second = (
        Envelope(seq=seq, ts="t", session_id="s", run_id="r", event=WarningRaised(message="x" * 300_000))
        for seq in (1, 2)
    )
    path.write_bytes(to_line(first) + to_line(second).removesuffix(b"\n"))
    FileLog(path).close()
    assert list(read_events(path)) == [first, second]


def test_negative_numbers_of_events_are_no_internal_error(tmp_path: Path) -> None:
    folder = SessionFolder(id="s", root=tmp_path)
    envelope = Envelope(seq=-5, ts="t", session_id="s", run_id="r", event=WarningRaised(message="x"))
    folder.events.write_bytes(to_line(envelope))
    check_session(folder)
    FileLog(folder.events).close()


def test_of_an_enormous_output_the_beginning_the_end_and_the_file_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MAX_OUTPUT_BYTES", 100)
    path = tmp_path / "output.txt"
    path.write_bytes(b"first\n" + b"." * 1000 + b"\nlast")
    with path.open("rb") as file:
        shown = evidence.read_bounded(file, path)
    assert shown.startswith(b"first\n") and shown.endswith(b"\nlast")
    assert f"911 bytes not shown; full output: {path}".encode() in shown
