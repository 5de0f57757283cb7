"""The loop of one step: what the model is asked, what it hears, and how it ends."""

from itertools import pairwise

from agent.model.faults import FAULTS, ModelFault
from agent.protocol.events import MessageSaid, ToolCompleted, ToolStarted
from agent.vocabulary.message import Message
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
    shop = StepHarness(
        call_reply("look", path="a"), call_reply("look", "look", path="b"), call_reply("write"), text_reply("done")
    )
    await shop.run()
    for before, after in pairwise(shop.client.requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools
    assert [message.role for message in shop.client.requests[0].messages] == ["system", "user"]


async def test_two_steps_of_a_run_share_system_message_and_tools() -> None:
    shop = StepHarness(text_reply("one"), text_reply("two"))
    await shop.run()
    await shop.run(PlanStep(id="s2", title="Two", instruction="Do more"))
    first, second = shop.client.requests
    assert (first.messages[0], first.tools) == (second.messages[0], second.tools)


async def test_a_reply_is_published_before_its_calls_begin_and_a_result_before_the_next_turn() -> None:
    shop = StepHarness(call_reply("write"), text_reply("done"))
    await shop.run()
    kinds = (MessageSaid, ToolStarted, ToolCompleted)
    said = [
        type(event).__name__
        for event in await shop.events(*kinds)
        if not (isinstance(event, MessageSaid) and event.delta)
    ]
    assert said == ["MessageSaid", "ToolStarted", "ToolCompleted", "MessageSaid"]


async def test_a_step_may_have_a_model_of_its_own() -> None:
    shop = StepHarness(text_reply("done"), text_reply("done"))
    await shop.run(PlanStep(id="s1", title="One", instruction="Do it", model="other/large"))
    await shop.run(PlanStep(id="s2", title="Two", instruction="Do it"))
    assert [asked.model for asked in shop.client.requests] == ["other/large", "m"]


async def test_a_reply_that_was_cut_off_is_gone_on_with_once() -> None:
    shop = StepHarness(text_reply("The first half ", finish_reason="length"), text_reply("and the second."))
    response = await shop.run()
    assert (response.status, response.text) == ("ok", "The first half and the second.")
    assert "Go on exactly where it stopped" in shop.client.requests[1].messages[-1].content


async def test_a_reply_that_is_cut_off_again_is_no_plain_success() -> None:
    shop = StepHarness(text_reply("one ", finish_reason="length"), text_reply("two ", finish_reason="length"))
    response = await shop.run()
    assert (response.status, response.text) == ("partial", "one two ")


async def test_the_rest_of_an_answer_joins_its_beginning_after_a_fault_or_a_kill() -> None:
    shop = StepHarness(
        text_reply("One, ", finish_reason="length"), ConnectionError("reset by peer"), text_reply("two.")
    )
    assert (await shop.run()).text == "One, two."
    asked = shop.client.requests[-1].messages
    begun = UnfinishedStep(messages=asked[2:], turns=1)
    assert (await StepHarness(text_reply("two.")).run(unfinished=begun)).text == "One, two."


async def test_a_surprise_is_taken_out_of_the_answer() -> None:
    response = await StepHarness(text_reply("No tests here.\nSURPRISE: there are no tests")).run()
    assert (response.status, response.text, response.surprise) == ("ok", "No tests here.", "there are no tests")


async def test_a_circle_is_remarked_on_then_ends_as_a_surprise_and_later_as_a_failure() -> None:
    shop = StepHarness(*[call_reply("look", path="a") for _ in range(8)])
    first = await shop.run()
    assert (first.status, first.turns, len(first.tool_calls)) == ("error", 4, 4)
    assert "repeats itself" in first.surprise
    remark = shop.client.requests[3].messages[-1]
    assert (remark.role, "already made this call" in remark.content) == ("user", True)
    second = await shop.run(PlanStep(id="s2", title="Two", instruction="Do it"))
    assert (second.status, second.surprise) == ("error", "")


async def test_a_step_goes_on_with_the_conversation_it_was_cut_off_in() -> None:
    asked = call_reply("write", path="a").message
    heard = Message(role="tool", content=CANCELLED_CALL, tool_call_id=asked.tool_calls[0].id)
    shop = StepHarness(text_reply("done"))
    response = await shop.run(unfinished=UnfinishedStep(messages=(asked, heard), turns=1))
    assert (response.status, response.turns) == ("ok", 2)
    assert shop.client.requests[0].messages[2:] == (asked, heard)


async def test_an_answer_that_was_given_already_is_not_asked_for_again() -> None:
    said = Message(role="assistant", content="It is done.")
    shop = StepHarness()
    response = await shop.run(unfinished=UnfinishedStep(messages=(said,), turns=1))
    assert (response.status, response.text, shop.client.requests) == ("ok", "It is done.", [])


async def test_turns_of_a_run_that_was_cut_off_count() -> None:
    begun = UnfinishedStep(messages=(call_reply("look").message,), turns=3)
    response = await StepHarness().run(profile=ExecutorProfile(max_turns=3), unfinished=begun)
    assert (response.status, response.exit_code) == ("partial", 53)


async def test_a_check_that_passes_verifies_the_step_whatever_failed_on_the_way() -> None:
    commands = return_in_turn(command_result(1), command_result(0, "all good"))
    shop = StepHarness(
        call_reply("run_command"),
        text_reply("done"),
        functions={**TOOL_FUNCTIONS, "run_command": ("execute", commands)},
    )
    response = await shop.run(PlanStep(id="s1", title="One", instruction="Do it", verify="make test"))
    assert (response.status, response.verified, response.checks[0].output) == ("ok", True, "all good")


async def test_a_failed_check_goes_back_to_the_model_twice() -> None:
    commands = return_in_turn(command_result(1, "no a"), command_result(1, "no b"), command_result(1, "no c"))
    deeds = {"write": ("write", succeed), "run_command": ("execute", commands)}
    shop = StepHarness(text_reply("one"), call_reply("write"), text_reply("two"), text_reply("three"), functions=deeds)  # type: ignore[arg-type]
    response = await shop.run(PlanStep(id="s1", title="One", instruction="Do it", verify="test -f a"))
    assert (response.status, response.verified, len(response.checks)) == ("error", False, 3)
    assert (response.text, "no c" in response.summary) == ("three", True)
    told = [message.content for message in shop.client.requests[-1].messages if message.role == "user"]
    assert ["no a" in text for text in told] == [False, True, False]
    said = [event for event in await shop.events(MessageSaid) if isinstance(event, MessageSaid)]
    assert [event.content for event in said if event.role == "user"] == told[1:]


async def test_a_check_runs_though_the_step_itself_may_run_nothing() -> None:
    shop = StepHarness(text_reply("done"))
    step = PlanStep(id="s1", title="One", instruction="Do it", verify="true")
    response = await shop.run(step, ExecutorProfile(allowed_tools=("look",)))
    assert (response.verified, [tool["function"]["name"] for tool in shop.client.requests[0].tools]) == (True, ["look"])  # type: ignore[index]
    refused = await StepHarness(text_reply("done")).run(step, ExecutorProfile(allowed_tools=("look",), may_check=False))
    assert (refused.status, refused.verified, refused.checks) == ("blocked", None, ())


async def test_a_fault_keeps_what_the_step_did_before_it() -> None:
    shop = StepHarness(call_reply("write", path="a"), ModelFault("server"))
    response = await shop.run()
    assert (response.status, response.exit_code, response.turns) == ("error", 75, 2)
    assert ([fact.tool for fact in response.tool_calls], response.usage.requests) == (["write"], 1)


async def test_files_that_a_tool_made_are_outputs_of_the_step() -> None:
    made = ToolResult("drawn", meta=ToolMeta(artifacts=("out/chart.png",)))
    shop = StepHarness(call_reply("write"), text_reply("done"), functions={"write": ("write", return_in_turn(made))})
    response = await shop.run()
    file = StepOutput(type="file", path="out/chart.png", name="chart.png")
    assert response.outputs == (StepOutput(type="text", content="done"), file)


async def test_a_model_that_falls_silent_after_its_work_is_asked_for_the_result_once() -> None:
    shop = StepHarness(call_reply("write"), ModelFault("empty"), text_reply("It is written."))
    response = await shop.run()
    assert (response.status, response.text) == ("ok", "It is written.")
    assert shop.client.requests[-1].messages[-1].content == "Go on: reply with the result, or call a tool."
    silent = await StepHarness(call_reply("write"), ModelFault("empty"), ModelFault("empty")).run()
    assert (silent.status, silent.summary, len(silent.tool_calls)) == ("error", FAULTS["empty"].message, 1)


async def test_a_model_that_says_nothing_at_all_is_not_asked_again() -> None:
    response = await StepHarness(ModelFault("empty")).run()
    assert (response.status, response.summary) == ("error", FAULTS["empty"].message)
