"""`agent runs bisect` finds the step or call that broke a check, shows it, and takes it back."""

from pathlib import Path

import pytest

from cli.pages.run_bisect import ENDINGS, FIRST_FAILURE
from tests.cli.terminal_user import (
    User,
    composer_reply,
    hand_out,
    lead_call,
    lead_reply,
    plan,
    step,
    step_call,
    step_reply,
)

pytestmark = pytest.mark.slow
YOLO = ("--approval-mode", "yolo", "--session", "s")
CHECK = "! grep -q broken *.txt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "node_modules").mkdir(parents=True)
    (folder / "node_modules" / "needed").touch()
    (folder / "a.txt").write_text("fine\n")
    return folder


def run_steps(user: User, project: Path, *commands: str) -> None:
    """Run a plan with one command a step, one after the other."""
    names = [f"s{number}" for number in range(1, len(commands) + 1)]
    steps = [step(name, *names[:number][-1:]) for number, name in enumerate(names)]
    replies = [
        reply
        for name, command in zip(names, commands, strict=True)
        for reply in (step_call(name, "run_command", command=command), step_reply(name, f"{name} is done"))
    ]
    script = user.script(plan(*steps), *replies, composer_reply("done"))
    ended = user.agent("run", "--model", script, *YOLO, "-C", str(project), "do it")
    assert ended.exit_code == 0, ended.stderr


FIVE = ("echo 1 > one.txt", "mkdir d; echo 2 > d/two.txt", "echo broken > a.txt", "rm one.txt", "echo 5 > five.txt")


def test_the_step_that_broke_the_check_is_found_shown_and_taken_back(user: User, project: Path) -> None:
    run_steps(user, project, *FIVE)
    check = f"test -e node_modules/needed && {CHECK}"
    found = user.agent("runs", "bisect", "last", "--check", check)
    assert found.exit_code == 0, found.stderr
    assert [line for line in found.stderr.splitlines() if not line.startswith("warning: ")] == [
        "before the first change: passed",
        "after s5 (Title of s5): error, exit 1",
        "after s2 (Title of s2): passed",
        "after s3 (Title of s3): error, exit 1",
    ]
    lines = found.stdout.splitlines()
    assert lines[0] == FIRST_FAILURE.format(name="s3 (Title of s3)")
    assert [line for line in lines if line in ("-fine", "+broken", "+5")] == ["-fine", "+broken"]
    assert "ran: echo broken > a.txt" in lines
    assert "answer: s3 is done" in lines
    # Nothing was tried in the user's folder.
    assert (project / "a.txt").read_text() == "broken\n"
    assert not (project / "one.txt").exists()

    undone = user.agent("runs", "bisect", "last", "--check", check, "--undo")
    assert undone.exit_code == 0
    assert undone.stdout.splitlines()[-1] == "Restored a.txt"
    assert (project / "a.txt").read_text() == "fine\n"
    assert (project / "five.txt").exists()


def test_a_call_of_the_lead_is_found(user: User, project: Path) -> None:
    write = lead_call("write_file", path="b.txt", content="broken\n")
    script = user.script(
        lead_call("run_command", command="echo x > x.txt"),
        hand_out(step("h1")),
        step_call("h1", "run_command", command="echo h > h.txt"),
        step_reply("h1", "done"),
        write,
        lead_call("run_command", command="echo y > y.txt"),
        lead_reply("done"),
    )
    ended = user.agent("run", "--model", script, *YOLO, "-C", str(project), "do it", AGENT_PLANNING="auto")
    assert ended.exit_code == 0, ended.stderr
    found = user.agent("runs", "bisect", "last", "--check", CHECK, "--json")
    assert found.exit_code == 0, found.stderr
    document = found.document
    assert document["verdict"] == "found"
    assert document["points"] == [
        "lead: run_command echo x > x.txt",
        "h1 (Title of h1)",
        "lead: write_file b.txt",
        "lead: run_command echo y > y.txt",
    ]
    culprit = document["culprit"]
    assert isinstance(culprit, dict)
    assert (culprit["step_id"], culprit["call"], culprit["paths"]) == ("lead", "write_file b.txt", ["b.txt"])
    assert "+broken" in culprit["diff"]
    assert document["undone"] is None


def test_a_check_that_tells_nothing_ends_clearly(user: User, project: Path) -> None:
    run_steps(user, project, *FIVE)
    for check, verdict in (("false", "fails_before"), ("true", "passes_after"), ("exit 127", "cannot_run")):
        ended = user.agent("runs", "bisect", "last", "--check", check)
        assert (ended.exit_code, ended.stdout.splitlines()[0]) == (1, ENDINGS[verdict])


def test_a_check_is_judged_like_any_command(user: User, project: Path) -> None:
    run_steps(user, project, *FIVE)
    refused = user.agent("runs", "bisect", "last", "--check", "rm -rf ~")
    assert (refused.exit_code, refused.stdout.splitlines()[0]) == (57, ENDINGS["refused"])


def test_the_points_are_those_of_the_run_whatever_came_later(user: User, project: Path) -> None:
    run_steps(user, project, *FIVE)
    first = user.agent("runs", "list", "--json").document[0]["run_id"]  # type: ignore[index]
    run_steps(user, project, "echo fixed > a.txt; rm five.txt")
    (project / "d" / "two.txt").write_text("changed by the user\n")
    check = f"{CHECK} && (test ! -e five.txt || test -e a.txt)"
    found = user.agent("runs", "bisect", str(first), "--check", check, "--json")
    culprit = found.document["culprit"]
    assert isinstance(culprit, dict)
    assert culprit["step_id"] == "s3"


def test_a_check_that_replaces_a_folder_by_a_link_reaches_nothing_outside(user: User, project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "two.txt").write_text("keep me")
    run_steps(user, project, *FIVE)
    link = f"rm -rf d; ln -s {outside} d; {CHECK}"
    user.agent("runs", "bisect", "last", "--check", link)
    assert (outside / "two.txt").read_text() == "keep me"


def test_a_run_without_changes_and_an_empty_check_are_refused(user: User, project: Path) -> None:
    run_steps(user, project, "true")
    assert user.agent("runs", "bisect", "last", "--check", "true").exit_code == 42
    assert user.agent("runs", "bisect", "last", "--check", " ").exit_code == 2
