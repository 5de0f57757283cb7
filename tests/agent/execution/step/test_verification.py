"""Checks that a model wrote count only if they could run and could change; those of a user always count."""

from dataclasses import replace

import pytest

from agent.execution.step.verification import why_unusable
from agent.protocol.events import ToolStarted, WarningRaised
from agent.vocabulary.plan import PlanStep
from tests.agent.execution.step_harness import StepHarness, ToolFunction, command_result, return_in_turn, text_reply
from tooling.contract.result import ToolResult, error_result

STEP = PlanStep(id="s1", title="One", instruction="Do it", verify="cat found.txt", verify_by="model")
CALL = replace(STEP, type="tool", tool="write")
ABSENT = command_result(1, "cat: found.txt: No such file or directory, after 12 ms")


def harness(check: ToolFunction, *replies: str) -> StepHarness:
    functions = {"write": ("write", return_in_turn(ToolResult("written"))), "run_command": ("execute", check)}
    return StepHarness(*map(text_reply, replies), functions=functions)  # type: ignore[arg-type]


async def warnings(harness: StepHarness) -> list[str]:
    events = [envelope.event for envelope in await harness.envelopes()]
    return [event.message for event in events if isinstance(event, WarningRaised)]


@pytest.mark.parametrize(
    "command",
    [
        "nc -vz <host> <default_port>",
        "curl http://localhost:{port}/",
        "python path/to/script.py",
        "cat /path/to/file",
        "python your_script.py",
        "test -f YOUR_FILE",
        "grep … app.py",
        "run the ... tests",
        "cat <your file here>",
        "if true; then echo",
        "echo 'unfinished",
        "ls | | wc",
    ],
)
def test_commands_that_can_never_work(command: str) -> None:
    assert why_unusable(command)


@pytest.mark.parametrize(
    "command",
    [
        "make test",
        "go test ./...",
        "test -f made && grep -q 9090 config.ini",
        "awk '/x/ {print}' a.txt | sort",
        "find . -name '*.py' -exec grep -l x {} +",
        'for f in *.py; do python -m py_compile "$f"; done',
        "echo ${port} {a,b} {1..3}",
        "python3 -c 'import json; json.load(open(\"a.json\"))'",
        "sort <in.txt >out.txt",
        "cat <<EOF\nx\nEOF",
        "jq '.items[] | {name}' data.json",
        'test "$(cat result.txt)" = 42',
        "! grep -rn old_name src",
        "diff <(sort a) <(sort b)",
    ],
)
def test_commands_that_may_work(command: str) -> None:
    assert why_unusable(command) == ""


async def test_a_placeholder_is_dropped_with_a_warning_and_never_run() -> None:
    run = harness(return_in_turn(command_result(1)), "done")
    response = await run.run(replace(STEP, verify="nc -vz <host> 80"))
    assert (response.status, response.verified, run.tools.calls) == ("ok", None, [])
    assert await warnings(run) == ["step s1: its check `nc -vz <host> 80` does not count: <host> is a placeholder"]


async def test_a_check_that_fails_as_before_is_reported_to_the_model_and_then_dropped() -> None:
    again = replace(ABSENT, content=ABSENT.content.replace("12 ms", "99 ms"))
    run = harness(return_in_turn(ABSENT, again), "done", "done, really", "done, I am sure")
    response = await run.run(STEP)
    assert (response.status, response.verified, response.checks) == ("ok", None, ())
    assert "found.txt" in run.client.requests[1].messages[-1].content
    (warning,) = await warnings(run)
    assert warning.endswith("it fails in the same way as before the step")


async def test_a_check_that_fails_otherwise_than_before_is_a_verdict() -> None:
    run = harness(return_in_turn(ABSENT, command_result(1, "1 failed")), "done", "mended", "mended again")
    response = await run.run(STEP)
    assert (response.status, response.verified) == ("error", False)


async def test_a_check_that_the_model_makes_pass_is_a_verdict() -> None:
    run = harness(return_in_turn(ABSENT, ABSENT, command_result(0)), "done", "now it is there")
    response = await run.run(STEP)
    assert (response.status, response.verified) == ("ok", True)
    ids = [envelope.event.tool_id for envelope in await run.envelopes() if isinstance(envelope.event, ToolStarted)]
    assert ids == ["s1.check.0", "s1.check.1", "s1.check.2"]


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (command_result(127, "bash: frob: command not found"), "a program is missing"),
        (command_result(126, "bash: ./x: Permission denied"), "it is not executable"),
        (error_result("Denied by policy.", exit_code=126, status="denied"), "it was refused"),
    ],
)
@pytest.mark.parametrize("step", [STEP, CALL])
async def test_a_check_that_could_not_run_is_dropped(step: PlanStep, failure: ToolResult, why: str) -> None:
    run = harness(return_in_turn(failure), "done")
    response = await run.run(step)
    assert (response.status, response.verified) == ("ok", None)
    assert [warning.rpartition(": ")[2] for warning in await warnings(run)] == [why]


@pytest.mark.parametrize("failure", [ABSENT, command_result(127, "bash: frob: command not found")])
async def test_a_check_of_the_user_stays_strict_and_is_not_tried_before(failure: ToolResult) -> None:
    run = harness(return_in_turn(failure))
    response = await run.run(replace(CALL, verify_by="user", verify="cat <host>"))
    assert (response.status, response.verified, len(run.tools.calls)) == ("error", False, 2)
    assert await warnings(run) == []
