"""`agent sessions`: list, rename, fork, export, search and remove sessions."""

import json
import subprocess

import pytest
from rich.cells import cell_len

from agent.sessions.store import SessionLock, SessionStore
from agent.sessions.views.session_search import SessionHit
from cli.commands.runs import MORE_RUNS
from cli.commands.sessions import NO_MATCHES, not_shown
from cli.pages.session_pages import highlight_hits
from cli.pages.session_upkeep import YES_REMOVES
from cli.screen.colors import Paint
from tests.agent.sessions.past_runs import completed_run, run_start, write_run
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.run.test_interruptions import start_run, wait_result, wait_until
from tests.cli.terminal_user import User, answer, one_step, step_call

pytestmark = pytest.mark.slow
OLD = 1_000_000_000.0


def run_request(user: User, text: str, session: str) -> None:
    ended = user.agent("run", "--model", user.script(answer("done")), "--session", session, text)
    assert ended.exit_code == 0, ended.stderr


def list_ids(user: User, *flags: str) -> list[str]:
    return [row["id"] for row in json.loads(user.agent("sessions", "list", "--json", *flags).stdout)]


def test_the_newest_sessions_are_listed_and_the_rest_counted(user: User) -> None:
    for number in range(5):
        write_run(user.data, f"s{number}", completed_run(f"request {number}"), mtime=OLD + number)
    shown = user.agent("sessions", "list", "-n", "2")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["s4", "s3"]
    assert shown.stderr == f"{not_shown(3)}\n"
    assert list_ids(user, "--all") == ["s4", "s3", "s2", "s1", "s0"]
    assert list_ids(user, "--limit", "1") == ["s4"]


def test_json_is_not_cut_and_a_cut_list_says_so(user: User) -> None:
    for number in range(32):
        write_run(user.data, f"s{number:02}", completed_run("all alike"), run=f"run-20250101120000-{number:06}")
    assert len(list_ids(user)) == 32
    assert user.agent("sessions", "list").stderr == f"{not_shown(2)}\n"
    runs = user.agent("runs", "list")
    assert (len(runs.stdout.splitlines()), runs.stderr) == (30, f"{MORE_RUNS}\n")
    assert len(json.loads(user.agent("runs", "list", "--json").stdout)) == 32
    assert len(json.loads(user.agent("sessions", "search", "alike", "--json").stdout)) == 32


def test_a_row_has_the_title_folder_runs_status_and_cost(user: User) -> None:
    write_run(user.data, "s", completed_run("count\nthe lines", cwd="/project"))
    (row,) = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert {key: row[key] for key in ("id", "title", "cwd", "runs", "status", "cost_usd")} == {
        "id": "s",
        "title": "count the lines",
        "cwd": "/project",
        "runs": 1,
        "status": "success",
        "cost_usd": 0.25,
    }


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_a_table_fits_the_terminal(user: User, columns: int) -> None:
    write_run(user.data, "20250101-120000-abcdef", completed_run("日本語 " * 40 + "\x1b[31mred", cwd="/very" * 20))
    write_run(user.data, "20250101-120001-abcdef", completed_run("short"))
    for words in (("sessions", "list"), ("runs", "list"), ("sessions", "search", "short")):
        _, screen = PtyTerminal(user, *words, columns=columns).wait_exit()
        lines = screen.replace("\r", "").splitlines()
        assert all(cell_len(line) <= columns for line in lines), screen
        assert lines[0].startswith(("ID", "SESSION", "20250101-120001-abcdef"))
        assert "\x1b" not in screen


def test_a_session_can_be_renamed_and_its_title_cleared(user: User) -> None:
    write_run(user.data, "s", completed_run("count the lines"))
    assert user.agent("sessions", "rename", "s", "  my \x1b[31m work ").exit_code == 0
    (row,) = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert (row["id"], row["title"]) == ("s", "my \x1b[31m work")
    for words in (("list",), ("show", "s"), ("search", "work")):
        shown = user.agent("sessions", *words).stdout
        assert ("work" in shown, "\x1b" in shown) == (True, False)
    assert user.agent("sessions", "rename", "s", "").exit_code == 0
    assert json.loads(user.agent("sessions", "show", "s", "--json").stdout)["title"] == "count the lines"
    assert user.agent("sessions", "rename", "s", "x" * 201).exit_code == 42


def test_a_fork_is_independent(user: User) -> None:
    run_request(user, "first", "one")
    assert user.agent("sessions", "fork", "one", "two").stdout == "two\n"
    run_request(user, "second", "two")
    runs = {name: json.loads(user.agent("sessions", "show", name, "--json").stdout)["runs"] for name in ("one", "two")}
    assert {name: [run["user"] for run in runs[name]] for name in runs} == {
        "one": ["first"],
        "two": ["first", "second"],
    }
    new_id = user.agent("sessions", "fork", "one").stdout.strip()
    assert new_id in list_ids(user)
    assert user.agent("sessions", "fork", "one", "two").exit_code == 42


def test_a_session_is_removed_after_confirmation(user: User) -> None:
    write_run(user.data, "s", completed_run("count the lines"))
    terminal = PtyTerminal(user, "sessions", "rm", "s")
    assert "count the lines" in terminal.wait_for("remove 1 session")
    terminal.send_line("n")
    assert terminal.wait_exit()[0] == 1
    assert list_ids(user) == ["s"]
    ended = user.agent("sessions", "rm", "s")
    assert (ended.exit_code, "--yes" in ended.stderr) == (2, True)
    terminal = PtyTerminal(user, "sessions", "rm", "s")
    terminal.wait_for("[y/N]")
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 0
    assert list((user.data / "sessions").iterdir()) == []


def test_several_sessions_are_removed_or_none_if_one_is_unknown(user: User) -> None:
    for name in ("a", "b", "c"):
        write_run(user.data, name, completed_run())
    assert user.agent("sessions", "rm", "--yes", "a", "nope").exit_code == 42
    assert len(list_ids(user)) == 3
    assert user.agent("sessions", "rm", "--yes", "a", "b", "a").exit_code == 0
    assert list_ids(user) == ["c"]


def test_removing_a_session_stops_its_run_first(user: User) -> None:
    folder = user.home / "work"
    folder.mkdir()
    command = "echo $$ > started; exec sleep 60"
    model = user.script(*one_step(step_call("s1", "run_command", command=command)))
    process = start_run(
        user, "run", "x", "--model", model, "--session", "s", "-C", str(folder), "--approval-mode", "yolo"
    )
    wait_until((folder / "started").exists)
    (row,) = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert row["status"] == "running"
    ended = user.agent("sessions", "rm", "--yes", "s")
    assert (ended.exit_code, ended.stderr) == (0, "removed s\n")
    assert wait_result(process).exit_code == 143
    assert list_ids(user) == []


def test_a_session_is_exported_as_markdown_or_json(user: User) -> None:
    write_run(user.data, "s", completed_run("count the lines", "three lines"))
    assert "### Answer\n\nthree lines\n" in user.agent("sessions", "export", "s").stdout
    (run,) = json.loads(user.agent("sessions", "export", "s", "--format", "json").stdout)["runs"]
    assert run["steps"][0]["calls"][0]["input"] == {"command": "wc -l < a.txt"}
    assert user.agent("sessions", "export", "s", "-o", "out.json").stdout == ""
    assert json.loads((user.home / "out.json").read_text())["id"] == "s"
    assert user.agent("sessions", "export", "s", "-o", "out.md").exit_code == 0
    assert (user.home / "out.md").read_text().startswith("# count the lines\n")
    assert user.agent("sessions", "export", "s", "-o", "no/such/place").exit_code == 42


def test_the_user_is_asked_before_a_file_is_replaced(user: User) -> None:
    write_run(user.data, "s", completed_run())
    (user.home / "out.md").write_text("mine")
    for reply, code in (("n", 1), ("y", 0)):
        terminal = PtyTerminal(user, "sessions", "export", "s", "-o", "out.md")
        terminal.wait_for("replace it? [y/N]")
        terminal.send_line(reply)
        assert terminal.wait_exit()[0] == code
        assert ((user.home / "out.md").read_text() == "mine") == (reply == "n")


def test_a_terminal_shows_matches_in_context(user: User) -> None:
    write_run(user.data, "s", completed_run("far " * 30 + "the NEEDLE is here", "no"))
    code, screen = PtyTerminal(user, "sessions", "search", "needle", "is", columns=40).wait_exit()
    head, line = screen.replace("\r", "").splitlines()
    assert (code, head) == (0, "s") and line.startswith("  request: …") and "NEEDLE is" in line
    code, screen = PtyTerminal(user, "sessions", "search", "hay").wait_exit()
    assert (code, NO_MATCHES in screen) == (1, True)


def test_every_match_is_highlighted() -> None:
    hit = SessionHit(session_id="s", run_id="r", where="answer", line="Alpha and alpha.")
    paint = Paint(has_color=True)
    _, line = highlight_hits([hit], "alpha", width=80, paint=paint)
    assert line.endswith(f"{paint('warn', 'Alpha')} and {paint('warn', 'alpha')}.")


def test_a_search_without_matches_exits_with_1(user: User) -> None:
    write_run(user.data, "s", completed_run("Count the lines", "three lines"))
    search = user.agent("sessions", "search", "LINES")
    assert [line.split()[:3] for line in search.stdout.splitlines()] == [
        ["s", "run-20250101120000-aaaaaa", "request"],
        ["s", "run-20250101120000-aaaaaa", "answer"],
    ]
    missing = user.agent("sessions", "search", "wc -l")
    assert (missing.exit_code, missing.stdout, missing.stderr) == (1, "", "")
    (hit,) = json.loads(user.agent("sessions", "search", "wc -l", "--deep", "--json").stdout)
    assert (hit["session_id"], hit["where"], hit["line"]) == ("s", "s1 tool.started", "wc -l < a.txt")


def test_gc_lists_old_sessions_and_removes_them_with_yes(user: User) -> None:
    user.environ["TMPDIR"] = str(user.home)
    write_run(user.data, "old", completed_run(), mtime=OLD)
    write_run(user.data, "new", completed_run())
    write_run(user.data, "busy", run_start(), mtime=OLD)
    lock = SessionLock(SessionStore(user.data).folder_for("busy"))
    dry = user.agent("sessions", "gc")
    assert ([line.split()[0] for line in dry.stdout.splitlines()], dry.exit_code) == (["old"], 0)
    assert YES_REMOVES in dry.stderr
    assert sorted(list_ids(user)) == ["busy", "new", "old"]
    done = user.agent("sessions", "gc", "--older-than", "1w", "--yes")
    assert (done.exit_code, "removed 1 session" in done.stderr) == (0, True)
    lock.release()
    document = json.loads(user.agent("sessions", "gc", "--keep", "1", "--json").stdout)
    assert (document["removed"], [row["id"] for row in document["sessions"]]) == (False, ["busy"])
    assert user.agent("sessions", "gc", "--older-than", "soon").exit_code == 2
    assert sorted(list_ids(user)) == ["busy", "new"]


@pytest.mark.parametrize(
    "words", [("sessions", "list", "--all"), ("runs", "list", "--all"), ("sessions", "export", "s")]
)
def test_a_closed_pipe_exits_quietly(user: User, words: tuple[str, ...]) -> None:
    write_run(user.data, "s", completed_run("x" * 100_000, "y" * 100_000))
    for number in range(20):
        write_run(user.data, f"s{number}", completed_run("x" * 10_000), mtime=OLD)
    command = " ".join(user.command(*words))
    ended = subprocess.run(
        ["bash", "-c", f"{command} | head -c 10; exit ${{PIPESTATUS[0]}}"],
        env=user.environment(),
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr, len(ended.stdout)) == (0, b"", 10)


def test_a_missing_or_stale_summary_is_rebuilt(user: User) -> None:
    run_request(user, "first", "s")
    summary = user.data / "sessions" / "s" / "SESSION.json"
    summary.unlink()
    assert list_ids(user) == ["s"]
    log = user.data / "sessions" / "s" / "events.jsonl"
    before = log.read_text()
    log.write_text(before + before.replace('"content": "first"', '"content": "later"').replace('"run-', '"run-9'))
    (row,) = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert (row["runs"], row["last_request"]) == (2, "later")


def test_a_data_folder_that_is_a_file_is_an_error(user: User) -> None:
    user.data.write_text("a file")
    ended = user.agent("sessions", "list")
    assert (ended.exit_code, "Traceback" in ended.stderr) == (52, False)


def test_an_unreadable_session_is_reported_and_does_not_hide_others(user: User) -> None:
    write_run(user.data, "good", completed_run("first"))
    broken = write_run(user.data, "broken", run_start()).events
    broken.unlink()
    broken.mkdir()
    listing = user.agent("sessions", "list")
    assert (listing.exit_code, "unreadable" in listing.stdout, "first" in listing.stdout) == (0, True, True)
    assert "first" in user.agent("runs", "list").stdout
    shown = user.agent("sessions", "show", "broken")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "not a regular file" in shown.stderr and "Traceback" not in shown.stderr
