"""The agent loop: the requests to the model, tool results, and how the loop ends."""

from itertools import pairwise

from agent.model.faults import FAULTS, ModelFault
from agent.model.port import MAX_CONTINUATIONS, PAUSED
from agent.protocol.events import MessageAdded, ToolCompleted, ToolStarted
from agent.vocabulary.message import PAUSE_PROMPT, Message
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile, StepOutput
from agent.vocabulary.unfinished import CANCELLED_CALL, UnfinishedStep
from tests.agent.execution.step_harness import (
    TOOL_FUNCTIONS,
    StepHarness,
    call_reply,
    command_result,
    return_in_turn,
    succeed,
    text_reply,
)
from tooling.contract.result import ToolMeta, ToolResult


async def test_the_prefix_of_every_request_is_the_request_before_it() -> None:
    harness = StepHarness(
        call_reply("look", path="a"), call_reply("look", "look", path="b"), call_reply("write"), text_reply("done")
    )
    await harness.run()
    for before, after in pairwise(harness.client.requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools
    assert [message.role for message in harness.client.requests[0].messages] == ["system", "user"]


async def test_two_steps_of_a_run_share_system_message_and_tools() -> None:
    harness = StepHarness(text_reply("one"), text_reply("two"))
    await harness.run()
    await harness.run(PlanStep(id="s2", title="Two", instruction="Do more"))
    first, second = harness.client.requests
    assert (first.messages[0], first.tools) == (second.messages[0], second.tools)


async def test_a_reply_is_published_before_its_calls_start_and_a_result_before_the_next_turn() -> None:
    harness = StepHarness(call_reply("write"), text_reply("done"))
    await harness.run()
    kinds = (MessageAdded, ToolStarted, ToolCompleted)
    said = [
        type(event).__name__
        for event in await harness.events(*kinds)
        if not (isinstance(event, MessageAdded) and event.delta)
    ]
    assert said == ["MessageAdded", "ToolStarted", "ToolCompleted", "MessageAdded"]


async def test_a_step_can_use_its_own_model() -> None:
    harness = StepHarness(text_reply("done"), text_reply("done"))
    await harness.run(PlanStep(id="s1", title="One", instruction="Do it", model="other/large"))
    await harness.run(PlanStep(id="s2", title="Two", instruction="Do it"))
    assert [asked.model for asked in harness.client.requests] == ["other/large", "m"]


async def test_a_truncated_reply_is_continued_once() -> None:
    harness = StepHarness(text_reply("The first half ", finish_reason="length"), text_reply("and the second."))
    response = await harness.run()
    assert (response.status, response.text) == ("ok", "The first half and the second.")
    assert "Go on exactly where it stopped" in harness.client.requests[1].messages[-1].content


async def test_a_reply_that_is_truncated_twice_is_partial() -> None:
    harness = StepHarness(text_reply("one ", finish_reason="length"), text_reply("two ", finish_reason="length"))
    response = await harness.run()
    assert (response.status, response.text) == ("partial", "one two ")


async def test_a_turn_that_the_provider_paused_is_continued_with_what_the_model_has_said() -> None:
    halves = [text_reply(part, finish_reason=PAUSED) for part in ("One, ", "two, ", "three, ")]
    harness = StepHarness(*halves, text_reply("done."))
    response = await harness.run()
    assert (response.status, response.text) == ("ok", "One, two, three, done.")
    said, asked = harness.client.requests[1].messages[-2:]
    assert (said.role, said.content, asked.role, asked.content) == ("assistant", "One, ", "user", PAUSE_PROMPT)


async def test_a_turn_that_is_paused_again_and_again_is_partial_and_says_why() -> None:
    harness = StepHarness(*[text_reply("more ", finish_reason=PAUSED) for _ in range(20)])
    response = await harness.run()
    assert (response.status, len(harness.client.requests)) == ("partial", 1 + MAX_CONTINUATIONS[PAUSED])
    assert "paused" in response.shortfall


async def test_a_paused_answer_is_continued_after_a_kill() -> None:
    harness = StepHarness(
        text_reply("One, ", finish_reason=PAUSED), text_reply("two, ", finish_reason=PAUSED), text_reply("three.")
    )
    assert (await harness.run()).text == "One, two, three."
    unfinished = UnfinishedStep(messages=harness.client.requests[-1].messages[2:], turns=2)
    assert (await StepHarness(text_reply("three.")).run(unfinished=unfinished)).text == "One, two, three."


async def test_a_truncated_answer_is_continued_after_a_fault_or_a_kill() -> None:
    harness = StepHarness(
        text_reply("One, ", finish_reason="length"), ConnectionError("reset by peer"), text_reply("two.")
    )
    assert (await harness.run()).text == "One, two."
    asked = harness.client.requests[-1].messages
    unfinished = UnfinishedStep(messages=asked[2:], turns=1)
    assert (await StepHarness(text_reply("two.")).run(unfinished=unfinished)).text == "One, two."


async def test_the_surprise_line_is_removed_from_the_answer() -> None:
    response = await StepHarness(text_reply("No tests here.\nSURPRISE: there are no tests")).run()
    assert (response.status, response.text, response.surprise) == ("ok", "No tests here.", "there are no tests")


async def test_a_repeated_call_is_warned_about_then_ends_the_step_with_a_surprise_only_once() -> None:
    harness = StepHarness(*[call_reply("look", path="a") for _ in range(8)])
    first = await harness.run()
    assert (first.status, first.turns, len(first.tool_calls)) == ("error", 4, 4)
    assert "repeats itself" in first.surprise
    remark = harness.client.requests[3].messages[-1]
    assert (remark.role, "already made this call" in remark.content) == ("user", True)
    second = await harness.run(PlanStep(id="s2", title="Two", instruction="Do it"))
    assert (second.status, second.surprise) == ("error", "")


async def test_a_resumed_step_continues_its_conversation() -> None:
    asked = call_reply("write", path="a").message
    result_message = Message(role="tool", content=CANCELLED_CALL, tool_call_id=asked.tool_calls[0].id)
    harness = StepHarness(text_reply("done"))
    response = await harness.run(unfinished=UnfinishedStep(messages=(asked, result_message), turns=1))
    assert (response.status, response.turns) == ("ok", 2)
    assert harness.client.requests[0].messages[2:] == (asked, result_message)


async def test_a_resumed_step_with_an_answer_makes_no_request() -> None:
    said = Message(role="assistant", content="It is done.")
    harness = StepHarness()
    response = await harness.run(unfinished=UnfinishedStep(messages=(said,), turns=1))
    assert (response.status, response.text, harness.client.requests) == ("ok", "It is done.", [])


async def test_turns_before_an_interruption_count() -> None:
    unfinished = UnfinishedStep(messages=(call_reply("look").message,), turns=3)
    response = await StepHarness().run(profile=ExecutorProfile(max_turns=3), unfinished=unfinished)
    assert (response.status, response.exit_code) == ("partial", 53)


async def test_a_passed_check_verifies_the_step_despite_earlier_failures() -> None:
    commands = return_in_turn(command_result(1), command_result(0, "all good"))
    harness = StepHarness(
        call_reply("run_command"),
        text_reply("done"),
        functions={**TOOL_FUNCTIONS, "run_command": ("execute", commands)},
    )
    response = await harness.run(PlanStep(id="s1", title="One", instruction="Do it", verify="make test"))
    assert (response.status, response.verified, response.checks[0].output) == ("ok", True, "all good")


async def test_a_failed_check_is_reported_to_the_model_twice() -> None:
    commands = return_in_turn(command_result(1, "no a"), command_result(1, "no b"), command_result(1, "no c"))
    functions = {"write": ("write", succeed), "run_command": ("execute", commands)}
    harness = StepHarness(
        text_reply("one"), call_reply("write"), text_reply("two"), text_reply("three"), functions=functions
    )  # type: ignore[arg-type]
    response = await harness.run(PlanStep(id="s1", title="One", instruction="Do it", verify="test -f a"))
    assert (response.status, response.verified, len(response.checks)) == ("error", False, 3)
    assert (response.text, "no c" in response.summary) == ("three", True)
    reported = [message.content for message in harness.client.requests[-1].messages if message.role == "user"]
    assert ["no a" in text for text in reported] == [False, True, False]
    said = [event for event in await harness.events(MessageAdded) if isinstance(event, MessageAdded)]
    assert [event.content for event in said if event.role == "user"] == reported[1:]


async def test_a_check_runs_even_if_the_step_may_not_run_commands() -> None:
    harness = StepHarness(text_reply("done"))
    step = PlanStep(id="s1", title="One", instruction="Do it", verify="true")
    response = await harness.run(step, ExecutorProfile(allowed_tools=("look",)))
    assert (response.verified, [tool["function"]["name"] for tool in harness.client.requests[0].tools]) == (
        True,
        ["look"],
    )  # type: ignore[index]
    refused = await StepHarness(text_reply("done")).run(step, ExecutorProfile(allowed_tools=("look",), may_check=False))
    assert (refused.status, refused.verified, refused.checks) == ("blocked", None, ())


async def test_a_fault_keeps_the_calls_made_before_it() -> None:
    harness = StepHarness(call_reply("write", path="a"), ModelFault("server"))
    response = await harness.run()
    assert (response.status, response.exit_code, response.turns) == ("error", 75, 2)
    assert ([fact.tool for fact in response.tool_calls], response.usage.requests) == (["write"], 1)


async def test_artifacts_of_a_tool_are_outputs_of_the_step() -> None:
    drawn = ToolResult("drawn", meta=ToolMeta(artifacts=("out/chart.png",)))
    harness = StepHarness(
        call_reply("write"), text_reply("done"), functions={"write": ("write", return_in_turn(drawn))}
    )
    response = await harness.run()
    file = StepOutput(type="file", path="out/chart.png", name="chart.png")
    assert response.outputs == (StepOutput(type="text", content="done"), file)


async def test_an_empty_reply_after_tool_calls_is_answered_with_a_request_for_the_result_once() -> None:
    harness = StepHarness(call_reply("write"), ModelFault("empty"), text_reply("It is written."))
    response = await harness.run()
    assert (response.status, response.text) == ("ok", "It is written.")
    assert harness.client.requests[-1].messages[-1].content == "Go on: reply with the result, or call a tool."
    silent = await StepHarness(call_reply("write"), ModelFault("empty"), ModelFault("empty")).run()
    assert (silent.status, silent.summary, len(silent.tool_calls)) == ("error", FAULTS["empty"].message, 1)


async def test_two_empty_first_replies_are_an_error() -> None:
    response = await StepHarness(ModelFault("empty"), ModelFault("empty")).run()
    assert (response.status, response.summary) == ("error", FAULTS["empty"].message)
