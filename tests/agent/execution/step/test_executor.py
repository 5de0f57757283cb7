"""The executor: retries, time limits, cancellation, caching and questions of one step."""

import asyncio

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


async def test_transient_faults_are_retried_with_increasing_delays() -> None:
    harness = StepHarness(ConnectionError("reset by peer"), TimeoutError("timed out"), text_reply("done"))
    response = await harness.run()
    assert (response.status, response.attempts) == ("ok", 3)
    assert (0.6 <= harness.sleeps[0] <= 0.8, 1.2 <= harness.sleeps[1] <= 1.4) == (True, True)
    envelopes = await harness.envelopes()
    assert [envelope.attempt for envelope in envelopes if isinstance(envelope.event, StepCompleted)] == [3]
    assert sum(isinstance(envelope.event, WarningRaised) for envelope in envelopes) == 2


async def test_a_retry_continues_the_conversation_and_repeats_no_call() -> None:
    harness = StepHarness(call_reply("write", path="a"), ConnectionError("lost"), text_reply("done"))
    response = await harness.run()
    assert (response.attempts, [name for name, _ in harness.tools.calls]) == (2, ["write"])
    asked, result_message = harness.client.requests[-1].messages[2:]
    assert (asked.tool_calls[0].name, result_message.content) == ("write", "done {'path': 'a'}")


async def test_a_profile_without_retries_makes_one_attempt() -> None:
    harness = StepHarness(ConnectionError("lost"))
    response = await harness.run(profile=ExecutorProfile(max_retries=0))
    assert (response.status, response.attempts, harness.sleeps) == ("error", 1, [])


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
def test_only_transient_errors_are_retried(error: Exception, is_passing: bool) -> None:
    assert is_transient(error) is is_passing


def test_delays_increase_and_have_jitter() -> None:
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
async def test_an_exception_in_the_loop_becomes_a_response(error: Exception, exit_code: int) -> None:
    harness = StepHarness(call_reply("write"), error)
    response = await harness.run()
    assert (response.task_id, response.status, response.exit_code) == ("s1", "error", exit_code)
    assert ([fact.tool for fact in response.tool_calls], response.attempts) == (["write"], 1)


async def test_an_internal_error_is_reported_as_a_warning() -> None:
    harness = StepHarness(ValueError("a bug"))
    await harness.run()
    (warning,) = await harness.events(WarningRaised)
    assert isinstance(warning, WarningRaised) and "ValueError('a bug')" in warning.message


async def test_a_log_write_error_is_raised_instead_of_becoming_a_response() -> None:
    with pytest.raises(LogWriteError):
        await StepHarness(LogWriteError("disk full")).run()


async def test_a_step_without_a_goal_is_an_error() -> None:
    harness = StepHarness()
    response = await harness.run(request=ExecutorRequest(task_id="s1", goal=" \n"))
    assert (response.status, harness.client.requests) == ("error", [])


async def test_an_exhausted_budget_keeps_facts_usage_and_turns() -> None:
    harness = StepHarness(call_reply("write"), text_reply("never"), budget=Budget(max_tokens=420))
    response = await harness.run()
    assert (response.status, response.exit_code) == ("error", 56)
    assert ([fact.tool for fact in response.tool_calls], response.usage.requests, response.turns) == (["write"], 1, 2)


async def test_the_time_limit_covers_all_attempts_and_cancels_running_calls() -> None:
    harness = StepHarness(call_reply("write", "write"), functions={**TOOL_FUNCTIONS, "write": ("write", never)})
    response = await harness.run(PlanStep(id="s1", title="One", instruction="Do it", timeout_s=0.05))
    assert (response.status, "limit of 0.05 s" in response.summary) == ("timeout", True)
    assert [fact.status for fact in response.tool_calls] == ["cancelled", "cancelled"]
    ended = [event for event in await harness.events(ToolCompleted) if isinstance(event, ToolCompleted)]
    assert [event.output for event in ended] == [UNKNOWN_CALL, CANCELLED_CALL]


async def test_a_step_without_a_time_limit_has_that_of_its_profile() -> None:
    harness = StepHarness(call_reply("write"), functions={**TOOL_FUNCTIONS, "write": ("write", never)})
    assert (await harness.run(profile=ExecutorProfile(timeout_ms=50))).status == "timeout"


async def test_a_step_cannot_extend_the_time_limit_of_its_profile() -> None:
    harness = StepHarness(call_reply("write"), functions={**TOOL_FUNCTIONS, "write": ("write", never)})
    step = PlanStep(id="s1", title="One", instruction="Do it", timeout_s=600)
    response = await harness.run(step, profile=ExecutorProfile(timeout_ms=50))
    assert (response.status, "limit of 0.05 s" in response.summary) == ("timeout", True)


async def test_a_cancelled_step_reports_its_calls_and_usage() -> None:
    has_begun = asyncio.Event()

    async def hang(args: JsonObject) -> ToolResult:
        has_begun.set()
        return await never(args)

    harness = StepHarness(
        call_reply("look"), call_reply("write"), functions={**TOOL_FUNCTIONS, "write": ("write", hang)}
    )
    running = asyncio.ensure_future(harness.run())
    await has_begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (recorded,) = harness.recorded
    assert (recorded.status, recorded.usage.requests, recorded.turns) == ("cancelled", 2, 2)
    assert [fact.status for fact in recorded.tool_calls] == ["ok", "cancelled"]
    (completed,) = await harness.events(StepCompleted)
    assert isinstance(completed, StepCompleted)
    assert (completed.evidence, completed.usage) == (("look exit 0", "write exit 130"), recorded.usage)


class FakeCache:
    def __init__(self) -> None:
        self.kept: dict[str, ExecutorResponse] = {}

    def get(self, key: str) -> ExecutorResponse | None:
        return self.kept.get(key)

    async def put(self, key: str, response: ExecutorResponse) -> None:
        self.kept[key] = response


async def test_a_success_is_cached_and_a_failure_is_not() -> None:
    cache = FakeCache()
    harness = StepHarness(text_reply("done"), text_reply("", finish_reason="stop"), text_reply(""), cache=cache)
    response = await harness.run(key="k1")
    await harness.run(PlanStep(id="s2", title="Two", instruction="Do it"), key="k2")
    assert cache.kept == {"k1": response}
    completed = [event for event in await harness.events(StepCompleted) if isinstance(event, StepCompleted)]
    assert [event.key for event in completed] == ["k1", None]


async def test_a_result_limited_by_turns_or_a_refusal_is_not_cached() -> None:
    cache = FakeCache()
    no = error_result("no", exit_code=126, status="denied")
    refuses = return_in_turn(no, no, command_result(0))
    functions: dict[str, tuple[Effect, ToolFunction]] = {"run_command": ("execute", refuses), "look": ("read", succeed)}
    call = call_reply("run_command", command="x")
    harness = StepHarness(
        call,
        text_reply("not allowed"),
        call,
        call,
        text_reply("allowed"),
        call_reply("look"),
        cache=cache,
        functions=functions,
    )
    await harness.run(key="k1")
    allowed = await harness.run(PlanStep(id="s2", title="Two", instruction="Do it"), key="k2")
    one_turn = ExecutorProfile(max_turns=1)
    cut = await harness.run(PlanStep(id="s3", title="Three", instruction="Do it"), profile=one_turn, key="k3")
    assert (cache.kept, allowed.status, cut.exit_code) == ({"k2": allowed}, "ok", 53)


async def test_a_cached_result_costs_nothing() -> None:
    harness = StepHarness(text_reply("done"))
    response = await harness.run()
    settled = await harness.executor.publish_result(STEP, response, key="k")
    assert (settled.text, settled.usage.requests) == ("done", 0)
    assert (await harness.events(StepStarted))[-1] == StepStarted(title="One", cache="hit")


async def test_a_question_is_answered_by_its_id_and_only_once() -> None:
    harness = StepHarness()
    running = asyncio.ensure_future(harness.run(ASK))
    async for envelope in harness.subscription:
        if isinstance(envelope.event, QuestionAsked):
            break
    assert isinstance(envelope.event, QuestionAsked)
    assert envelope.event.options == ("left", "right")
    answer = AnswerQuestion(question_id=envelope.event.question_id, answer="left")
    assert not harness.questions.resolve(AnswerQuestion(question_id="q-unknown", answer="left"))
    assert [harness.questions.resolve(answer), harness.questions.resolve(answer)] == [True, False]
    response = await running
    assert (response.status, response.text, response.summary) == ("ok", "left", "Which? — left")
    assert harness.client.requests == []


async def test_a_question_without_a_user_needs_input() -> None:
    harness = StepHarness()
    harness.questions._is_user_present = False
    response = await harness.run(ASK)
    assert (response.status, response.summary, response.next_questions) == ("needs_input", "Which?", ("Which?",))
    assert [
        event.answer for event in await harness.events(QuestionAnswered) if isinstance(event, QuestionAnswered)
    ] == [None]
