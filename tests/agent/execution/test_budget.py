"""The budget: concurrent calls never exceed a limit and never deadlock."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.budget import MIN_OUTPUT_TOKENS, Budget, BudgetExhausted, estimate_tokens
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelReply, ModelRequest, StreamItem, StreamRestarted, TextDelta
from agent.protocol.channel import Channel
from agent.protocol.events import BudgetSpent
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tests.examples import examples

IN_USD, OUT_USD = 0.000_01, 0.000_03


def price(model: str, usage: Usage) -> float | None:
    if model == "unknown":
        return None
    return usage.input_tokens * IN_USD + usage.output_tokens * OUT_USD


def request(chars: int = 300, max_output: int = 1000, model: str = "m", step: str = "s1") -> ModelRequest:
    said = (Message(role="user", content="x" * chars),)
    return ModelRequest(model=model, messages=said, max_output_tokens=max_output, step_id=step)


def reply(asked: ModelRequest, *, sent: int, said: int) -> ModelReply:
    usage = Usage(input_tokens=sent, output_tokens=said, requests=1)
    usage = replace(usage, cost_usd=price(asked.model, usage))
    return ModelReply(message=Message(role="assistant", content="y"), usage=usage, model=asked.model)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a random run: its size, the share of its allowance it uses, and how it ends."""

    chars: int
    max_output: int
    share: float
    steps: int
    result: str


CALLS = st.builds(
    Call,
    chars=st.integers(0, 3000),
    max_output=st.integers(1, 3000),
    share=st.floats(0, 1),
    steps=st.integers(0, 4),
    result=st.sampled_from(["reply", "reply", "reply", "fault", "cut", "cancel"]),
)


class Provider:
    """Replies within the limits of each request, and checks that reservations stay within the budget."""

    def __init__(self, calls: dict[str, Call], budget: Budget) -> None:
        self._calls = calls
        self._budget = budget
        self.in_flight: dict[str, tuple[int, float]] = {}

    async def stream(self, asked: ModelRequest) -> AsyncIterator[StreamItem]:
        call = self._calls[asked.step_id or ""]
        max_output, sent = asked.max_output_tokens or 0, estimate_tokens(asked)
        assert min(MIN_OUTPUT_TOKENS, call.max_output) <= max_output <= call.max_output
        most = Usage(input_tokens=sent, output_tokens=max_output)
        self.in_flight[asked.step_id or ""] = (most.total_tokens, price("m", most) or 0.0)
        try:
            self._check()
            for _ in range(call.steps):
                await asyncio.sleep(0)
            if call.result == "fault":
                raise ModelFault("server")
            said = int(max_output * call.share)
            yield TextDelta(text="z" * 4 * said)
            if call.result == "cut":
                raise ModelFault("reset")
            yield reply(asked, sent=sent, said=said)
        finally:
            del self.in_flight[asked.step_id or ""]

    def _check(self) -> None:
        tokens = self._budget.total.total_tokens + sum(tokens for tokens, _ in self.in_flight.values())
        usd = (self._budget.total.cost_usd or 0.0) + sum(usd for _, usd in self.in_flight.values())
        assert self._budget.max_tokens is None or tokens <= self._budget.max_tokens
        assert self._budget.max_budget_usd is None or usd <= self._budget.max_budget_usd + 1e-9

    async def close(self) -> None: ...


@examples(150)
@given(
    calls=st.lists(CALLS, min_size=1, max_size=12),
    max_tokens=st.none() | st.integers(1, 12_000),
    max_usd=st.none() | st.floats(0.000_1, 0.2),
)
def test_concurrent_calls_never_exceed_a_limit(
    calls: list[Call], max_tokens: int | None, max_usd: float | None
) -> None:
    async def run() -> Budget:
        budget = Budget(max_tokens=max_tokens, max_budget_usd=max_usd)
        by_step = {f"s{number}": call for number, call in enumerate(calls)}
        channel = Channel(session_id="s", run_id="r", log=None)
        client = MeteredModel(client=Provider(by_step, budget), budget=budget, channel=channel, price=price)
        asking = {
            step: asyncio.ensure_future(client.ask(request(call.chars, call.max_output, step=step)))
            for step, call in by_step.items()
        }
        for step, call in by_step.items():
            if call.result == "cancel":
                for _ in range(call.steps):
                    await asyncio.sleep(0)
                asking[step].cancel()
        ended = await asyncio.wait_for(asyncio.gather(*asking.values(), return_exceptions=True), 5)
        allowed = (ModelReply, ModelFault, BudgetExhausted, asyncio.CancelledError)
        assert all(isinstance(end, allowed) for end in ended), ended
        assert await budget.reserve(request(0, 1), price) if max_tokens is None and max_usd is None else True
        await channel.close()
        return budget

    budget = asyncio.run(run())
    assert max_tokens is None or budget.total.total_tokens <= max_tokens
    assert max_usd is None or (budget.total.cost_usd or 0.0) <= max_usd + 1e-9
    steps = [budget.step_usage(f"s{number}") for number in range(len(calls))]
    assert sum(step.total_tokens for step in steps) == budget.total.total_tokens
    assert sum(usage.total_tokens for usage in budget.by_model.values()) == budget.total.total_tokens


async def test_a_call_waits_for_running_calls_to_release_their_reservation() -> None:
    budget = Budget(max_tokens=2000)
    first = await budget.reserve(request(300, 1000), price)
    second = asyncio.ensure_future(budget.reserve(request(300, 1000), price))
    await asyncio.sleep(0)
    assert not second.done()
    budget.commit(first, Usage(input_tokens=100, output_tokens=10))
    assert (await second).request.max_output_tokens == 1000


async def test_the_remaining_tokens_limit_a_reply_down_to_a_minimum() -> None:
    budget = Budget(max_tokens=800)
    held = await budget.reserve(request(300, 1000), price)
    assert (held.tokens, held.request.max_output_tokens) == (800, 800 - estimate_tokens(request(300)))
    budget.commit(held, Usage(input_tokens=100, output_tokens=400))
    with pytest.raises(BudgetExhausted, match="limit of 800 tokens"):
        await budget.reserve(request(300, 1000), price)


async def test_a_cost_limit_limits_a_reply_too() -> None:
    budget = Budget(max_budget_usd=0.02)
    held = await budget.reserve(request(300, 1000), price)
    assert held.request.max_output_tokens == int((0.02 - estimate_tokens(request(300)) * IN_USD) / OUT_USD)
    with pytest.raises(BudgetExhausted, match=r"could exceed the limit of \$0\.001"):
        await Budget(max_budget_usd=0.001).reserve(request(300, 1000), price)


async def test_a_cost_limit_needs_a_known_price() -> None:
    with pytest.raises(BudgetExhausted, match="use --max-tokens"):
        await Budget(max_budget_usd=1).reserve(request(model="unknown"), price)


async def test_a_run_without_limits_reserves_nothing_and_changes_no_request() -> None:
    asked = request(model="unknown")
    held = await Budget().reserve(asked, price)
    assert held.request is asked


class Restarting:
    """A model whose stream breaks off once, then is complete."""

    async def stream(self, asked: ModelRequest) -> AsyncIterator[StreamItem]:
        yield TextDelta(text="a" * 400)
        yield StreamRestarted(reason="broke off")
        yield reply(asked, sent=100, said=50)

    async def close(self) -> None: ...


async def test_a_broken_off_reply_is_charged_and_reserved_again() -> None:
    channel = Channel(session_id="s", run_id="r", log=None)
    subscription = channel.subscribe()
    asked = request()
    budget = Budget(max_tokens=10_000)
    await MeteredModel(client=Restarting(), budget=budget, channel=channel, price=price).ask(asked)
    assert budget.step_usage("s1").total_tokens == estimate_tokens(asked) + 100 + 100 + 50
    small = Budget(max_tokens=1200)
    with pytest.raises(BudgetExhausted):
        await MeteredModel(client=Restarting(), budget=small, channel=channel, price=price).ask(asked)
    assert small.total.total_tokens == estimate_tokens(asked) + 100
    await channel.close()
    reported = [
        envelope.event.usage.total_tokens async for envelope in subscription if isinstance(envelope.event, BudgetSpent)
    ]
    assert reported == [201, 351, 201]
