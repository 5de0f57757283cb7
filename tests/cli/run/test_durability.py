"""Full disks and kills: every event that was reported is on disk, and nothing else is reported as done."""

import json
import signal
import subprocess

import pytest

from agent.protocol.channel import log_write_error
from tests.cli.terminal_user import ProgramResult, User, answer, event_types, one_step, step_call, step_reply
from tests.docs.grammar import broken_rules
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"


def with_file_limit(user: User, kilobytes: int, *words: str) -> ProgramResult:
    """Run with a file size limit, beyond which writes fail as on a full disk."""
    line = f'ulimit -f {kilobytes}; exec "$@"'
    ended = subprocess.run(
        ["bash", "-c", line, "bash", *user.command(*words)],
        capture_output=True, stdin=subprocess.DEVNULL, cwd=user.home, timeout=60, check=False,
        # Under the limit Python would cache truncated bytecode.
        env=user.environment(PYTHONDONTWRITEBYTECODE="1"),
    )  # fmt: skip
    return ProgramResult(exit_code=ended.returncode, stdout=ended.stdout.decode(), stderr=ended.stderr.decode())


def test_a_session_that_cannot_be_saved_is_an_error_without_a_traceback(user: User) -> None:
    ended = with_file_limit(user, 0, "run", "hi", "--model", HELLO)
    assert (ended.exit_code, "Traceback" in ended.stderr) == (1, False)
    assert "cannot store the session" in ended.stderr and "--ephemeral" in ended.stderr


def test_a_full_disk_ends_the_run_with_a_result_and_a_readable_log(user: User) -> None:
    many = [step_call("s1", "run_command", command=f"echo {n} {'x' * 3000}") for n in range(30)]
    model = user.script(*one_step(*many, step_reply("s1", "done")))
    # Large enough for the sandbox to start, small enough for the log to reach it.
    ended = with_file_limit(
        user, 128, "run", "hi", "--model", model, "--session", "s", "--output-format", "stream-json"
    )
    assert (ended.exit_code, ended.events[-1]["type"], ended.events[-1]["exit_code"]) == (1, "result", 1)
    assert log_write_error("") in str(ended.events[-1]["error"])
    assert "Traceback" not in ended.stderr
    log = (user.data / "sessions/s/events.jsonl").read_text()
    assert log.endswith("\n")
    stored = [json.loads(line)["seq"] for line in log.splitlines()]
    assert broken_rules(ended.events) == []
    assert event_types(ended.events)[-3:] == ["step.completed", "error", "result"]
    ends = [event["seq"] for event in ended.events if event.get("status") == "cancelled"]
    reported = {event["seq"] for event in ended.events if event["type"] not in ("error", "result")}
    assert stored == list(range(1, len(stored) + 1))
    assert reported - set(ends) <= set(stored)


def test_a_session_can_be_continued_after_a_kill(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="sleep 60")))
    command = user.command("run", "first", "--model", model, "--session", "s", "--output-format", "stream-json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=user.environment())
    assert process.stdout
    received = []
    for line in process.stdout:
        received.append(json.loads(line))
        if received[-1]["type"] == "tool.started":
            break
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=120)
    process.stdout.close()
    log = [json.loads(line) for line in (user.data / "sessions/s/events.jsonl").read_text().splitlines()]
    durable = [event for event in received if not event.get("delta")]
    assert [event["seq"] for event in durable] == [event["seq"] for event in log][: len(durable)]
    ended = user.agent("run", "second", "--model", HELLO, "--session", "s", "--output-format", "stream-json")
    assert ended.exit_code == 0
    assert ended.events[0]["seq"] == log[-1]["seq"] + 1


def test_a_log_with_a_torn_last_line_is_read_and_continued(user: User) -> None:
    user.agent("run", "hi", "--model", HELLO, "--session", "s")
    log = user.data / "sessions/s/events.jsonl"
    log.write_bytes(log.read_bytes() + b'{"v": 1, "type": "warn')
    assert user.agent("run", "hi", "--model", HELLO, "--session", "s").exit_code == 0
    assert len(json.loads((user.data / "sessions/s/SESSION.json").read_text())["runs"]) == 2


def test_a_corrupt_session_file_is_rebuilt_from_the_log(user: User) -> None:
    user.agent("run", "hi", "--model", HELLO, "--session", "s")
    (user.data / "sessions/s/SESSION.json").write_text("{ broken")
    user.agent("run", "hi", "--model", HELLO, "--session", "s")
    assert len(json.loads((user.data / "sessions/s/SESSION.json").read_text())["runs"]) == 2


def test_a_folder_in_place_of_the_session_file_is_set_aside_with_a_warning(user: User) -> None:
    (user.data / "sessions/s/SESSION.json").mkdir(parents=True)
    ended = user.agent("run", "x", "--model", user.script(answer("done")), "--session", "s")
    assert (ended.exit_code, ended.stdout) == (0, "done\n")
    assert "warning: SESSION.json was damaged and has been rebuilt" in ended.stderr
    assert (user.data / "sessions/s/SESSION.json").is_file()
