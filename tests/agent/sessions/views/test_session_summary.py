"""SESSION.json is a cache: it is rebuilt when missing or damaged, and never hides later runs."""

import json
import os
import time
from pathlib import Path

import pytest

from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import MAX_RUNS, read_session, refresh_session
from tests.agent.sessions.past_runs import completed_run, plan_updated, run_start, write_run

OLD = time.time() - 3600


def test_a_missing_summary_is_rebuilt_on_the_first_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("hello"), mtime=OLD, has_summary=False)
    assert read_session(folder).request == "hello"
    assert folder.summary.stat().st_mtime_ns == folder.events.stat().st_mtime_ns
    before = folder.summary.stat()
    assert read_session(folder).request == "hello"
    assert folder.summary.stat().st_ino == before.st_ino


def test_a_rebuilt_summary_never_hides_a_later_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"), mtime=OLD, has_summary=False)
    read_session(folder)
    write_run(tmp_path, "s", run_start(request="second"), run="run-20250101130000-bbbbbb", has_summary=False)
    assert [run.user for run in read_session(folder).runs] == ["first", "second"]


def test_no_summary_is_written_for_a_log_that_may_still_grow(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", run_start(), has_summary=False)
    assert read_session(folder).runs[-1].subtype == "unfinished"
    assert not folder.summary.exists()


def test_a_folder_without_a_log_is_an_empty_session(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", [], has_summary=False)
    folder.events.unlink()
    assert (read_session(folder).id, read_session(folder).runs) == ("s", ())


def test_the_first_request_the_count_and_the_cost_cover_all_runs(tmp_path: Path) -> None:
    for number in range(MAX_RUNS + 3):
        write_run(tmp_path, "s", completed_run(f"request {number}"), run=f"run-{number}", has_summary=False)
    folder = write_run(tmp_path, "s", [])
    record = read_session(folder)
    assert (record.request, record.run_count, len(record.runs)) == ("request 0", MAX_RUNS + 3, MAX_RUNS)
    assert record.cost_usd == 0.25 * (MAX_RUNS + 3)


def test_an_unwritable_summary_does_not_prevent_reading(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("hello"), mtime=OLD, has_summary=False)
    folder.summary.with_suffix(f".{os.getpid()}.tmp").mkdir()
    assert read_session(folder).request == "hello"


def test_only_the_log_after_the_summary_is_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"))
    log = folder.events.read_bytes()
    # The same length, but nothing in it can be parsed again.
    folder.events.write_bytes(b"x" * (len(log) - 1) + b"\n")
    write_run(tmp_path, "s", completed_run("second"), run="run-2", has_summary=False)
    record = read_session(folder)
    assert [run.user for run in record.runs] == ["first", "second"]
    assert (record.run_count, record.cost_usd, record.log_bytes) == (2, 0.5, folder.events.stat().st_size)


def test_incremental_reading_gives_the_same_record_as_reading_everything(tmp_path: Path) -> None:
    parts = [*completed_run("first"), *run_start(request="second"), plan_updated("a", "b"), *completed_run("third")[2:]]
    complete = write_run(tmp_path, "complete", parts, has_summary=False)
    for number, event in enumerate(parts):
        write_run(tmp_path, "grown", [event], run="run-20250101120000-aaaaaa", ts="2025-01-01T12:00:00.000Z")
        assert read_session(write_run(tmp_path, "grown", [])).log_bytes > 0, number
    grown = read_session(SessionStore(tmp_path).open("grown"))
    expected = read_session(complete)
    assert (grown.runs, grown.cost_usd, grown.run_count) == (expected.runs, expected.cost_usd, expected.run_count)


def test_an_incomplete_last_line_is_not_counted_as_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"), has_summary=False)
    size = folder.events.stat().st_size
    with folder.events.open("ab") as log:
        log.write(b'{"v": 1, "type": "message", "ts')
    assert read_session(folder).log_bytes == size


@pytest.mark.parametrize("change", [{"log_bytes": 10**9}, {"log_bytes": 17}, {"id": "other"}, {"log_bytes": 0}])
def test_a_summary_that_does_not_match_its_log_is_ignored(tmp_path: Path, change: dict[str, object]) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"))
    folder.summary.write_text(json.dumps({**json.loads(folder.summary.read_text()), "runs": [], **change}))
    assert [run.user for run in read_session(folder).runs] == ["first"]


@pytest.mark.parametrize("content", ["", "{ broken", "[]", '{"runs": 3}', "[" * 100_000])
def test_a_damaged_summary_is_renamed_and_rebuilt(tmp_path: Path, content: str) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"), mtime=OLD, has_summary=False)
    folder.summary.write_text(content)
    assert [run.user for run in read_session(folder).runs] == ["first"]
    assert folder.summary.read_text() == content, "reading does not replace it"
    backup = refresh_session(folder)
    assert backup == folder.root / "SESSION.json.corrupt"
    assert backup.read_text() == content
    assert json.loads(folder.summary.read_text())["request"] == "first"
    folder.summary.write_text("again")
    assert refresh_session(folder) == folder.root / "SESSION.json.corrupt-2"
    assert refresh_session(folder) is None
