"""Sessions and runs are listed newest first, and only those shown are read."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.protocol.events import RunStarted
from agent.sessions.resume.lookup import find_resumable_run, is_unfinished, last_unfinished
from agent.sessions.store import SessionLock, SessionStore
from agent.sessions.views.listing import (
    find_run,
    newest_runs,
    newest_sessions,
    run_rows,
    run_status,
    session_row,
    session_rows,
)
from agent.sessions.views.session_summary import MAX_RUNS
from agent.vocabulary.errors import InputError
from tests.agent.sessions.past_runs import completed_run, run_completed, run_start, write_run
from tooling.files.open_regular import NotRegularFile

FIRST, SECOND, THIRD = "run-20250101120000-aaaaaa", "run-20250102120000-bbbbbb", "run-20250103120000-cccccc"


def store_with_three_runs(data: Path) -> SessionStore:
    """Return a store with two sessions: the run of one started between the two runs of the other."""
    write_run(data, "old", completed_run("first"), run=FIRST, ts="2025-01-01T12:00:00.000Z")
    write_run(data, "old", completed_run("third"), run=THIRD, ts="2025-01-03T12:00:00.000Z", mtime=1_735_905_605)
    write_run(data, "new", completed_run("second"), run=SECOND, ts="2025-01-02T12:00:00.000Z", mtime=1_735_819_205)
    return SessionStore(data)


def test_the_most_recently_used_session_comes_first(tmp_path: Path) -> None:
    store = store_with_three_runs(tmp_path)
    assert [entry.id for entry in newest_sessions(store)] == ["old", "new"]
    (row,) = session_rows(store, newest_sessions(store), 1)
    assert (row.id, row.title, row.runs, row.status, row.cost_usd) == ("old", "first", 2, "success", 0.5)
    assert row.last_request == "third"


def test_only_the_sessions_shown_are_read(tmp_path: Path) -> None:
    store = store_with_three_runs(tmp_path)
    (store.folder_for("new").summary).write_text("{")
    assert [row.id for row in session_rows(store, newest_sessions(store), 1)] == ["old"]
    assert store.folder_for("new").summary.read_text() == "{"


def test_a_run_without_an_end_is_running_or_interrupted(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "s", run_start())
    assert session_row(folder).status == "interrupted"
    lock = SessionLock(folder)
    assert (session_row(folder).status, run_rows(folder)[0].status) == ("running", "running")
    lock.release()


def test_only_the_last_run_of_a_session_can_be_running(tmp_path: Path) -> None:
    write_run(tmp_path, "s", run_start(), run=FIRST)
    folder = write_run(tmp_path, "s", run_start(), run=SECOND)
    lock = SessionLock(folder)
    assert [(row.run_id, row.status) for row in run_rows(folder)] == [(SECOND, "running"), (FIRST, "interrupted")]
    store = SessionStore(tmp_path)
    assert run_status(find_run(store, FIRST), "unfinished") == "interrupted"
    assert run_status(find_run(store, SECOND), "unfinished") == "running"
    lock.release()


def test_runs_of_all_sessions_are_sorted_by_start(tmp_path: Path) -> None:
    store = store_with_three_runs(tmp_path)
    assert [row.run_id for row in newest_runs(store)] == [THIRD, SECOND, FIRST]
    for limit in (1, 2, 3, 4):
        assert newest_runs(store, limit) == newest_runs(store)[:limit]


def test_every_run_of_a_long_session_is_listed(tmp_path: Path) -> None:
    for number in range(MAX_RUNS + 2):
        write_run(tmp_path, "s", completed_run(f"request {number}"), run=f"run-{number:03}", has_summary=False)
    folder = write_run(tmp_path, "s", [])
    assert len(run_rows(folder)) == MAX_RUNS + 2
    assert find_run(SessionStore(tmp_path), "run-000").run_id == "run-000"


@pytest.mark.parametrize(("name", "run_id"), [(FIRST, FIRST), ("run-20250102", SECOND), ("last", THIRD)])
def test_a_run_is_found_by_id_prefix_or_last(tmp_path: Path, name: str, run_id: str) -> None:
    assert find_run(store_with_three_runs(tmp_path), name).run_id == run_id


def test_last_is_the_run_that_did_the_work_not_a_resume_that_came_too_late(tmp_path: Path) -> None:
    store = store_with_three_runs(tmp_path)
    init = run_start()[0]
    too_late = [init, replace(run_completed(""), subtype="error_input", is_error=True, exit_code=42)]
    for number in range(3):
        write_run(tmp_path, "old", too_late, run=f"run-2025010413000{number}-dddddd", ts="2025-01-04T12:00:00.000Z")
    assert find_run(store, "last").run_id == THIRD
    assert [row.run_id for row in newest_runs(store, 1)] == ["run-20250104130002-dddddd"]


def test_last_is_a_run_that_did_nothing_if_there_is_no_other(tmp_path: Path) -> None:
    write_run(tmp_path, "s", [run_start()[0], run_completed("")], run=FIRST)
    assert find_run(SessionStore(tmp_path), "last").run_id == FIRST


@pytest.mark.parametrize("name", ["run-2025", "nope", "", "run-20250101120000-aaaaaa0", "../x"])
def test_an_unknown_or_ambiguous_run_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="run"):
        find_run(store_with_three_runs(tmp_path), name)


def test_a_run_is_found_in_a_session_without_a_summary(tmp_path: Path) -> None:
    write_run(tmp_path, "s", run_start(), run=FIRST, has_summary=False)
    assert find_run(SessionStore(tmp_path), FIRST).folder.id == "s"


def test_a_run_id_inside_a_text_is_not_found(tmp_path: Path) -> None:
    write_run(tmp_path, "s", completed_run(f"what about {SECOND}?"), run=FIRST)
    with pytest.raises(InputError, match="no run"):
        find_run(SessionStore(tmp_path), SECOND)


def test_an_empty_store_has_empty_listings(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    assert (newest_sessions(store), newest_runs(store, 5)) == ([], [])
    with pytest.raises(InputError, match="no run"):
        find_run(store, "last")


def test_an_unreadable_session_does_not_hide_others(tmp_path: Path) -> None:
    store = store_with_three_runs(tmp_path)
    broken = write_run(tmp_path, "broken", run_start()).events
    broken.unlink()
    broken.mkdir()
    rows = {row.id: (row.status, row.title) for row in session_rows(store, newest_sessions(store))}
    assert rows["broken"] == ("unreadable", "(cannot be read: not a regular file)")
    assert (rows["old"][0], rows["new"][0]) == ("success", "success")
    assert [row.run_id for row in newest_runs(store)] == [THIRD, SECOND, FIRST]
    assert find_run(store, FIRST).folder.id == "old"
    # The run may be in the unreadable session, so "no such run" would be wrong.
    with pytest.raises(NotRegularFile):
        find_run(store, "run-2030")


def test_an_unreadable_session_is_an_error_if_there_is_no_other(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "broken", run_start())
    folder.events.unlink()
    folder.events.mkdir()
    for function in (newest_runs, last_unfinished):
        with pytest.raises(NotRegularFile):
            function(SessionStore(tmp_path))


def test_a_run_that_failed_to_start_is_not_the_one_to_resume(tmp_path: Path) -> None:
    write_run(tmp_path, "s", run_start(), run=FIRST, mtime=1_000_000_000.0)
    init, request = run_start(request="no such model")
    assert isinstance(init, RunStarted)
    events = [
        replace(init, model="", tools=()),
        request,
        replace(run_completed(""), subtype="error_config", is_error=True, exit_code=41),
    ]
    write_run(tmp_path, "failed", events, run=SECOND, mtime=1_000_000_001.0)
    assert last_unfinished(SessionStore(tmp_path)).run.run_id == FIRST
    # By its name it can be.
    assert is_unfinished(find_resumable_run(SessionStore(tmp_path), SECOND).run)


def test_the_last_unfinished_run_is_found_beside_an_unreadable_session(tmp_path: Path) -> None:
    write_run(tmp_path, "s", run_start(), run=FIRST)
    broken = write_run(tmp_path, "broken", run_start()).events
    broken.unlink()
    broken.mkdir()
    assert last_unfinished(SessionStore(tmp_path)).run.run_id == FIRST
