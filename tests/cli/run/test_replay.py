"""Replaying a recorded run: same answer, real tools, no network, and the first run stays untouched."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import (
    User,
    answer,
    composer_reply,
    hand_out,
    lead_call,
    lead_reply,
    one_step,
    plan,
    step,
    step_call,
    step_reply,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def record(user: User, *replies: dict[str, object], flags: tuple[str, ...] = (), stdin: str | None = None) -> str:
    """Record a run with a scripted model and return its id."""
    words = ("run", "--model", user.script(*replies), "--record", "tape.jsonl", "--output-format", "stream-json")
    ended = user.agent(*words, *flags, "do it", stdin=stdin)
    assert ended.exit_code == 0, ended.stderr
    (user.home / "script.jsonl").unlink()
    return str(ended.events[0]["run_id"])


def events(user: User, run: str) -> list[dict[str, object]]:
    return user.agent("runs", "events", run).events


def test_a_run_is_replayed_in_its_own_session(user: User, project: Path) -> None:
    run = record(
        user,
        plan(step("s1"), step("s2", "s1")),
        step_call("s1", "write_file", path="a.txt", content="one\n"),
        step_reply("s1", "written"),
        step_call("s2", "run_command", command="cat a.txt"),
        step_reply("s2", "it says one"),
        composer_reply("a.txt says one [s2]."),
        flags=("-C", str(project), "--approval-mode", "auto-edit"),
        stdin="what was piped",
    )
    (project / "a.txt").write_text("by hand\n")
    played = user.agent("runs", "replay", run)
    assert (played.exit_code, played.stdout) == (0, "a.txt says one [s2].\n"), played.stderr
    assert (project / "a.txt").read_text() == "by hand\n"
    first, second = events(user, run), events(user, "last")
    assert first[0]["session_id"] != second[0]["session_id"]
    assert first[0]["run_id"] != second[0]["run_id"]
    outputs = [[event["output"] for event in log if event["type"] == "tool.completed"] for log in (first, second)]
    assert outputs[0] == outputs[1]


def test_a_run_can_be_replayed_in_a_chosen_folder(user: User, project: Path) -> None:
    run = record(
        user, *one_step(step_call("s1", "write_file", path="a.txt", content="one\n"), step_reply("s1", "done"))
    )
    played = user.agent("runs", "replay", run, "-C", str(project), "--approval-mode", "auto-edit")
    assert (played.exit_code, (project / "a.txt").read_text()) == (0, "one\n")


@pytest.mark.parametrize("planning", ["auto", "never"])
def test_a_run_is_replayed_with_its_own_planning(user: User, planning: str) -> None:
    work = (hand_out(step("a")), step_reply("a", "a is done")) if planning == "auto" else (lead_call("list_directory"),)
    run = record(user, *work, lead_reply("Done."), flags=("--planning", planning))
    played = user.agent("runs", "replay", run, AGENT_PLANNING="always")
    assert (played.exit_code, played.stdout) == (0, "Done.\n"), played.stderr


def test_a_follow_up_is_replayed_with_the_conversation_before_it(user: User) -> None:
    user.agent(
        "run", "one", "--model", user.script(lead_call("list_directory"), lead_reply("1")), AGENT_PLANNING="auto"
    )
    run = record(user, lead_reply("2"), flags=("-c", "--planning", "auto"))
    user.agent("run", "-c", "three", "--model", user.script(lead_reply("3")), AGENT_PLANNING="auto")
    played = user.agent("runs", "replay", run)
    assert (played.exit_code, played.stdout) == (0, "2\n"), played.stderr


def test_attachments_and_schema_are_replayed(user: User) -> None:
    (user.home / "notes.txt").write_text("remember the milk")
    (user.home / "data.csv").write_text("1,2\n")
    (user.home / "schema.json").write_text('{"type": "object", "required": ["milk"]}')
    assert user.agent("run", "--model", user.script(answer("before")), "--session", "s", "earlier").exit_code == 0
    run = record(
        user,
        *one_step(step_call("s1", "run_command", command="cat input/data.csv"), step_reply("s1", '{"milk": true}')),
        flags=("--session", "s", "-f", "notes.txt", "-i", "data.csv", "--output-schema", "schema.json"),
        stdin="piped",
    )
    (user.home / "notes.txt").unlink()
    (user.home / "schema.json").unlink()
    played = user.agent("runs", "replay", run, "-i", "data.csv", "--output-format", "json")
    assert played.exit_code == 0, played.stderr
    assert played.document["structured_output"] == {"milk": True}


def test_a_given_plan_is_replayed(user: User) -> None:
    (user.home / "plan.toml").write_text('[[steps]]\nid = "s1"\ninstruction = "Say hello"\n')
    run = record(user, step_reply("s1", "hello"), flags=("--plan", "plan.toml"))
    (user.home / "plan.toml").unlink()
    assert user.agent("runs", "replay", run).stdout == "hello\n"


def test_a_run_without_a_cassette_cannot_be_replayed(user: User) -> None:
    assert user.agent("run", "--model", user.script(answer("x")), "x").exit_code == 0
    ended = user.agent("runs", "replay", "last")
    assert (ended.exit_code, "was not recorded" in ended.stderr) == (42, True)
    run = record(user, answer("x"))
    (user.home / "tape.jsonl").unlink()
    ended = user.agent("runs", "replay", run)
    assert (ended.exit_code, "the cassette of run" in ended.stderr) == (42, True)
    assert user.agent("runs", "replay", run, "--output-format", "json").document["exit_code"] == 42


def test_the_cassette_of_another_run_is_refused(user: User) -> None:
    first = record(user, answer("one"), flags=("--set", "max_turns=5"))
    record(user, *one_step(step_reply("s1", "two")), flags=("-f", "tape.jsonl"))
    ended = user.agent("runs", "replay", first)
    assert (ended.exit_code, "no reply for this request" in ended.stderr) == (1, True)
