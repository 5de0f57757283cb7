"""Text is found in requests and answers, or in complete logs, in any case and script."""

from pathlib import Path

import pytest

from agent.sessions.store import SessionStore
from agent.sessions.views.session_search import SessionHit, search
from agent.sessions.views.session_summary import MAX_RUNS
from agent.sessions.views.titles import rename
from tests.agent.sessions.past_runs import completed_run, write_run

RUN = "run-20250101120000-aaaaaa"


def search_lines(data: Path, text: str, *, is_deep: bool = False) -> list[tuple[str, str]]:
    return [(hit.where, hit.line) for hit in search(SessionStore(data), text, is_deep=is_deep)]


def test_requests_and_answers_are_searched_line_by_line(tmp_path: Path) -> None:
    write_run(tmp_path, "s", completed_run("Count the LINES\nof a file", "three lines\nno more"))
    assert search_lines(tmp_path, "lines") == [("request", "Count the LINES"), ("answer", "three lines")]
    assert search_lines(tmp_path, "wc -l") == []


def test_a_deep_search_covers_the_log_and_yields_each_line_once(tmp_path: Path) -> None:
    write_run(tmp_path, "s", completed_run("count", "three lines"))
    assert search_lines(tmp_path, "wc -l", is_deep=True) == [("s1 tool.started", "wc -l < a.txt")]
    assert search_lines(tmp_path, "three", is_deep=True) == [("s1 step.completed", "three lines")]
    assert search_lines(tmp_path, "aaaaaa", is_deep=True) == []


@pytest.mark.parametrize("text", ["ÜBER", "über", 'say "yes"', "a\\b", "日本", "STRASSE", "tab\there"])
@pytest.mark.parametrize("is_deep", [False, True])
def test_punctuation_and_other_scripts_are_found(tmp_path: Path, text: str, is_deep: bool) -> None:
    write_run(tmp_path, "s", completed_run('er sagt über: say "yes" a\\b 日本 Straße tab\there'))
    assert len(search_lines(tmp_path, text, is_deep=is_deep)) == 1


def test_a_title_is_searched(tmp_path: Path) -> None:
    rename(write_run(tmp_path, "s", completed_run("count")), "The Big One")
    assert list(search(SessionStore(tmp_path), "big")) == [
        SessionHit(session_id="s", run_id="", where="title", line="The Big One")
    ]


def test_a_long_line_is_shortened_around_the_match(tmp_path: Path) -> None:
    write_run(tmp_path, "s", completed_run("x" * 5000 + " needle " + "y" * 5000))
    ((_, line),) = search_lines(tmp_path, "needle")
    assert "needle" in line
    assert len(line) < 300


def test_the_newest_session_comes_first_even_without_a_summary(tmp_path: Path) -> None:
    write_run(tmp_path, "old", completed_run("needle"), mtime=1000.0)
    write_run(tmp_path, "new", completed_run("needle"), has_summary=False)
    assert [hit.session_id for hit in search(SessionStore(tmp_path), "needle")] == ["new", "old"]


def test_runs_missing_from_the_summary_are_searched(tmp_path: Path) -> None:
    write_run(tmp_path, "s", completed_run("the very first"), run="run-first", has_summary=False)
    for number in range(MAX_RUNS):
        write_run(tmp_path, "s", completed_run(f"request {number}"), run=f"run-{number:03}", has_summary=False)
    write_run(tmp_path, "s", [])
    assert [hit.run_id for hit in search(SessionStore(tmp_path), "very first")] == ["run-first"]
