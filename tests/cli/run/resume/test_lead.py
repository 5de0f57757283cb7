"""A lead on the command line: killed and resumed, continued, too long, shortened."""

import json
import signal
from collections.abc import Callable

import pytest

from tests.cli.run.resume.test_resume import STREAM, is_event, run_until
from tests.cli.terminal_user import ProgramResult, User, hand_out, lead_call, lead_reply, step, step_call, step_reply
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
Stop = Callable[[dict[str, object]], bool]


@pytest.fixture
def user(user: User) -> User:
    user.environ["AGENT_PLANNING"] = "auto"
    return user


def handed_out(user: User, **more: object) -> str:
    """Script a lead with two steps, each of which appends a line to a file, the second after a while."""
    return user.script(
        hand_out(step("a"), step("b", "a")) | {"chunks": 30, "chunk_delay_ms": 30},
        step_call("a", "run_command", command="echo a >> out.txt"),
        step_reply("a", "a is done"),
        step_call("b", "run_command", command="sleep 1; echo b >> out.txt"),
        step_reply("b", "b is done"),
        lead_reply("Both are there.") | {"chunks": 3, "chunk_delay_ms": 500},
    )


def is_answering(event: dict[str, object]) -> bool:
    return event["type"] == "message" and bool(event.get("delta")) and event.get("step_id") == "lead"


STOPS: dict[str, Stop] = {
    "while the plan streams": is_event("step.completed", "a"),
    "while a step runs": is_event("tool.started", "b"),
    "while the lead answers": is_answering,
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_lead_is_resumed_and_no_finished_step_runs_twice(user: User, stop: str, number: int) -> None:
    run_until(user, "run", "do it", "--model", handed_out(user), "--session", "s", at=STOPS[stop], by=number)
    user.script(
        step_call("b", "run_command", command="grep -qsx b out.txt || echo b >> out.txt"),
        step_reply("b", "b is done"),
        # Only what was written of the plan is known: the lead plans the rest.
        {"match": {"purpose": "lead", "contains": 'step="b"'}, "text": "Both are there.", "repeat": True},
        {"match": {"purpose": "lead", "contains": "You were interrupted"}, "text": "Both are there.", "repeat": True},
        hand_out(step("a"), step("b", "a")),
    )
    ended = user.agent("resume", *STREAM)
    assert (ended.exit_code, ended.events[-1]["result"]) == (0, "Both are there."), ended.stderr
    assert broken_rules(ended.events) == []
    assert (user.data / "sessions/s/workspace/out.txt").read_text() == "a\nb\n"


def sent(user: User) -> list[dict[str, object]]:
    """Return the messages of the last recorded request."""
    last = json.loads((user.home / "tape.jsonl").read_text().splitlines()[-1])
    return list(last["request"]["messages"])


def ask(user: User, *words: str) -> ProgramResult:
    """Continue a session and record what the model is sent."""
    (user.home / "tape.jsonl").unlink(missing_ok=True)
    model = user.script(lead_reply("I know."))
    return user.agent("run", *words, "--model", model, "--record", str(user.home / "tape.jsonl"), *STREAM)


def test_a_new_request_knows_what_an_interrupted_one_did(user: User) -> None:
    model = user.script(
        lead_call("run_command", command="echo the first result"),
        lead_call("run_command", command="sleep 60"),
    )
    seconds = [0]

    def is_second_call(event: dict[str, object]) -> bool:
        seconds[0] += event["type"] == "tool.started"
        return seconds[0] == 2

    run_until(user, "run", "look around", "--model", model, at=is_second_call, by=signal.SIGINT)
    assert ask(user, "-c", "what did you find?").exit_code == 0
    roles = [message["role"] for message in sent(user)]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "user"]
    assert "the first result" in str(sent(user)[3]) and "what did you find?" in str(sent(user)[-1])


def test_a_new_request_knows_what_a_failed_one_did(user: User) -> None:
    model = user.script(
        lead_call("run_command", command="echo the first result"), {"match": {"purpose": "lead"}, "fault": "refused"}
    )
    failed = user.agent("run", "look around", "--model", model)
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "the provider rejected the request" in failed.stderr and "hint: " in failed.stderr
    assert ask(user, "-c", "what did you find?").exit_code == 0
    assert "the first result" in str(sent(user)[3])


def test_a_copy_of_a_session_has_its_conversation_and_leaves_the_original_alone(user: User) -> None:
    model = user.script(lead_call("run_command", command="echo the first result"), lead_reply("Seen."))
    user.agent("run", "look around", "--model", model, "--session", "s")
    log = (user.data / "sessions/s/events.jsonl").read_bytes()
    copied = ask(user, "-r", "s", "--fork", "and now?")
    assert copied.exit_code == 0 and copied.events[0]["session_id"] != "s"
    assert [message["role"] for message in sent(user)] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert (user.data / "sessions/s/events.jsonl").read_bytes() == log


def test_an_undo_is_part_of_the_conversation(user: User) -> None:
    model = user.script(lead_call("write_file", path="a.txt", content="a"), lead_reply("Written."))
    user.agent("run", "write a", "--model", model, "--session", "s", "--approval-mode", "auto-edit")
    assert user.agent("sessions", "undo", "s", "--yes").exit_code == 0
    assert ask(user, "-r", "s", "and now?").exit_code == 0
    undone = sent(user)[5:]
    assert [message["role"] for message in undone] == ["user", "assistant", "user"]
    assert "undo" in str(undone[0]).lower()


def test_a_request_that_is_too_long_says_what_to_do(user: User) -> None:
    (user.home / "long.txt").write_text("word " * 40_000)
    ended = user.agent("run", "sum up", "-f", "long.txt", "--model", user.script(lead_reply("never")))
    assert (ended.exit_code, ended.stdout) == (42, "")
    assert "error: the request is too long for" in ended.stderr
    assert "hint: attach less" in ended.stderr


def test_a_conversation_that_grows_too_long_is_shortened_as_an_event(user: User) -> None:
    calls = [lead_call("run_command", command=f"seq {n}000 {n}999; seq {n}0000 {n}3000") for n in range(1, 9)]
    summary = {"match": {"purpose": "summary"}, "text": "They counted.", "repeat": True}
    ended = user.agent("run", "count", "--model", user.script(*calls, summary, lead_reply("Counted.")), *STREAM)
    assert (ended.exit_code, ended.events[-1]["result"]) == (0, "Counted."), ended.stderr
    [first, *_] = [event for event in ended.events if event["type"] == "context"]
    assert first["step_id"] == "lead" and int(str(first["tokens_after"])) < int(str(first["tokens_before"]))
    again = ask(user, "-c", "and now?")
    assert again.exit_code == 0
    assert "left out here to save room" in str(sent(user)[3:5])
