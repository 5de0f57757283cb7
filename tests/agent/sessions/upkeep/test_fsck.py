"""What crashes, full disks and hands can do to a session: it is found, told, and mended where that is possible."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.protocol.codec import to_line
from agent.protocol.events import Envelope, StepCompleted
from agent.sessions.log.event_log import FileLog, read_events
from agent.sessions.step_results import StepResultStore
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.upkeep.fsck import check_session
from agent.sessions.views.session_summary import read_session
from agent.vocabulary.errors import SessionBusy
from agent.vocabulary.step import ExecutorResponse
from tests.agent.sessions.past_runs import completed_run, run_start, write_run
from tooling.files.blobs import BlobStore

KEY = "a" * 64


@pytest.fixture
def folder(tmp_path: Path) -> SessionFolder:
    """A healthy session: one run, one kept result, one blob."""
    folder = write_run(tmp_path, "s", completed_run("first"), is_summed_up=False)
    StepResultStore(folder.steps)._write(KEY, ExecutorResponse(task_id="s1", status="ok", summary="done"))
    BlobStore(folder.blobs).put(b"before")
    done = StepCompleted(status="ok", summary="done", key=KEY)
    log = FileLog(folder.events)
    place = Envelope(
        seq=99, ts="t", session_id="s", run_id="run-20250101120000-aaaaaa", event=done, step_id="s1", attempt=1
    )
    log.append(to_line(place))
    log.close()
    write_run(tmp_path, "s", [])
    assert check_session(folder) == []
    return folder


def check_problems(folder: SessionFolder, *, mends: bool = True) -> list[tuple[str, str, bool]]:
    return [(problem.path, problem.what, problem.is_mended) for problem in check_session(folder, mends=mends)]


def tear_the_end(folder: SessionFolder) -> None:
    folder.events.write_bytes(folder.events.read_bytes() + b'{"v": 1, "ty')


def tear_the_middle(folder: SessionFolder) -> None:
    first, *rest = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(first + b"\x00\x00 not an event\n" + b"".join(rest))


def open_to_others(folder: SessionFolder) -> None:
    folder.events.chmod(0o644)


def leave_a_half_written_file(folder: SessionFolder) -> None:
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
    tear_the_end: ("events.jsonl:10", "a torn line"),
    tear_the_middle: ("events.jsonl:2", "a torn line"),
    open_to_others: ("events.jsonl", "others could reach it (mode 644)"),
    leave_a_half_written_file: ("steps/.x.json.abcd.tmp", "left half-written by a crash"),
    damage_a_result: (f"steps/{KEY}.json", "not what was kept there; the step will be done again"),
    damage_the_summary: ("SESSION.json", "damaged"),
    lose_the_summary: ("SESSION.json", "missing"),
    forge_the_summary: ("SESSION.json", "it told something else than the log"),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damage_is_told_then_mended_then_gone(folder: SessionFolder, damage: Callable[[SessionFolder], None]) -> None:
    events = list(read_events(folder.events))
    damage(folder)
    path, what = DAMAGES[damage]
    assert (path, what, False) in check_problems(folder, mends=False)
    assert (path, what, False) in check_problems(folder, mends=False), "to look changes nothing"
    assert (path, what, True) in check_problems(folder)
    lost = [("steps/" + KEY + ".json", "the result of a finished step is missing; it will be done again", False)]
    assert check_problems(folder) == (lost if damage is damage_a_result else [])
    assert list(read_events(folder.events)) == events
    assert read_session(folder).request == "first"


def test_what_is_taken_out_of_a_log_or_a_folder_is_kept_beside_it(folder: SessionFolder) -> None:
    for damage in (tear_the_middle, damage_a_result, damage_the_summary):
        damage(folder)
    check_session(folder)
    assert (folder.root / "events.jsonl.torn").read_bytes() == b"\x00\x00 not an event\n"
    assert (folder.steps / f"{KEY}.json.corrupt").read_text() == "{}"
    assert (folder.root / "SESSION.json.corrupt").read_text() == "{ broken"


def test_what_cannot_be_mended_is_told_every_time(folder: SessionFolder) -> None:
    (folder.steps / f"{KEY}.json").unlink()
    missing = (f"steps/{KEY}.json", "the result of a finished step is missing; it will be done again", False)
    assert check_problems(folder) == check_problems(folder) == [missing]


def test_a_blob_that_changed_is_told_and_set_aside(folder: SessionFolder) -> None:
    (blob,) = folder.blobs.iterdir()
    blob.write_bytes(b"something else")
    assert check_problems(folder) == [
        (f"blobs/{blob.name}", "not what a file held before; `undo` cannot use it", False)
    ]
    assert check_problems(folder) == []


def test_a_line_that_only_lacks_its_end_gets_one(folder: SessionFolder) -> None:
    whole = folder.events.read_bytes()
    folder.events.write_bytes(whole[:-1])
    assert ("events.jsonl:9", "a line without its end", True) in check_problems(folder)
    assert folder.events.read_bytes() == whole


def test_events_of_a_later_version_are_nothing_wrong(folder: SessionFolder) -> None:
    strange = {"v": 2, "type": "something.new", "seq": 200, "run_id": "r"}
    folder.events.write_bytes(folder.events.read_bytes() + json.dumps(strange).encode() + b"\n")
    before = folder.events.read_bytes()
    assert check_problems(folder) == []
    assert folder.events.read_bytes() == before


def test_a_run_that_was_killed_leaves_nothing_wrong(tmp_path: Path, folder: SessionFolder) -> None:
    write_run(tmp_path, "s", run_start(request="second"), run="run-2", is_summed_up=False)
    assert check_problems(folder) == []
    assert json.loads(folder.summary.read_text())["run_count"] == 2


def test_numbers_that_fall_within_a_run_are_told(folder: SessionFolder) -> None:
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join([*lines[:1], *reversed(lines[1:3]), *lines[3:]]))
    assert any("comes after event" in what for _, what, _ in check_problems(folder))


def test_a_session_without_a_log_keeps_its_summary(folder: SessionFolder) -> None:
    summary = folder.summary.read_bytes()
    folder.events.unlink()
    assert ("events.jsonl", "there is no log, so nothing is known of its runs", False) in check_problems(folder)
    assert folder.summary.read_bytes() == summary


def test_the_workspace_is_none_of_its_business(folder: SessionFolder) -> None:
    script = folder.workspace / "run.sh"
    script.write_text("echo")
    script.chmod(0o755)
    (folder.workspace / "x.tmp").write_text("")
    assert check_problems(folder) == []
    assert script.stat().st_mode & 0o777 == 0o755


def test_a_session_that_runs_is_left_alone(folder: SessionFolder) -> None:
    lock = SessionLock(folder)
    with pytest.raises(SessionBusy):
        check_session(folder)
    lock.release()
