"""SESSION.json is a copy that anybody may lose: it comes back by itself, and never hides what happened since."""

import os
import time
from pathlib import Path

from agent.sessions.fold import RUNS_KEPT, read_session
from tests.sessions.past import begun, keep, whole_run

OLD = time.time() - 3600


def test_a_missing_summary_is_made_again_by_the_first_who_asks(tmp_path: Path) -> None:
    folder = keep(tmp_path, "s", whole_run("hello"), mtime=OLD, is_summed_up=False)
    assert read_session(folder).request == "hello"
    assert folder.summary.stat().st_mtime_ns == folder.events.stat().st_mtime_ns
    before = folder.summary.stat()
    assert read_session(folder).request == "hello"
    assert folder.summary.stat().st_ino == before.st_ino


def test_a_summary_made_again_never_hides_a_later_run(tmp_path: Path) -> None:
    folder = keep(tmp_path, "s", whole_run("first"), mtime=OLD, is_summed_up=False)
    read_session(folder)
    keep(tmp_path, "s", begun(request="second"), run="run-20250101130000-bbbbbb", is_summed_up=False)
    assert [run.user for run in read_session(folder).runs] == ["first", "second"]


def test_a_log_that_may_still_grow_is_not_summed_up(tmp_path: Path) -> None:
    folder = keep(tmp_path, "s", begun(), is_summed_up=False)
    assert read_session(folder).runs[-1].subtype == "unfinished"
    assert not folder.summary.exists()


def test_a_folder_without_a_log_is_an_empty_session(tmp_path: Path) -> None:
    folder = keep(tmp_path, "s", [], is_summed_up=False)
    folder.events.unlink()
    assert (read_session(folder).id, read_session(folder).runs) == ("s", ())


def test_the_first_request_the_count_and_the_cost_are_of_all_runs(tmp_path: Path) -> None:
    for number in range(RUNS_KEPT + 3):
        keep(tmp_path, "s", whole_run(f"request {number}"), run=f"run-{number}", is_summed_up=False)
    folder = keep(tmp_path, "s", [])
    record = read_session(folder)
    assert (record.request, record.run_count, len(record.runs)) == ("request 0", RUNS_KEPT + 3, RUNS_KEPT)
    assert record.cost_usd == 0.25 * (RUNS_KEPT + 3)


def test_a_summary_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    folder = keep(tmp_path, "s", whole_run("hello"), mtime=OLD, is_summed_up=False)
    folder.summary.with_suffix(f".{os.getpid()}.tmp").mkdir()
    assert read_session(folder).request == "hello"
