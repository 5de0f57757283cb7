"""SESSION.json is a copy that anybody may lose: it comes back by itself, and never hides what happened since."""

import json
import os
import time
from pathlib import Path

import pytest

from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import MAX_RUNS, read_session, refresh_session
from tests.agent.sessions.past_runs import completed_run, plan_made, run_start, write_run

OLD = time.time() - 3600


def test_a_missing_summary_is_made_again_by_the_first_who_asks(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("hello"), mtime=OLD, is_summed_up=False)
    assert read_session(folder).request == "hello"
    assert folder.summary.stat().st_mtime_ns == folder.events.stat().st_mtime_ns
    before = folder.summary.stat()
    assert read_session(folder).request == "hello"
    assert folder.summary.stat().st_ino == before.st_ino


def test_a_summary_made_again_never_hides_a_later_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"), mtime=OLD, is_summed_up=False)
    read_session(folder)
    write_run(tmp_path, "s", run_start(request="second"), run="run-20250101130000-bbbbbb", is_summed_up=False)
    assert [run.user for run in read_session(folder).runs] == ["first", "second"]


def test_a_log_that_may_still_grow_is_not_summed_up(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", run_start(), is_summed_up=False)
    assert read_session(folder).runs[-1].subtype == "unfinished"
    assert not folder.summary.exists()


def test_a_folder_without_a_log_is_an_empty_session(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", [], is_summed_up=False)
    folder.events.unlink()
    assert (read_session(folder).id, read_session(folder).runs) == ("s", ())


def test_the_first_request_the_count_and_the_cost_are_of_all_runs(tmp_path: Path) -> None:
    for number in range(MAX_RUNS + 3):
        write_run(tmp_path, "s", completed_run(f"request {number}"), run=f"run-{number}", is_summed_up=False)
    folder = write_run(tmp_path, "s", [])
    record = read_session(folder)
    assert (record.request, record.run_count, len(record.runs)) == ("request 0", MAX_RUNS + 3, MAX_RUNS)
    assert record.cost_usd == 0.25 * (MAX_RUNS + 3)


def test_a_summary_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("hello"), mtime=OLD, is_summed_up=False)
    folder.summary.with_suffix(f".{os.getpid()}.tmp").mkdir()
    assert read_session(folder).request == "hello"


def test_only_what_is_newer_than_the_summary_is_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"))
    log = folder.events.read_bytes()
    # As long as before, but with nothing in it that could be read again.
    folder.events.write_bytes(b"x" * (len(log) - 1) + b"\n")
    write_run(tmp_path, "s", completed_run("second"), run="run-2", is_summed_up=False)
    record = read_session(folder)
    assert [run.user for run in record.runs] == ["first", "second"]
    assert (record.run_count, record.cost_usd, record.log_bytes) == (2, 0.5, folder.events.stat().st_size)


def test_growing_gives_what_reading_all_gives(tmp_path: Path) -> None:
    parts = [*completed_run("first"), *run_start(request="second"), plan_made("a", "b"), *completed_run("third")[2:]]
    whole = write_run(tmp_path, "whole", parts, is_summed_up=False)
    for number, event in enumerate(parts):
        write_run(tmp_path, "grown", [event], run="run-20250101120000-aaaaaa", ts="2025-01-01T12:00:00.000Z")
        assert read_session(write_run(tmp_path, "grown", [])).log_bytes > 0, number
    grown = read_session(SessionStore(tmp_path).open("grown"))
    expected = read_session(whole)
    assert (grown.runs, grown.cost_usd, grown.run_count) == (expected.runs, expected.cost_usd, expected.run_count)


def test_a_torn_end_is_not_counted_as_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"), is_summed_up=False)
    size = folder.events.stat().st_size
    with folder.events.open("ab") as log:
        log.write(b'{"v": 1, "type": "message", "ts')
    assert read_session(folder).log_bytes == size


@pytest.mark.parametrize("change", [{"log_bytes": 10**9}, {"log_bytes": 17}, {"id": "other"}, {"log_bytes": 0}])
def test_a_summary_that_does_not_fit_its_log_is_not_believed(tmp_path: Path, change: dict[str, object]) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"))
    folder.summary.write_text(json.dumps({**json.loads(folder.summary.read_text()), "runs": [], **change}))
    assert [run.user for run in read_session(folder).runs] == ["first"]


@pytest.mark.parametrize("content", ["", "{ broken", "[]", '{"runs": 3}', "[" * 100_000])
def test_a_damaged_summary_is_kept_aside_and_made_anew(tmp_path: Path, content: str) -> None:
    folder = write_run(tmp_path, "s", completed_run("first"), mtime=OLD, is_summed_up=False)
    folder.summary.write_text(content)
    assert [run.user for run in read_session(folder).runs] == ["first"]
    assert folder.summary.read_text() == content, "a mere reader leaves it"
    aside = refresh_session(folder)
    assert aside == folder.root / "SESSION.json.corrupt"
    assert aside.read_text() == content
    assert json.loads(folder.summary.read_text())["request"] == "first"
    folder.summary.write_text("again")
    assert refresh_session(folder) == folder.root / "SESSION.json.corrupt-2"
    assert refresh_session(folder) is None
