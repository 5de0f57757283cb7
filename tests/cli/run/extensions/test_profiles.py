"""Profiles: settings and rights of a run, and of single steps."""

import pytest

from tests.cli.terminal_user import (
    ProgramResult,
    User,
    composer_reply,
    lead_call,
    lead_reply,
    plan,
    step,
    step_call,
    step_reply,
)

pytestmark = pytest.mark.slow
AUDIT = """
[profiles.audit]
tools = ["read_file"]
instructions = "Answer in one line."
max_turns = 7
"""


def run(user: User, *replies: dict[str, object], words: tuple[str, ...] = (), **environ: str) -> ProgramResult:
    model = user.script(*replies)
    arguments = ("run", "look", "--model", model, "--output-format", "stream-json", "-C", ".", *words)
    return user.agent(*arguments, **{"AGENT_PLANNING": "auto", **environ})


def events(ended: ProgramResult, kind: str) -> list[dict[str, object]]:
    return [event for event in ended.events if event["type"] == kind]


def outputs(ended: ProgramResult) -> str:
    return "\n".join(str(event["output"]) for event in events(ended, "tool.completed"))


def write_config(user: User, text: str) -> None:
    (user.home / ".config/agent").mkdir(parents=True, exist_ok=True)
    (user.home / ".config/agent/config.toml").write_text(text)


def test_a_profile_of_the_user_gives_a_run_its_tools_and_instructions(user: User) -> None:
    write_config(user, AUDIT)
    ended = run(
        user,
        lead_call("run_command", command="touch made"),
        lead_reply("done"),
        words=("--profile", "audit"),
    )
    assert events(ended, "init")[0]["tools"] == ["read_file", "plan"]
    assert "The tool run_command is not available in this step." in outputs(ended)
    said = "".join(str(event["content"]) for event in events(ended, "message") if event["role"] == "context")
    assert "<instructions>\nAnswer in one line.\n</instructions>" in said
    assert not (user.home / "made").exists()


def test_an_unknown_tool_in_a_profile_is_named_before_anything_runs(user: User) -> None:
    write_config(user, '[profiles.audit]\ntools = ["raed_file"]\n')
    ended = user.agent("run", "x", "--model", user.script(lead_reply("hi")), "--profile", "audit")
    assert (ended.exit_code, "unknown tool 'raed_file', did you mean read_file?" in ended.stderr) == (52, True)


def test_a_reviewer_reads_and_changes_nothing(user: User) -> None:
    (user.home / "notes.txt").write_text("the notes")
    ended = run(
        user,
        lead_call("run_command", command="cat notes.txt"),
        lead_call("run_command", command="touch made"),
        lead_call("write_file", path="made", content="x"),
        lead_reply("done"),
        words=("--profile", "reviewer", "--approval-mode", "yolo"),
    )
    assert ended.exit_code == 0
    assert "the notes" in outputs(ended)
    assert "This profile only reads" in outputs(ended)
    assert not (user.home / "made").exists()


def test_a_developer_has_no_tools_at_all(user: User) -> None:
    ended = run(user, lead_reply("from knowledge"), words=("--profile", "developer"))
    assert (events(ended, "init")[0]["tools"], ended.exit_code) == ([], 0)


def test_an_unknown_profile_names_those_there_are(user: User) -> None:
    ended = user.agent("run", "x", "--model", user.script(), "--profile", "reviwer")
    assert (ended.exit_code, "did you mean reviewer?" in ended.stderr) == (2, True)


def test_a_step_has_the_rights_of_its_profile_and_no_more_than_the_run(user: User) -> None:
    write_config(user, AUDIT)
    ended = run(
        user,
        plan(step("s1", profile="audit"), step("s2", "s1")),
        step_call("s1", "run_command", command="touch made"),
        step_reply("s1", "looked"),
        step_call("s2", "write_file", path="made", content="x"),
        step_reply("s2", "looked"),
        composer_reply("done"),
        words=("--planning", "always", "--profile", "reviewer", "--approval-mode", "yolo"),
    )
    assert "The tool run_command is not available in this step. Available: read_file." in outputs(ended)
    assert "The tool write_file is not available in this step." in outputs(ended)
    assert not (user.home / "made").exists()


@pytest.mark.parametrize("named", [[], ["bash"]])
def test_a_planned_step_with_no_known_tool_has_none(user: User, named: list[str]) -> None:
    ended = run(
        user,
        plan(step("s1", allowed_tools=named)),
        step_call("s1", "run_command", command="touch made"),
        step_reply("s1", "looked"),
        words=("--planning", "always", "--approval-mode", "yolo"),
    )
    assert "The tool run_command is not available in this step. Available: none." in outputs(ended)
    assert not (user.home / "made").exists()


def test_rules_for_shared_places_apply_in_ci(user: User) -> None:
    def treatment(**environ: str) -> str:
        ended = run(user, lead_call("run_command", command="true || sleep infinity"), lead_reply("done"), **environ)
        return str(events(ended, "tool.completed")[0]["status"])

    assert (treatment(), treatment(CI="false"), treatment(CI="true")) == ("ok", "ok", "denied")
