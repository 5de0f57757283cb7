"""What hooks can rely on: order, exactly one end, and that a hook that fails harms nothing but itself."""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.app import App
from agent.hooks.hook import AgentState, CallDecision, GuardedCall, GuardHook, Hook
from agent.vocabulary import exit_codes
from agent.vocabulary.task_config import TaskConfig
from tests.agent.orchestrator.lead_runs import AUTO
from tests.agent.orchestrator.run_harness import EventJson, RunHarness
from tests.cli.terminal_user import lead_call, lead_reply

CALL_AND_ANSWER = (lead_call("run_command", command="echo hi"), lead_reply("Done."))


class Recorder(Hook):
    """Writes down every moment in a list that may be shared."""

    def __init__(self, label: str, log: list[str]) -> None:
        self._label = label
        self._log = log

    @property
    def name(self) -> str:
        return self._label

    def _add(self, text: str) -> None:
        self._log.append(f"{self._label} {text}")

    async def before_execution(self, config: TaskConfig) -> None:
        self._add("before")

    async def on_agent_turn(self, turn: int, state: AgentState) -> None:
        self._add(f"turn {turn}")

    async def on_tool_call(self, turn: int, tool_name: str, tool_input: object, tool_output: str) -> None:
        self._add(f"call {turn} {tool_name} {tool_input} {tool_output.strip()}")

    async def on_response(self, turn: int, response: str) -> None:
        self._add(f"response {turn} {response}")

    async def after_execution(self, success: bool, error: str | None) -> None:
        self._add(f"after {success} {error}")


class Faulty(Recorder):
    """Records a moment, then does what it is told."""

    def __init__(self, log: list[str], fault: Callable[[], object], timeout_s: float = 10.0) -> None:
        super().__init__("faulty", log)
        self._fault = fault
        self.timeout_s = timeout_s

    async def on_agent_turn(self, turn: int, state: AgentState) -> None:
        await super().on_agent_turn(turn, state)
        result = self._fault()
        if inspect.isawaitable(result):
            await result


def test_hooks_are_called_in_their_order_and_torn_down_in_reverse(tmp_path: Path) -> None:
    log: list[str] = []
    hooks = (Recorder("a", log), Recorder("b", log))
    run = RunHarness(home=tmp_path, hooks=hooks).run(*CALL_AND_ANSWER, **AUTO)
    assert run.outcome.exit_code == 0
    moments = (
        "before",
        "turn 1",
        "call 1 run_command {'command': 'echo hi'} hi",
        "turn 2",
        "response 2 Done.",
    )
    both = [f"{label} {moment}" for moment in moments for label in "ab"]
    assert log == [*both, "b after True None", "a after True None"]


def test_a_turn_with_text_and_calls_reports_its_text_after_the_calls(tmp_path: Path) -> None:
    log: list[str] = []
    first = {**CALL_AND_ANSWER[0], "text": "I look."}
    RunHarness(home=tmp_path, hooks=(Recorder("a", log),)).run(first, lead_reply("Done."), **AUTO)
    assert [line.split()[1] for line in log] == ["before", "turn", "call", "response", "turn", "response", "after"]
    assert log[3] == "a response 1 I look."


def test_a_composed_answer_is_a_response(tmp_path: Path) -> None:
    log: list[str] = []
    planned = {"match": {"purpose": "planner"}, "text": '{"answer": "Forty-two."}'}
    RunHarness(home=tmp_path, hooks=(Recorder("a", log),)).run(planned)
    assert log == ["a before", "a response 1 Forty-two.", "a after True None"]


def test_the_end_is_reported_once_after_a_failure(tmp_path: Path) -> None:
    log: list[str] = []
    RunHarness(home=tmp_path, hooks=(Recorder("a", log),)).run(
        {"match": {"purpose": "lead"}, "fault": "refused"}, **AUTO
    )
    ends = [line for line in log if " after " in line]
    assert len(ends) == 1
    assert ends[0].startswith("a after False ") and ends[0] != "a after False None"


def test_the_end_is_reported_once_after_the_time_limit(tmp_path: Path) -> None:
    log: list[str] = []
    slow = lead_call("run_command", command="sleep 60")
    run = RunHarness(home=tmp_path, hooks=(Recorder("a", log),)).run(slow, **{**AUTO, "timeout_s": 2})
    assert run.outcome.exit_code == exit_codes.TIMED_OUT
    assert [line for line in log if " after " in line] == ["a after False the time limit of 2 s was reached"]


def test_the_end_is_reported_once_after_ctrl_c(tmp_path: Path) -> None:
    def stop(app: App, event: EventJson) -> None:
        if event["type"] == "tool.started":
            app.interrupt(exit_codes.INTERRUPTED, "interrupted")

    log: list[str] = []
    harness = RunHarness(home=tmp_path, hooks=(Recorder("a", log),), on_event=stop)
    run = harness.run(lead_call("run_command", command="sleep 60"), **AUTO)
    assert run.outcome.exit_code == exit_codes.INTERRUPTED
    assert [line for line in log if " after " in line] == ["a after False interrupted"]


def test_the_end_is_reported_if_the_agent_cannot_even_be_built(tmp_path: Path) -> None:
    log: list[str] = []
    flags = {**AUTO, "approval_mode": "review"}
    run = RunHarness(home=tmp_path, hooks=(Recorder("a", log),)).run(lead_reply("never"), **flags)
    assert run.outcome.exit_code == exit_codes.BAD_CONFIG
    assert log == ["a before", "a after False approval mode review needs a reviewer model"]


def _fail() -> None:
    raise ValueError("broken")


def _exit() -> None:
    raise SystemExit(3)


async def _cancel() -> None:
    raise asyncio.CancelledError


async def _hang() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # A hook that ignores that its time is over, once.
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (_fail, "failed: ValueError: broken"),
        (_exit, "failed: RuntimeError: it called sys.exit(3)"),
        (_cancel, "failed: RuntimeError: it was cancelled"),
        (_hang, "took longer than 0.05 s"),
    ],
)
def test_a_hook_that_fails_is_a_warning_and_nothing_else(
    tmp_path: Path, fault: Callable[[], object], problem: str
) -> None:
    log: list[str] = []
    hooks = (Faulty(log, fault, timeout_s=0.05), Recorder("b", log))
    run = RunHarness(home=tmp_path, hooks=hooks).run(*CALL_AND_ANSWER, **AUTO)
    assert run.outcome.exit_code == 0
    assert run.warnings == [f"the hook faulty {problem} (in on_agent_turn)"] * 2
    assert "b response 2 Done." in log
    assert log[-2:] == ["b after True None", "faulty after True None"]


def test_a_hook_that_keeps_failing_is_given_up_but_told_of_the_end(tmp_path: Path) -> None:
    log: list[str] = []
    calls = [lead_call("run_command", command=f"echo {number}") for number in range(4)]
    run = RunHarness(home=tmp_path, hooks=(Faulty(log, _fail),)).run(*calls, lead_reply("Done."), **AUTO)
    assert len(run.warnings) == 3
    assert run.warnings[-1].endswith("; it is not called again in this run")
    assert log[-1] == "faulty after True None"


def test_a_hook_that_fails_before_the_first_event_is_a_warning_of_init(tmp_path: Path) -> None:
    class Early(Hook):
        async def before_execution(self, config: TaskConfig) -> None:
            raise ValueError("too early")

    run = RunHarness(home=tmp_path, hooks=(Early(),)).run(*CALL_AND_ANSWER, **AUTO)
    assert run.events[0]["warnings"] == ["the hook Early failed: ValueError: too early (in before_execution)"]


class Guard(GuardHook):
    """Decides with a function."""

    guard_timeout_s = 0.05

    def __init__(self, decide: Callable[[GuardedCall], object]) -> None:
        self._decide = decide

    async def check_call(self, call: GuardedCall) -> CallDecision:
        result = self._decide(call)
        decision = await result if inspect.isawaitable(result) else result
        assert isinstance(decision, CallDecision)
        return decision


def outputs(home: Path, guard: GuardHook, command: str = "echo hi", **flags: object) -> list[tuple[object, object]]:
    replies = (lead_call("run_command", command=command), lead_reply("Done."))
    run = RunHarness(home=home, hooks=(guard,)).run(*replies, **{**AUTO, **flags})
    return [(event["status"], str(event["output"]).strip()) for event in run.of_type("tool.completed")]


@pytest.mark.parametrize("fault", [_fail, _exit, _cancel, _hang])
def test_a_guard_that_fails_denies(tmp_path: Path, fault: Callable[[], object]) -> None:
    ((status, output),) = outputs(tmp_path, Guard(lambda call: fault()))
    assert status == "denied"
    assert "because the hook Guard" in str(output)


def test_a_guard_denies_with_its_reason(tmp_path: Path) -> None:
    guard = Guard(lambda call: CallDecision(permission="deny", reason="not on a Friday"))
    assert outputs(tmp_path, guard) == [("denied", "Denied by the hook Guard: not on a Friday")]


def test_a_guard_changes_the_arguments_which_are_judged_then(tmp_path: Path) -> None:
    harmless = Guard(lambda call: CallDecision(arguments={"command": "echo changed"}))
    assert outputs(tmp_path, harmless, "rm -rf /") == [("ok", "changed")]
    harmful = Guard(lambda call: CallDecision(permission="allow", arguments={"command": "rm -rf /"}))
    ((status, output),) = outputs(tmp_path, harmful)
    assert status == "blocked" and str(output).startswith("BLOCKED")


def test_arguments_that_the_tool_does_not_take_deny_the_call(tmp_path: Path) -> None:
    guard = Guard(lambda call: CallDecision(arguments={"cmd": "echo"}))
    ((status, output),) = outputs(tmp_path, guard)
    assert status == "denied" and "unknown field cmd" in str(output)


ALLOW = CallDecision(permission="allow")
NEEDS_APPROVAL = "curl https://example.org"


def test_an_approval_replaces_the_users_answer(tmp_path: Path) -> None:
    asked = outputs(tmp_path, Guard(lambda call: CallDecision()), NEEDS_APPROVAL, approval_mode="ask")
    assert asked[0][0] == "denied"
    ((status, output),) = outputs(tmp_path, Guard(lambda call: ALLOW), NEEDS_APPROVAL, approval_mode="ask")
    # It was run; the network of the sandbox is as closed as before.
    assert status != "denied" and "Denied" not in str(output)


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("rm -rf /", {}),
        (NEEDS_APPROVAL, {"deny": ["curl"]}),
        ("touch file", {"approval_mode": "plan"}),
    ],
)
def test_an_approval_widens_nothing_that_is_forbidden(tmp_path: Path, command: str, flags: dict[str, object]) -> None:
    ((status, _),) = outputs(tmp_path, Guard(lambda call: ALLOW), command, **flags)
    assert status in ("blocked", "denied", "error")
    assert not (tmp_path / "file").exists()


def test_an_approval_of_a_restricted_guard_is_ignored(tmp_path: Path) -> None:
    guard = Guard(lambda call: ALLOW)
    guard.is_restricted = True
    assert outputs(tmp_path, guard, NEEDS_APPROVAL, approval_mode="ask")[0][0] == "denied"


def test_a_guard_that_asks_is_stricter_than_mode_yolo(tmp_path: Path) -> None:
    guard = Guard(lambda call: CallDecision(permission="ask", reason="look at it first"))
    ((status, output),) = outputs(tmp_path, guard)
    assert status == "denied" and "look at it first" in str(output)


def test_the_signatures_of_a_hook_are_those_that_are_documented() -> None:
    moments = {
        name: list(inspect.signature(method).parameters)[1:]
        for name, method in vars(Hook).items()
        if inspect.iscoroutinefunction(method)
    }
    assert moments == {
        "before_execution": ["config"],
        "on_agent_turn": ["turn", "state"],
        "on_tool_call": ["turn", "tool_name", "tool_input", "tool_output"],
        "on_response": ["turn", "response"],
        "after_execution": ["success", "error"],
    }
