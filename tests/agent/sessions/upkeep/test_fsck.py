"""Damage from crashes, full disks and manual edits is found, reported and repaired where possible."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, StepCompleted, WarningRaised
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.sessions.step_results import StepResultStore
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.upkeep import fsck
from agent.sessions.upkeep.fsck import check_session
from agent.sessions.views.session_summary import read_session
from agent.vocabulary.errors import SessionBusy
from agent.vocabulary.step import ExecutorResponse
from tests.agent.sessions.past_runs import completed_run, run_start, write_run
from tests.growth import assert_linear
from tooling.contract.image import Image
from tooling.files.blobs import BlobStore

KEY = "a" * 64
SHOT = Image(sha256="b" * 64, media_type="image/png", width=4, height=3, size=9, name="shot.png")


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    """A healthy session: one run, one stored result, one blob."""
    folder = write_run(tmp_path, "s", completed_run("first"), has_summary=False)
    asyncio.run(StepResultStore(folder.steps).put(KEY, ExecutorResponse(task_id="s1", status="ok", summary="done")))
    BlobStore(folder.blobs).put(b"before")
    done = StepCompleted(status="ok", summary="done", key=KEY)
    log = FileLog(folder.events)
    envelope = Envelope(
        seq=99, ts="t", session_id="s", run_id="run-20250101120000-aaaaaa", event=done, step_id="s1", attempt=1
    )
    log.append(to_line(envelope))
    log.close()
    write_run(tmp_path, "s", [])
    assert check_session(folder) == []
    return folder


def check_problems(folder: SessionFolder, *, repair: bool = True) -> list[tuple[str, str, bool]]:
    return [(problem.path, problem.what, problem.is_mended) for problem in check_session(folder, repair=repair)]


def truncate_the_last_line(folder: SessionFolder) -> None:
    folder.events.write_bytes(folder.events.read_bytes() + b'{"v": 1, "ty')


def corrupt_a_line(folder: SessionFolder) -> None:
    first, *rest = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(first + b"\x00\x00 not an event\n" + b"".join(rest))


def open_to_others(folder: SessionFolder) -> None:
    folder.events.chmod(0o644)


def leave_a_temporary_file(folder: SessionFolder) -> None:
    (folder.steps / ".x.json.abcd.tmp").write_text("{")


def damage_a_result(folder: SessionFolder) -> None:
    (folder.steps / f"{KEY}.json").write_text("{}")


def damage_the_summary(folder: SessionFolder) -> None:
    folder.summary.write_text("{ broken")


def lose_the_summary(folder: SessionFolder) -> None:
    folder.summary.unlink()


def forge_the_summary(folder: SessionFolder) -> None:
    folder.summary.write_text(folder.summary.read_text().replace("first", "something else"))


DAMAGES: dict[Callable[[SessionFolder], None], tuple[str, str]] = {
    truncate_the_last_line: ("events.jsonl:10", fsck.INVALID_LINE),
    corrupt_a_line: ("events.jsonl:2", fsck.INVALID_LINE),
    open_to_others: ("events.jsonl", fsck.accessible_to_others(0o644)),
    leave_a_temporary_file: ("steps/.x.json.abcd.tmp", fsck.LEFTOVER),
    damage_a_result: (f"steps/{KEY}.json", fsck.DAMAGED_RESULT),
    damage_the_summary: ("SESSION.json", "damaged"),
    lose_the_summary: ("SESSION.json", "missing"),
    forge_the_summary: ("SESSION.json", fsck.STALE_SUMMARY),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_reported_then_repaired(folder: SessionFolder, damage: Callable[[SessionFolder], None]) -> None:
    events = list(read_events(folder.events))
    damage(folder)
    path, what = DAMAGES[damage]
    assert (path, what, False) in check_problems(folder, repair=False)
    assert (path, what, False) in check_problems(folder, repair=False), "a check without repair changes nothing"
    assert (path, what, True) in check_problems(folder)
    missing = [(f"steps/{KEY}.json", fsck.MISSING_RESULT, False)]
    assert check_problems(folder) == (missing if damage is damage_a_result else [])
    assert list(read_events(folder.events)) == events
    assert read_session(folder).request == "first"


def test_repairs_keep_a_backup_of_what_they_remove(folder: SessionFolder) -> None:
    for damage in (corrupt_a_line, damage_a_result, damage_the_summary):
        damage(folder)
    check_session(folder)
    assert (folder.root / "events.jsonl.torn").read_bytes() == b"\x00\x00 not an event\n"
    assert (folder.steps / f"{KEY}.json.corrupt").read_text() == "{}"
    assert (folder.root / "SESSION.json.corrupt").read_text() == "{ broken"


def test_an_irreparable_problem_is_reported_every_time(folder: SessionFolder) -> None:
    (folder.steps / f"{KEY}.json").unlink()
    missing = (f"steps/{KEY}.json", fsck.MISSING_RESULT, False)
    assert check_problems(folder) == check_problems(folder) == [missing]


def test_a_damaged_blob_is_reported_and_renamed(folder: SessionFolder) -> None:
    (blob,) = folder.blobs.iterdir()
    blob.write_bytes(b"something else")
    assert check_problems(folder) == [(f"blobs/{blob.name}", fsck.DAMAGED_COPY, False)]
    assert check_problems(folder) == []


def test_a_missing_line_feed_is_added(folder: SessionFolder) -> None:
    log = folder.events.read_bytes()
    folder.events.write_bytes(log[:-1])
    assert ("events.jsonl:9", fsck.NO_LINE_END, True) in check_problems(folder)
    assert folder.events.read_bytes() == log


def test_events_of_a_later_version_are_not_a_problem(folder: SessionFolder) -> None:
    newer = {"v": 2, "type": "something.new", "seq": 200, "run_id": "r"}
    folder.events.write_bytes(folder.events.read_bytes() + json.dumps(newer).encode() + b"\n")
    before = folder.events.read_bytes()
    assert check_problems(folder) == []
    assert folder.events.read_bytes() == before


def test_a_killed_run_is_not_a_problem(tmp_path: Path, folder: SessionFolder) -> None:
    write_run(tmp_path, "s", run_start(request="second"), run="run-2", has_summary=False)
    assert check_problems(folder) == []
    assert json.loads(folder.summary.read_text())["run_count"] == 2


def test_decreasing_sequence_numbers_are_reported(folder: SessionFolder) -> None:
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join([*lines[:1], *reversed(lines[1:3]), *lines[3:]]))
    assert any("comes after event" in what for _, what, _ in check_problems(folder))


ODD_NUMBERS = ("1.5", "100.0", "true", "null", '"100"', "[100]", "{}", "1e400", "NaN", "9" * 30, "9" * 5000, "-0", "-7")


@pytest.mark.parametrize("number", ODD_NUMBERS, ids=lambda number: number[:20])
def test_an_event_with_an_odd_number_is_damage_and_never_an_internal_error(folder: SessionFolder, number: str) -> None:
    event = to_line(Envelope(seq=100, ts="t", session_id="s", run_id="run-2", event=WarningRaised(message="odd")))
    log = folder.events.read_bytes()
    folder.events.write_bytes(log + event.replace(b'"seq": 100', f'"seq": {number}'.encode()))
    assert ("events.jsonl:10", fsck.INVALID_LINE, False) in check_problems(folder, repair=False)
    assert read_session(folder).request == "first"
    assert last_seq(folder.events) == 99
    assert ("events.jsonl:10", fsck.INVALID_LINE, True) in check_problems(folder)
    assert (check_problems(folder), folder.events.read_bytes()) == ([], log)


def test_an_event_without_a_run_or_with_an_odd_one_is_damage(folder: SessionFolder) -> None:
    log = folder.events.read_bytes()
    event = to_line(Envelope(seq=100, ts="t", session_id="s", run_id="run-2", event=WarningRaised(message="odd")))
    for field in (b"", b'"run_id": 7, ', b'"run_id": null, '):
        folder.events.write_bytes(log + event.replace(b'"run_id": "run-2", ', field))
        assert ("events.jsonl:10", fsck.INVALID_LINE, True) in check_problems(folder)


def test_a_log_full_of_odd_events_is_repaired_in_linear_time(tmp_path: Path) -> None:
    odd = b'{"v": 1, "type": "warning", "ts": "t", "seq": 1.5, "session_id": "s", "run_id": "r", "message": "x"}\n'
    folder = SessionFolder(id="s", root=tmp_path)

    def repair(size: int) -> None:
        folder.events.write_bytes(odd * size)
        assert len(check_problems(folder)) >= size

    assert_linear(repair, 24_000)


def test_an_event_that_is_there_twice_is_reported(folder: SessionFolder) -> None:
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join([*lines, lines[-1]]))
    assert any("event 99" in what and "comes after event 99" in what for _, what, _ in check_problems(folder))


def test_a_session_without_a_log_keeps_its_summary(folder: SessionFolder) -> None:
    summary = folder.summary.read_bytes()
    folder.events.unlink()
    assert ("events.jsonl", fsck.NO_LOG, False) in check_problems(folder)
    assert folder.summary.read_bytes() == summary


def test_the_workspace_is_not_checked(folder: SessionFolder) -> None:
    script = folder.workspace / "run.sh"
    script.write_text("echo")
    script.chmod(0o755)
    (folder.workspace / "x.tmp").write_text("")
    assert check_problems(folder) == []
    assert script.stat().st_mode & 0o777 == 0o755


def test_a_running_session_is_not_checked(folder: SessionFolder) -> None:
    lock = SessionLock(folder)
    with pytest.raises(SessionBusy):
        check_session(folder)
    lock.release()


def test_an_image_that_the_log_names_must_be_stored(folder: SessionFolder) -> None:
    log = FileLog(folder.events)
    asked = MessageAdded(role="user", content="look", images=(SHOT,))
    log.append(to_line(Envelope(seq=100, ts="t", session_id="s", run_id="run-20250101120000-aaaaaa", event=asked)))
    log.close()
    assert (f"blobs/{SHOT.sha256}", fsck.MISSING_IMAGE, False) in check_problems(folder)
