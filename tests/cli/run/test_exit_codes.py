"""Every exit code of the contract, produced by the real program."""

import json
import os
import signal
import subprocess

import pytest

from agent.execution.result.run_status import ASK_IN_TERMINAL, NO_CHECKS
from cli.run.task_input import EMPTY_TASK, NO_TASK
from tests.cli.run.test_interruptions import wait_until
from tests.cli.terminal_user import (
    User,
    composer_reply,
    lead_call,
    lead_reply,
    one_step,
    plan,
    step,
    step_call,
    step_reply,
)
from tests.house.source_tree import ROOT
from tests.programs import require

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"


def check(user: User, code: int, *words: str, says: str = "", stdin: str | None = None, **environ: str) -> str:
    """Run with every output format and expect the same exit code, also in the documents, and no traceback."""
    text = user.agent(*words, stdin=stdin, **environ)
    assert "Traceback" not in text.stderr
    assert (text.exit_code, says in text.stderr + text.stdout) == (code, True), text
    if code != 2:
        ended = user.agent(*words, "--output-format", "json", stdin=stdin, **environ)
        assert (ended.exit_code, ended.document["exit_code"]) == (code, code), ended
        assert bool(ended.document["is_error"]) == bool(code)
        stream = user.agent(*words, "--output-format", "stream-json", stdin=stdin, **environ).events
        assert (stream[0]["type"], stream[-1]["type"], stream[-1]["exit_code"]) == ("init", "result", code)
    return text.stderr


def test_0_is_success(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    check(user, 0, "run", "hi", "--model", HELLO)


def test_1_is_a_failed_task(user: User) -> None:
    check(
        user, 1, "run", "hi", "--model", user.script(plan(step("a")), {"fault": "refused"}), says="rejected the request"
    )


def test_1_is_an_empty_answer(user: User) -> None:
    nothing = {"match": {"purpose": "step"}, "reasoning": "hm", "repeat": True}
    check(user, 1, "run", "hi", "--model", user.script(plan(step("s1")), nothing))


def test_1_is_a_script_that_ends_too_early(user: User) -> None:
    check(user, 1, "run", "hi", "--model", user.script(plan(step("a"))), says="scripted model has no reply")


def test_1_is_a_question_that_nobody_can_answer_without_a_terminal(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    model = user.script(lead_call("ask_user", question="Which color?"), lead_reply("I took red."))
    stderr = check(user, 1, "run", "paint it", "--model", model, says="unanswered question: Which color?")
    assert ASK_IN_TERMINAL in stderr
    document = user.agent("run", "paint it", "--model", model, "--output-format", "json").document
    assert (document["subtype"], document["result"]) == ("partial", "I took red.")


def test_1_is_a_task_of_which_nothing_worked(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    model = user.script(lead_call("run_command", command="cat missing"), lead_reply("There is no such file."))
    check(user, 1, "run", "show it", "--model", model, says="every attempt failed: `cat missing`")


def test_1_is_a_step_that_was_only_partial(user: User) -> None:
    model = user.script(
        plan(step("s1"), step("s2", "s1")),
        step_call("s1", "write_file", path="a.txt", content="a"),
        step_call("s1", "run_command", command="exit 3"),
        step_reply("s1", "Written, but it does not build."),
        step_reply("s2", "Reported."),
        composer_reply("It does not build."),
    )
    check(user, 1, "run", "x", "--model", model, "--replan", "never", says="s1 is incomplete: the last attempt")


def test_0_is_a_lead_that_recovered_from_failures(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    model = user.script(
        lead_call("run_command", command="grep -rn TODO ."),
        lead_call("read_file", path="missing.txt"),
        lead_call("run_command", command="exit 3"),
        lead_call("run_command", command="echo good > made.txt"),
        lead_reply("Made it."),
    )
    check(user, 0, "run", "make it", "--model", model, says="Made it.")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run",), NO_TASK),
        (("run", "x", "--nonsense"), "--nonsense"),
        (("nonsense",), "nonsense"),
        ((), "agent run"),
        (("run", "x", "-c"), "there is no session yet"),
        (("run", "x", "--callback-url", "example.org"), "--callback-url: expected a URL"),
        (("run", "x", "--output-format", "xml"), "xml"),
    ],
)
def test_2_is_a_usage_error(user: User, words: tuple[str, ...], hint: str) -> None:
    check(user, 2, *words, says=hint)


def test_41_is_a_missing_model_and_lists_ways_to_set_one(user: User) -> None:
    stderr = check(user, 41, "run", "hi", says="no model is set")
    assert all(way in stderr for way in ("--model", "agent config set model", "ollama", "agent demo"))


def test_41_is_a_missing_key(user: User) -> None:
    check(user, 41, "run", "hi", "--model", "openai/gpt-5", says="OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("  ", "--model", HELLO), EMPTY_TASK),
        (("-", "--model", HELLO), EMPTY_TASK),
        (("x", "--model", HELLO, "-f", "missing.txt"), "missing.txt"),
        (("x", "--model", HELLO, "-i", "missing.txt"), "missing.txt"),
        (("x", "--model", HELLO, "-C", "missing"), "missing"),
        (("x", "--model", HELLO, "--session", "../evil"), "../evil"),
        (("x", "--model", HELLO, "--output-schema", "missing.json"), "missing.json"),
        (("x", "--model", HELLO, "-o", "missing/answer.txt"), "missing"),
        (("x", "--model", "script:missing.jsonl"), "missing.jsonl"),
        (("x", "--replay", "missing.jsonl"), "missing.jsonl"),
    ],
)
def test_42_is_a_bad_prompt_or_attachment(user: User, words: tuple[str, ...], hint: str) -> None:
    check(user, 42, "run", *words, says=hint, stdin="" if words[0] == "-" else None)


@pytest.mark.parametrize("words", [("run", "x", "--model", HELLO), ("exec", "--", "ls")], ids=lambda words: words[0])
def test_44_is_a_backend_that_is_not_there(user: User, words: tuple[str, ...]) -> None:
    socket = user.home / "missing.sock"
    ended = user.agent(words[0], "--backend", "docker", *words[1:], DOCKER_HOST=f"unix://{socket}")
    assert ended.exit_code == 44
    assert f"no Docker engine is running: there is no socket {socket}" in ended.stderr
    assert "hint: start it (systemctl start docker), or leave out --backend docker" in ended.stderr


def test_52_is_an_invalid_setting(user: User) -> None:
    check(user, 52, "run", "x", "--model", HELLO, AGENT_CONCURRENCY="0", says="AGENT_CONCURRENCY")
    (user.home / ".config/agent").mkdir(parents=True)
    config = user.home / ".config/agent/config.toml"
    for text, hint in (
        ("modle = 'x'", "did you mean model?"),
        ("approval_mode = 'maybe'", "maybe"),
        ("timeout_s = -1", "more than 0"),
    ):
        config.write_text(text)
        check(user, 52, "run", "x", "--model", HELLO, says=hint)


def test_53_is_the_step_limit(user: User) -> None:
    done = {"match": {"purpose": "step"}, "text": "done", "repeat": True}
    model = user.script(plan(*(step(f"s{n}") for n in range(3))), done, composer_reply("two of three"))
    check(user, 53, "run", "x", "--model", model, "--max-steps", "2", says="two of three")


def test_53_is_the_turn_limit(user: User) -> None:
    model = user.script(plan(step("s1")), {**step_call("s1", "run_command", command="true"), "repeat": True})
    check(user, 53, "run", "x", "--model", model, "--max-turns", "3", says="limit of 3 turns")


def test_54_is_a_tool_that_keeps_failing(user: User) -> None:
    model = user.script(plan(step("s1")), {**step_call("s1", "read_file", path="missing"), "repeat": True})
    check(user, 54, "run", "x", "--model", model, says="missing")


def test_56_is_an_exhausted_budget_with_a_partial_answer(user: User) -> None:
    dear = {"usage": {"input_tokens": 20_000, "output_tokens": 100}}
    model = user.script(
        plan(step("a"), step("b", "a")), {**step_reply("a", "a is done"), **dear}, step_reply("b", "never said")
    )
    check(user, 56, "run", "x", "--model", model, "--max-tokens", "21000", says="a is done")


def test_56_is_a_budget_too_small_to_compose_the_answer(user: User) -> None:
    spent = {"usage": {"input_tokens": 5_000}}
    model = user.script(
        plan(step("a"), step("b", "a")), step_reply("a", "a is done"), step_reply("b", "b is done", **spent)
    )
    check(user, 56, "run", "x", "--model", model, "--max-tokens", "4000", says="a is done\n\nb is done")


def test_57_is_a_denied_command(user: User) -> None:
    model = user.script(
        *one_step(step_call("s1", "run_command", command="git push"), step_reply("s1", "could not push"))
    )
    stderr = check(user, 57, "run", "x", "--model", model, says="could not push")
    assert "git push" in stderr
    document = user.agent("run", "x", "--model", model, "--output-format", "json").document
    assert document["permission_denials"] == ["git push"]


def test_57_names_a_rule_that_allows_the_command(user: User) -> None:
    model = user.script(
        *one_step(step_call("s1", "run_command", command="git push --dry-run"), step_reply("s1", "done"))
    )
    denied = user.agent("run", "x", "--model", model, "--output-format", "json").document
    output = denied["step_results"][0]["tool_calls"][0]["output_preview"]
    assert "--allow 'git push'" in output
    allowed = user.agent("run", "x", "--model", model, "--allow", "git push", "--output-format", "json")
    assert allowed.document["step_results"][0]["tool_calls"][0]["status"] != "denied"


def test_57_is_a_deferred_command_listed_in_the_result(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="git push"), step_reply("s1", "waiting")))
    check(user, 57, "run", "x", "--model", model, "--on-approval", "defer")
    ended = user.agent("run", "x", "--model", model, "--on-approval", "defer", "--output-format", "json")
    assert ended.document["deferred"] == ["git push"]


def test_57_with_on_approval_fail_stops_the_run(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="git push")))
    check(user, 57, "run", "x", "--model", model, "--on-approval", "fail", says="needs approval")


def test_57_is_a_blocked_command_even_in_yolo_mode(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="rm -rf /"), step_reply("s1", "would not")))
    check(user, 57, "run", "x", "--model", model, "--approval-mode", "yolo")


def test_58_is_a_success_without_a_passed_check(user: User) -> None:
    model = user.script(*one_step(step_reply("s1", "done")))
    check(user, 58, "run", "x", "--model", model, "--require-verified", says=NO_CHECKS)
    check(user, 58, "run", "x", "--model", model, AGENT_REQUIRE_VERIFIED="true")


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ({"fault": "reset"}, "connection was lost"),
        # Longer than the longest wait, so the run ends at once.
        ({"fault": "overloaded", "retry_after_s": 3600}, "overloaded"),
    ],
)
def test_75_is_a_temporary_provider_failure(user: User, fault: dict[str, object], hint: str) -> None:
    check(user, 75, "run", "x", "--model", user.script({**fault, "repeat": True}), says=hint)


def test_124_is_the_time_limit_with_a_partial_answer(user: User) -> None:
    model = user.script(
        plan(step("a"), step("b", "a")), step_reply("a", "a is done"), step_reply("b", "late", delay_ms=60_000)
    )
    check(user, 124, "run", "x", "--model", model, "--timeout", "1.5", says="a is done")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_130_and_143_are_signals_and_no_process_survives(user: User, number: int, code: int) -> None:
    seconds = f"31{os.getpid()}"
    model = user.script(*one_step(step_call("s1", "run_command", command=f"sleep {seconds} & sleep {seconds}")))
    command = user.command("run", "x", "--model", model, "--output-format", "stream-json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=user.environment())
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if lines[-1]["type"] == "tool.started":
            break
    wait_until(lambda: _running_sleeps(seconds) == 2)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=120)
    lines += [json.loads(line) for line in rest.splitlines()]
    assert (process.returncode, lines[-1]["type"], lines[-1]["exit_code"]) == (code, "result", code)
    assert [line["status"] for line in lines if line["type"] == "step.completed"] == ["cancelled"]
    assert _running_sleeps(seconds) == 0


def _running_sleeps(seconds: str) -> int:
    require("pgrep")
    pgrep = subprocess.run(["pgrep", "-fc", f"^sleep {seconds}"], capture_output=True, text=True, check=False)
    return int(pgrep.stdout or 0)
