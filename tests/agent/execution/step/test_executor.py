"""One step from its start to its response: attempts, deadlines, interruptions; nothing is ever lost or raised."""

import asyncio
import time

import pytest

from agent.executor import backoff_s, is_transient
from agent.model.budget import Budget
from agent.model.faults import ModelFault
from agent.protocol.channel import LogWriteError
from agent.protocol.commands import AnswerQuestion
from agent.protocol.events import (
    QuestionAnswered,
    QuestionAsked,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    WarningRaised,
)
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorRequest, ExecutorResponse
from agent.vocabulary.unfinished import CANCELLED_CALL, UNKNOWN_CALL
from tests.agent.execution.step_harness import (
    STEP,
    TOOL_FUNCTIONS,
    StepHarness,
    ToolFunction,
    call_reply,
    command_result,
    return_in_turn,
    succeed,
    text_reply,
)
from tooling.contract.action import Effect
from tooling.contract.json_codec import JsonObject
from tooling.contract.result import ToolResult, error_result

ASK = PlanStep(
    id="s1", title="Ask", instruction="", type="ask_user", ask_question="Which?", ask_options=("left", "right")
)


async def never(args: JsonObject) -> ToolResult:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def test_transient_faults_are_tried_again_with_growing_waits() -> None:
    shop = StepHarness(ConnectionError("reset by peer"), TimeoutError("timed out"), text_reply("done"))
    response = await shop.run()
    assert (response.status, response.attempts) == ("ok", 3)
    assert (0.6 <= shop.sleeps[0] <= 0.8, 1.2 <= shop.sleeps[1] <= 1.4) == (True, True)
    envelopes = await shop.envelopes()
    assert [envelope.attempt for envelope in envelopes if isinstance(envelope.event, StepCompleted)] == [3]
    assert sum(isinstance(envelope.event, WarningRaised) for envelope in envelopes) == 2


async def test_a_further_attempt_goes_on_after_what_was_done_and_does_not_do_it_again() -> None:
    shop = StepHarness(call_reply("write", path="a"), ConnectionError("lost"), text_reply("done"))
    response = await shop.run()
    assert (response.attempts, [name for name, _ in shop.tools.calls]) == (2, ["write"])
    asked, heard = shop.client.requests[-1].messages[2:]
    assert (asked.tool_calls[0].name, heard.content) == ("write", "done {'path': 'a'}")


async def test_a_profile_without_retries_makes_one_attempt() -> None:
    shop = StepHarness(ConnectionError("lost"))
    response = await shop.run(profile=ExecutorProfile(max_retries=0))
    assert (response.status, response.attempts, shop.sleeps) == ("error", 1, [])


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (ConnectionResetError("x"), True),
        (TimeoutError(), True),
        (OSError("Resource temporarily unavailable"), True),
        (RuntimeError("connection lost"), True),
        (ValueError("x"), False),
        (FileNotFoundError("connection"), False),
        (PermissionError("timed out"), False),
        (OSError(28, "No space left on device"), False),
        (ConnectionError("BLOCKED: connection"), False),
        (ConnectionError("not allowed"), False),
        (ModelFault("reset"), False),
        (InputError("connection"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, is_passing: bool) -> None:
    assert is_transient(error) is is_passing


def test_waits_grow_and_differ() -> None:
    assert 2.4 <= backoff_s(3) <= 2.6
    assert len({backoff_s(1) for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (ValueError("a bug"), 1),
        (FileNotFoundError("gone"), 1),
        (ModelFault("auth"), 41),
        (InputError("cannot read the script"), 42),
    ],
)
async def test_whatever_the_loop_raises_becomes_a_response(error: Exception, exit_code: int) -> None:
    shop = StepHarness(call_reply("write"), error)
    response = await shop.run()
    assert (response.task_id, response.status, response.exit_code) == ("s1", "error", exit_code)
    assert ([fact.tool for fact in response.tool_calls], response.attempts) == (["write"], 1)


async def test_a_bug_is_told_of() -> None:
    shop = StepHarness(ValueError("a bug"))
    await shop.run()
    (warning,) = await shop.events(WarningRaised)
    assert isinstance(warning, WarningRaised) and "ValueError('a bug')" in warning.message


async def test_a_broken_log_is_no_answer_of_a_step() -> None:
    with pytest.raises(LogWriteError):
        await StepHarness(LogWriteError("the event log cannot be written")).run()


async def test_a_step_that_says_nothing_is_an_error() -> None:
    shop = StepHarness()
    response = await shop.run(request=ExecutorRequest(task_id="s1", goal=" \n"))
    assert (response.status, shop.client.requests) == ("error", [])


async def test_a_spent_budget_keeps_facts_usage_and_turns() -> None:
    shop = StepHarness(call_reply("write"), text_reply("never"), budget=Budget(max_tokens=380))
    response = await shop.run()
    assert (response.status, response.exit_code) == ("error", 56)
    assert ([fact.tool for fact in response.tool_calls], response.usage.requests, response.turns) == (["write"], 1, 2)


async def test_the_deadline_covers_all_attempts_and_ends_running_calls() -> None:
    shop = StepHarness(call_reply("write", "write"), functions={**TOOL_FUNCTIONS, "write": ("write", never)})
    began = time.monotonic()
    response = await shop.run(PlanStep(id="s1", title="One", instruction="Do it", timeout_s=0.05))
    assert (response.status, time.monotonic() - began < 2) == ("timeout", True)
    assert "limit of 0.05 s" in response.summary
    assert [fact.status for fact in response.tool_calls] == ["cancelled", "cancelled"]
    ended = [event for event in await shop.events(ToolCompleted) if isinstance(event, ToolCompleted)]
    assert [event.output for event in ended] == [UNKNOWN_CALL, CANCELLED_CALL]


async def test_without_a_limit_of_its_own_a_step_has_that_of_its_profile() -> None:
    shop = StepHarness(call_reply("write"), functions={**TOOL_FUNCTIONS, "write": ("write", never)})
    assert (await shop.run(profile=ExecutorProfile(timeout_ms=50))).status == "timeout"


async def test_a_limit_of_its_own_does_not_lengthen_that_of_its_profile() -> None:
    shop = StepHarness(call_reply("write"), functions={**TOOL_FUNCTIONS, "write": ("write", never)})
    step = PlanStep(id="s1", title="One", instruction="Do it", timeout_s=600)
    response = await shop.run(step, profile=ExecutorProfile(timeout_ms=50))
    assert (response.status, "limit of 0.05 s" in response.summary) == ("timeout", True)


async def test_a_cancelled_step_hands_over_what_it_did() -> None:
    has_begun = asyncio.Event()

    async def hang(args: JsonObject) -> ToolResult:
        has_begun.set()
        return await never(args)

    shop = StepHarness(call_reply("look"), call_reply("write"), functions={**TOOL_FUNCTIONS, "write": ("write", hang)})
    running = asyncio.ensure_future(shop.run())
    await has_begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (noted,) = shop.recorded
    assert (noted.status, noted.usage.requests, noted.turns) == ("cancelled", 2, 2)
    assert [fact.status for fact in noted.tool_calls] == ["ok", "cancelled"]
    (completed,) = await shop.events(StepCompleted)
    assert isinstance(completed, StepCompleted)
    assert (completed.evidence, completed.usage) == (("look exit 0", "write exit 130"), noted.usage)


class FakeCache:
    def __init__(self) -> None:
        self.kept: dict[str, ExecutorResponse] = {}

    def get(self, key: str) -> ExecutorResponse | None:
        return self.kept.get(key)

    async def put(self, key: str, response: ExecutorResponse) -> None:
        self.kept[key] = response


async def test_a_success_is_kept_before_it_is_told_and_a_failure_never() -> None:
    shelf = FakeCache()
    shop = StepHarness(text_reply("done"), text_reply("", finish_reason="stop"), text_reply(""), cache=shelf)
    response = await shop.run(key="k1")
    await shop.run(PlanStep(id="s2", title="Two", instruction="Do it"), key="k2")
    assert shelf.kept == {"k1": response}
    completed = [event for event in await shop.events(StepCompleted) if isinstance(event, StepCompleted)]
    assert [event.key for event in completed] == ["k1", None]


async def test_what_a_limit_or_a_refusal_cut_short_is_not_kept() -> None:
    shelf = FakeCache()
    no = error_result("no", exit_code=126, status="denied")
    refuses = return_in_turn(no, no, command_result(0))
    deeds: dict[str, tuple[Effect, ToolFunction]] = {"run_command": ("execute", refuses), "look": ("read", succeed)}
    call = call_reply("run_command", command="x")
    shop = StepHarness(
        call,
        text_reply("not allowed"),
        call,
        call,
        text_reply("allowed"),
        call_reply("look"),
        cache=shelf,
        functions=deeds,
    )
    await shop.run(key="k1")
    allowed = await shop.run(PlanStep(id="s2", title="Two", instruction="Do it"), key="k2")
    one_turn = ExecutorProfile(max_turns=1)
    cut = await shop.run(PlanStep(id="s3", title="Three", instruction="Do it"), profile=one_turn, key="k3")
    assert (shelf.kept, allowed.status, cut.exit_code) == ({"k2": allowed}, "partial", 53)


async def test_a_settled_step_costs_nothing() -> None:
    shop = StepHarness(text_reply("done"))
    response = await shop.run()
    settled = await shop.executor.publish_result(STEP, response, key="k")
    assert (settled.text, settled.usage.requests) == ("done", 0)
    assert (await shop.events(StepStarted))[-1] == StepStarted(title="One", cache="hit")


async def test_a_question_is_answered_by_its_id_and_only_once() -> None:
    shop = StepHarness()
    running = asyncio.ensure_future(shop.run(ASK))
    async for envelope in shop.subscription:
        if isinstance(envelope.event, QuestionAsked):
            break
    assert isinstance(envelope.event, QuestionAsked)
    assert envelope.event.options == ("left", "right")
    answer = AnswerQuestion(question_id=envelope.event.question_id, answer="left")
    assert not shop.questions.resolve(AnswerQuestion(question_id="q-unknown", answer="left"))
    assert [shop.questions.resolve(answer), shop.questions.resolve(answer)] == [True, False]
    response = await running
    assert (response.status, response.text, response.summary) == ("ok", "left", "Which? — left")
    assert shop.client.requests == []


async def test_a_question_nobody_can_answer_needs_input() -> None:
    shop = StepHarness()
    shop.questions._is_user_present = False
    response = await shop.run(ASK)
    assert (response.status, response.summary, response.next_questions) == ("needs_input", "Which?", ("Which?",))
    assert [event.answer for event in await shop.events(QuestionAnswered) if isinstance(event, QuestionAnswered)] == [
        None
    ]
