"""Edge cases found by trying the program; each was wrong once."""

import json
import os
import subprocess

import pytest
from typer.testing import CliRunner

from agent.execution.result.structured import schema_mismatch, unresolvable_schema
from cli.command_table import COMMANDS
from cli.typer_program import PIPE_HINT, build_application
from tests.cli.terminal_user import User, answer, one_step, plan, step, step_call, step_reply
from tests.house.source_tree import ROOT
from tests.programs import needs

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"


@pytest.mark.parametrize("words", [(), ("x", "--fork"), ("x", "--ephemeral", "--session", "s")])
def test_usage_errors_are_also_reported_as_json(user: User, words: tuple[str, ...]) -> None:
    ended = user.agent("run", "--output-format", "json", *words)
    assert (ended.exit_code, ended.document["exit_code"], "Traceback" in ended.stderr) == (2, 2, False)


@pytest.mark.parametrize("value", [[], 0, False, "", {}])
def test_structured_output_may_be_empty(user: User, value: object) -> None:
    (user.home / "schema.json").write_text("{}")
    model = user.script(answer(json.dumps(value) or '""'))
    ended = user.agent("run", "x", "--model", model, "--output-schema", "schema.json", "--output-format", "json")
    assert ended.document["structured_output"] == value


def test_a_cost_limit_stops_a_run_whose_price_is_unknown(user: User) -> None:
    model = user.script({**plan(step("s1")), "usage": {"cost_usd": None}}, step_reply("s1", "never asked"))
    ended = user.agent("run", "x", "--model", model, "--max-budget-usd", "1")
    assert (ended.exit_code, ended.stdout) == (56, "")
    assert "price is unknown" in ended.stderr


def test_an_error_is_not_printed_as_the_answer(user: User) -> None:
    ended = user.agent("run", "x", "-q", "--model", HELLO, "-f", "missing.txt", "-o", "answer.txt")
    assert (ended.exit_code, ended.stdout) == (42, "")
    assert "missing.txt" in ended.stderr
    assert (user.home / "answer.txt").read_text() == "\n"


def test_a_step_profile_of_the_user_is_used(user: User) -> None:
    profile = ("--set", 'step_profiles.careful.allowed_tools=["read_file"]')
    model = user.script(
        plan(step("s1", profile="careful")), step_call("s1", "run_command", command="true"), step_reply("s1", "ok")
    )
    ended = user.agent("run", "x", "--model", model, *profile, "--output-format", "json")
    assert ended.document["step_results"][0]["tool_calls"][0]["exit_code"] == 126


def test_an_unknown_tool_in_a_profile_is_a_settings_error(user: User) -> None:
    ended = user.agent("run", "x", "--model", HELLO, "--set", 'step_profiles.p.allowed_tools=["raed_file"]')
    assert (ended.exit_code, "did you mean read_file?" in ended.stderr) == (52, True)


def test_two_input_files_with_the_same_name_are_refused(user: User) -> None:
    for folder in ("a", "b"):
        (user.home / folder).mkdir()
        (user.home / folder / "d.txt").write_text(folder)
    (user.home / "work").mkdir()
    ended = user.agent("run", "x", "--model", HELLO, "-C", "work", "-i", "a/d.txt", "-i", "b/d.txt")
    assert (ended.exit_code, "already exists" in ended.stderr) == (42, True)
    # What was copied before the failure is removed again.
    assert list((user.home / "work").iterdir()) == []


def test_the_same_input_file_may_be_given_again(user: User) -> None:
    (user.home / "d.txt").write_text("data")
    (user.home / "work").mkdir()
    words = ("run", "x", "--model", HELLO, "-C", "work", "-i", "d.txt")
    assert user.agent(*words, "-i", "d.txt").exit_code == 0
    assert user.agent(*words, "-c").exit_code == 0
    assert user.agent(*words[:-1], "work/input/d.txt").exit_code == 0
    assert [path.name for path in (user.home / "work" / "input").iterdir()] == ["d.txt"]
    (user.home / "d.txt").write_text("changed")
    assert user.agent(*words).exit_code == 42
    assert (user.home / "work" / "input" / "d.txt").read_text() == "data"


@pytest.mark.parametrize("link", ["input", "input/d.txt"])
def test_an_input_file_is_not_copied_through_a_link_in_the_folder(user: User, link: str) -> None:
    (user.home / "d.txt").write_text("data")
    (user.home / "outside").mkdir()
    planted = user.home / "work" / link
    planted.parent.mkdir(parents=True)
    planted.symlink_to(user.home / "outside" / ("new.txt" if "/" in link else ""))
    assert user.agent("run", "x", "--model", HELLO, "-C", "work", "-i", "d.txt").exit_code == 42
    assert list((user.home / "outside").iterdir()) == []


def test_an_input_file_never_overwrites_a_file_of_the_user(user: User) -> None:
    (user.home / "input").mkdir()
    (user.home / "input" / "d.txt").write_text("mine")
    (user.home / "d.txt").write_text("other")
    assert user.agent("run", "x", "--model", HELLO, "-C", ".", "-i", "d.txt").exit_code == 42
    assert (user.home / "input" / "d.txt").read_text() == "mine"


LOST = {">/dev/full": "No space left on device", ">&-": "stdout is closed"}


def run_in_shell(user: User, redirection: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command line with redirected streams."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {redirection}', "bash", *user.command(*words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=user.environment(),
        cwd=user.home,
        timeout=60,
        check=False,
    )


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("redirection", LOST)
@pytest.mark.parametrize(
    "words",
    [("config", "show"), ("tools", "list", "--json"), ("--help",), ("--version",), ("doctor",), ("exec", "--", "pwd")],
    ids=" ".join,
)
def test_every_command_fails_if_stdout_cannot_be_written(user: User, words: tuple[str, ...], redirection: str) -> None:
    ended = run_in_shell(user, redirection, *words)
    said = [line for line in ended.stderr.splitlines() if not line.startswith("warning: ")]
    assert (ended.returncode, said) == (1, [f"error: could not write the output: {LOST[redirection]}"])


@pytest.mark.parametrize("redirection", LOST)
@pytest.mark.parametrize("output_format", ["text", "json"])
def test_an_answer_that_could_not_be_written_can_be_read_later(
    user: User, redirection: str, output_format: str
) -> None:
    model = user.script(answer("All is well."))
    ended = run_in_shell(user, redirection, "run", "x", "--model", model, "--output-format", output_format)
    assert ended.returncode == 1
    assert f"error: could not write the answer: {LOST[redirection]}" in ended.stderr
    (hint,) = (line for line in ended.stderr.splitlines() if line.startswith("hint: "))
    assert "All is well." in user.agent(*hint.partition("agent ")[2].split()).stdout


def test_an_unsaved_answer_that_could_not_be_written_is_lost_and_said_so(user: User) -> None:
    ended = run_in_shell(user, ">&-", "run", "x", "--model", user.script(answer("All is well.")), "--ephemeral")
    assert (ended.returncode, "run it again with -o FILE" in ended.stderr) == (1, True)


def test_a_stream_of_events_that_nobody_gets_is_no_success(user: User) -> None:
    model = user.script(answer("All is well."))
    ended = run_in_shell(user, ">&-", "run", "x", "--model", model, "--output-format", "stream-json")
    assert (ended.returncode, "stdout was closed" in ended.stderr) == (143, True)


def test_all_data_folders_are_private_to_their_owner(user: User) -> None:
    user.agent("run", "x", "--model", HELLO, "--session", "s")
    folders = [user.data, *(path for path in user.data.rglob("*") if path.is_dir())]
    assert {oct(path.stat().st_mode & 0o777) for path in folders} == {"0o700"}


def test_the_workspace_is_the_given_folder(user: User) -> None:
    events = user.agent("run", "x", "--model", HELLO, "-C", ".", "--output-format", "stream-json").events
    assert events[0]["workspace"] == events[0]["cwd"] == str(user.home)


@needs("pgrep")
def test_a_background_command_can_be_read_and_ends_with_the_run(user: User) -> None:
    seconds = f"47{os.getpid()}"
    command = f"for n in 1 2 3; do echo tick $n; sleep 0.1; done; touch ticked; sleep {seconds}"
    model = user.script(
        *one_step(
            step_call("s1", "run_command", command=command, background=True),
            step_call("s1", "run_command", command="until [ -e ticked ]; do sleep 0.05; done"),
            step_call("s1", "manage_jobs", action="output", id="job1"),
            step_call("s1", "manage_jobs", action="list"),
            step_reply("s1", "done"),
        )
    )
    ended = user.agent("run", "x", "--model", model, "--output-format", "json")
    outputs = [call["output_preview"] for call in ended.document["step_results"][0]["tool_calls"]]
    assert outputs[0].startswith("Started job1")
    assert "tick 3" in outputs[2]
    assert "job1: running" in outputs[3]
    assert subprocess.run(["pgrep", "-f", f"^sleep {seconds}"], capture_output=True, check=False).returncode == 1


def test_a_background_command_that_exits_at_once_is_an_error(user: User) -> None:
    model = user.script(
        *one_step(
            step_call("s1", "run_command", command="echo no; exit 3", background=True), step_reply("s1", "it failed")
        )
    )
    ended = user.agent("run", "x", "--model", model, "--output-format", "json")
    fact = ended.document["step_results"][0]["tool_calls"][0]
    assert (fact["status"], "exited with 3" in fact["output_preview"]) == ("error", True)


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_works_with_closed_streams(user: User, streams: str) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="echo hi"), step_reply("s1", "done")))
    words = user.command("run", "x", "--model", model, "-o", "answer.txt")
    ended = subprocess.run(
        ["bash", "-c", f'"$@" {streams}', "bash", *words],
        env=user.environment(),
        cwd=user.home,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, (user.home / "answer.txt").read_text(), b"Traceback" in ended.stderr) == (
        0,
        "done\n",
        False,
    )


def test_an_endless_attachment_is_refused(user: User) -> None:
    ended = user.agent("run", "x", "--model", HELLO, "-f", "/dev/zero")
    assert (ended.exit_code, "too large" in ended.stderr) == (42, True)


def test_the_error_event_and_the_result_agree_on_exit_code_and_cause(user: User) -> None:
    (user.home / ".config/agent").mkdir(parents=True)
    (user.home / ".config/agent/config.toml").write_text("[step_profiles.quick]\ntimeout_s = 0.3\n")
    model = user.script(plan(step("b", "a"), step("a", profile="quick")), step_reply("a", "late", delay_ms=60_000))
    alone = user.script(plan(step("a", profile="quick")), step_reply("a", "late", delay_ms=60_000), name="alone.jsonl")
    for played, code in ((model, 124), (alone, 124)):
        events = user.agent("run", "x", "--model", played, "--output-format", "stream-json").events
        error, result = (event for event in events if event["type"] in ("error", "result"))
        assert (error["exit_code"], result["exit_code"], error["message"], result["error"]) == (
            code,
            code,
            "Stopped at the time limit of 0.3 s.",
            "Stopped at the time limit of 0.3 s.",
        )


@pytest.mark.parametrize("length", ["99999999999d", "7", "xd"])
def test_an_invalid_duration_is_a_usage_error(user: User, length: str) -> None:
    ended = user.agent("rules", "test", "--against", length)
    assert (ended.exit_code, "Traceback" in ended.stderr) == (2, False)


def test_deeply_nested_json_in_an_answer_is_not_an_internal_error(user: User) -> None:
    (user.home / "schema.json").write_text("{}")
    model = user.script(answer("[" * 5_000), {"match": {"purpose": "repair"}, "text": "[" * 5_000})
    ended = user.agent("run", "x", "--model", model, "--output-schema", "schema.json")
    assert (ended.exit_code, "internal error" in ended.stderr, "not JSON" in ended.stderr) == (1, False, True)


def test_a_quiet_run_still_prints_why_it_failed(user: User) -> None:
    (user.home / "schema.json").write_text('{"type": "object"}')
    misfit = user.script(answer("1"), {"match": {"purpose": "repair"}, "text": "2"})
    steps = {"match": {"purpose": "step"}, "text": "ok", "repeat": True}
    long = user.script(plan(step("a"), step("b")), steps, name="long.jsonl")
    for flags, code, reason in (
        ((misfit, "--output-schema", "schema.json"), 1, schema_mismatch("")),
        ((long, "--max-steps", "1"), 53, "more than the limit of 1"),
    ):
        ended = user.agent("run", "x", "-q", "--model", *flags)
        assert (ended.exit_code, reason in ended.stderr) == (code, True)


def test_the_answer_is_printed_even_if_its_file_cannot_be_written(user: User) -> None:
    ended = user.agent("run", "x", "--model", user.script(answer("all is well")), "-o", "/dev/full")
    assert (ended.exit_code, ended.stdout, "No space left" in ended.stderr) == (1, "all is well\n", True)


def test_a_prompt_may_start_with_a_dash(user: User) -> None:
    assert user.agent("-p", "-1 plus 2", "--model", HELLO).stdout == "Hello from Windlass.\n"


def test_a_remote_schema_reference_is_never_fetched(user: User) -> None:
    (user.home / "schema.json").write_text(json.dumps({"$ref": "http://127.0.0.1:9/schema.json"}))
    model = user.script(answer('{"n": 1}'))
    ended = user.agent("run", "x", "--model", model, "--output-schema", "schema.json")
    assert (ended.exit_code, unresolvable_schema("") in ended.stderr) == (42, True)


def test_the_saved_output_of_a_background_command_has_no_secrets(user: User) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    model = user.script(
        *one_step(
            step_call("s1", "run_command", command=f"echo {token}; sleep 60", background=True),
            step_call("s1", "run_command", command="sleep 0.3"),
            step_reply("s1", "done"),
        )
    )
    user.agent("run", "x", "--model", model, "--session", "s")
    outputs = [path.read_text() for path in (user.data / "sessions/s/outputs").iterdir()]
    assert outputs == ["[REDACTED]\n"]


def test_no_help_line_is_truncated() -> None:
    groups = [entry.name for entry in COMMANDS if entry.is_group]
    pages = [
        CliRunner().invoke(build_application(name), [name, "--help"] if name else ["--help"]) for name in ("", *groups)
    ]
    assert [line for page in pages for line in page.output.splitlines() if line.endswith("...")] == [
        "Usage: root [OPTIONS] COMMAND [ARGS]...",
        *(f"Usage: root {name} [OPTIONS] COMMAND [ARGS]..." for name in groups),
    ]


def test_a_task_in_place_of_a_command_gets_a_hint(user: User) -> None:
    ended = user.agent("fix the bug")
    assert (ended.exit_code, "agent run 'fix the bug'" in ended.stderr) == (2, True)
    assert "did you mean sessions" in user.agent("session").stderr
    piped = user.agent(stdin="a task")
    assert (piped.exit_code, PIPE_HINT in piped.stderr) == (2, True)
    assert user.agent("-c", "run", "x").exit_code == 2
