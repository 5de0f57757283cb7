"""Steps in the real program: checks, timeouts, repetition, interrupts during a call."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.run.test_interruptions import wait_until
from tests.cli.terminal_user import ProgramResult, User, plan, step, step_call, step_reply
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
STREAM = ("--output-format", "stream-json", "--approval-mode", "yolo", "--backend", "host", "--replan", "never")


def run(user: User, *replies: dict[str, object], flags: tuple[str, ...] = ()) -> ProgramResult:
    ended = user.agent("run", "x", "--model", user.script(*replies), *STREAM, "-C", str(user.home), *flags)
    assert broken_rules(ended.events) == []
    return ended


def events_of_type(ended: ProgramResult, kind: str) -> list[dict[str, object]]:
    return [event for event in ended.events if event["type"] == kind]


def is_running(pid_file: Path) -> bool:
    try:
        stat = Path(f"/proc/{pid_file.read_text().strip()}/stat").read_text()
    except FileNotFoundError:
        return False
    # A process that has exited may still be a zombie.
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_the_model_repairs_a_failed_check(user: User) -> None:
    ended = run(
        user,
        plan(step("s1", verify="test -f made")),
        step_reply("s1", "done, I think"),
        step_call("s1", "run_command", command="touch made"),
        step_reply("s1", "now it is there"),
    )
    (completed,) = events_of_type(ended, "step.completed")
    assert (ended.exit_code, completed["status"], completed["verified"]) == (0, "ok", True)
    checks = [
        event for event in events_of_type(ended, "tool.completed") if str(event["tool_id"]).startswith("s1.check.")
    ]
    assert [event["exit_code"] for event in checks] == [1, 0]


def test_thoughts_stream_apart_from_the_answer_and_are_not_logged(user: User) -> None:
    replies = (
        plan(step("s1")),
        {**step_call("s1", "run_command", command="true"), "reasoning": "First I try. "},
        step_reply("s1", "It works.", reasoning="So it works. ", chunks=2),
    )
    ended = run(user, *replies)
    messages = [event for event in events_of_type(ended, "message") if event["role"] == "thought"]
    assert "".join(str(event["content"]) for event in messages) == "First I try. So it works. "
    assert all(event["delta"] and event["step_id"] == "s1" for event in messages)
    assert ended.events[-1]["result"] == "It works."
    (log,) = user.data.glob("sessions/*/events.jsonl")
    assert '"thought"' not in log.read_text()
    text = user.agent("run", "x", "--model", user.script(*replies), "--approval-mode", "yolo", "--backend", "host")
    assert (text.exit_code, text.stdout) == (0, "It works.\n")
    assert "So it works" not in text.stderr


def test_a_step_timeout_kills_everything_the_step_started(user: User) -> None:
    command = "sleep 60 & echo $! > child; echo $$ > parent; sleep 60"
    # On a busy machine the command may not have started within a short limit.
    for limit in (1, 5, 25):
        ended = run(user, plan(step("s1", timeout_s=limit)), step_call("s1", "run_command", command=command))
        if (user.home / "parent").exists():
            break
    (completed,) = events_of_type(ended, "step.completed")
    assert (ended.exit_code, completed["status"], completed["evidence"]) == (124, "timeout", ["run_command exit 130"])
    assert not is_running(user.home / "child") and not is_running(user.home / "parent")
    (call,) = events_of_type(ended, "tool.completed")
    assert (call["status"], "may or may not have had its effect" in str(call["output"])) == ("cancelled", True)


def test_an_interrupt_reports_the_stopped_call_and_the_cancelled_ones(user: User) -> None:
    calls = [
        {"name": "run_command", "arguments": {"command": line}} for line in ("touch started; sleep 60", "touch late")
    ]
    replies = (plan(step("s1")), {"match": {"purpose": "step", "step": "s1"}, "tool_calls": calls})
    words = user.command("run", "x", "--model", user.script(*replies), *STREAM, "-C", str(user.home))
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=user.environment(), cwd=user.home)
    wait_until((user.home / "started").exists)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=120)
    events = [json.loads(line) for line in stdout.splitlines()]
    assert (process.returncode, broken_rules(events), (user.home / "late").exists()) == (130, [], False)
    outputs = [str(event["output"]) for event in events if event["type"] == "tool.completed"]
    assert [output.partition(":")[0] for output in outputs] == ["Unknown", "Cancelled"]


def test_a_step_that_repeats_itself_is_stopped(user: User) -> None:
    (user.home / "a.txt").write_text("the same")
    ended = run(user, plan(step("s1")), {**step_call("s1", "read_file", path="a.txt"), "repeat": True})
    (completed,) = events_of_type(ended, "step.completed")
    assert (ended.exit_code, completed["status"], len(events_of_type(ended, "tool.completed"))) == (1, "error", 4)
    assert "repeats itself" in str(completed["summary"])


def test_parallel_steps_share_one_budget(user: User) -> None:
    names = [f"s{number}" for number in range(6)]
    spent = {"usage": {"input_tokens": 2000, "output_tokens": 100}}
    replies = [step_reply(name, f"{name} is done", **spent) for name in names]
    ended = run(user, plan(*(step(name) for name in names)), *replies, flags=("--max-tokens", "9000"))
    result = ended.events[-1]
    assert (ended.exit_code, result["subtype"]) == (56, "error_budget")
    usage = result["usage"]
    assert isinstance(usage, dict) and usage["input_tokens"] + usage["output_tokens"] <= 9000
    assert (
        len(events_of_type(ended, "budget"))
        == len([event for event in events_of_type(ended, "step.completed") if event["status"] == "ok"]) + 1
    )


def run_in_sandbox(user: User, *replies: dict[str, object]) -> ProgramResult:
    words = ("--output-format", "stream-json", "--replan", "never", "-C", str(user.home))
    ended = user.agent("run", "x", "--model", user.script(*replies), *words)
    assert broken_rules(ended.events) == []
    return ended


def test_a_planned_check_that_fails_before_and_after_alike_does_not_fail_the_step(user: User) -> None:
    ended = run_in_sandbox(
        user,
        plan(step("s1", verify="cat found.txt")),
        step_reply("s1", "the answer is 42"),
        step_reply("s1", "the answer is 42"),
        step_reply("s1", "the answer is 42"),
    )
    (completed,) = events_of_type(ended, "step.completed")
    assert (ended.exit_code, completed["status"], completed.get("verified")) == (0, "ok", None)
    # Without bubblewrap there is a second warning.
    warnings = [str(event["message"]) for event in events_of_type(ended, "warning")]
    assert any("`cat found.txt` does not count: it fails in the same way" in warning for warning in warnings)


def test_nobody_is_asked_to_approve_a_planned_check_before_its_step(user: User) -> None:
    ended = run_in_sandbox(
        user, plan(step("s1", verify="curl https://example.org")), step_reply("s1", "the answer is 42")
    )
    (completed,) = events_of_type(ended, "step.completed")
    assert (completed["status"], completed.get("verified")) == ("ok", None)
    assert len(events_of_type(ended, "approval.requested")) == 1
