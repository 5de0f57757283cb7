"""Tool steps: one call without a model."""

from agent.protocol.events import StepCompleted, StepStarted, ToolCompleted, ToolStarted
from agent.vocabulary.message import Message
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import CallFact, ExecutorProfile
from agent.vocabulary.unfinished import UNKNOWN_CALL, UnfinishedStep
from tests.agent.execution.step_harness import TOOL_FUNCTIONS, StepHarness, command_result, return_in_turn, succeed
from tooling.contract.result import error_result

STEP = PlanStep(id="s1", title="Look", instruction="", type="tool", tool="look", args={"path": "a"})
COMMAND = PlanStep(id="s1", title="Run", instruction="", type="tool", tool="write", verify="test -f a")
UNKNOWN = UnfinishedStep(messages=(Message(role="tool", content=UNKNOWN_CALL),))


async def test_a_tool_step_is_one_call_and_asks_no_model() -> None:
    harness = StepHarness()
    response = await harness.run(STEP)
    assert (response.status, response.text, harness.client.requests) == ("ok", "done {'path': 'a'}", [])
    started, call, ended, completed = [envelope.event for envelope in await harness.envelopes()]
    assert started == StepStarted(title="Look")
    assert call == ToolStarted(tool_id="s1.call", name="look", input={"path": "a"})
    assert isinstance(ended, ToolCompleted) and ended.status == "ok"
    assert isinstance(completed, StepCompleted) and completed.evidence == ("look exit 0",)


async def test_a_failed_call_fails_the_step_with_its_output_as_the_reason() -> None:
    harness = StepHarness(functions={"look": ("read", return_in_turn(command_result(3, "Exit 3: no")))})
    response = await harness.run(STEP)
    assert (response.status, response.summary, response.exit_code) == ("error", "Exit 3: no", 54)
    assert response.tool_calls[0].exit_code == 3


async def test_a_refused_call_blocks_the_step_and_is_recorded() -> None:
    refused = error_result("Denied.", exit_code=126, status="denied")
    response = await StepHarness(functions={"look": ("read", return_in_turn(refused))}).run(STEP)
    assert (response.status, [fact.status for fact in response.tool_calls]) == ("blocked", ["denied"])


async def test_a_profile_without_the_tool_refuses_the_step() -> None:
    response = await StepHarness().run(STEP, ExecutorProfile(allowed_tools=("write",)))
    assert (response.status, response.exit_code) == ("error", 54)
    assert "not available" in response.summary


async def test_a_tool_step_succeeds_only_if_its_check_passes() -> None:
    good = StepHarness()
    assert ((await good.run(COMMAND)).verified, good.tools.calls[1][1]) == (True, {"command": "test -f a"})
    bad = StepHarness(functions={**TOOL_FUNCTIONS, "run_command": ("execute", return_in_turn(command_result(1)))})
    response = await bad.run(COMMAND)
    assert (response.status, response.verified, response.checks[0].exit_code) == ("error", False, 1)


async def test_a_call_of_unknown_effect_is_not_repeated_without_a_check() -> None:
    harness = StepHarness()
    step = PlanStep(id="s1", title="Run", instruction="", type="tool", tool="write")
    response = await harness.run(step, unfinished=UNKNOWN)
    assert (response.status, response.summary, harness.tools.calls) == ("error", UNKNOWN_CALL, [])


async def test_the_check_decides_whether_an_interrupted_call_is_repeated() -> None:
    passed = StepHarness()
    response = await passed.run(COMMAND, unfinished=UNKNOWN)
    assert (response.status, response.verified) == ("ok", True)
    assert [name for name, _ in passed.tools.calls] == ["run_command"]
    checks = return_in_turn(command_result(1), command_result(0))
    again = StepHarness(functions={"write": ("write", succeed), "run_command": ("execute", checks)})
    response = await again.run(COMMAND, unfinished=UNKNOWN)
    assert (response.status, response.verified) == ("ok", True)
    assert [name for name, _ in again.tools.calls] == ["run_command", "write", "run_command"]


async def test_a_call_that_ended_before_the_interruption_is_not_repeated() -> None:
    fact = CallFact(tool="look", args={}, status="ok", exit_code=0, output_len=3, output_preview="abc")
    resumed = UnfinishedStep(messages=(Message(role="tool", content="abc"),), facts=(fact,))
    harness = StepHarness()
    response = await harness.run(STEP, unfinished=resumed)
    assert (response.status, response.text, response.tool_calls, harness.tools.calls) == ("ok", "abc", (fact,), [])
    started = (await harness.events(StepStarted))[0]
    assert started == StepStarted(title="Look", cache="resumed")
