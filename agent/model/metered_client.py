"""The budgeted model client: reserves the cost of each call and records its actual cost."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from agent.model.budget import Budget, Reservation, estimate_tokens
from agent.model.faults import ModelFault
from agent.model.port import (
    MAX_CONTINUATIONS,
    PAUSED,
    CostFunction,
    ModelClient,
    ModelReply,
    ModelRequest,
    StreamItem,
    StreamRestarted,
    TextDelta,
    closing_stream,
)
from agent.protocol.channel import Channel
from agent.protocol.events import BudgetSpent
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage

_CHARS_PER_TOKEN = 4


class MeteredModel:
    """The model client shared by planner, steps and composer."""

    def __init__(self, *, client: ModelClient, budget: Budget, channel: Channel, price: CostFunction) -> None:
        self._client = client
        self.budget = budget
        self._channel = channel
        self._price = price

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Return the complete reply; raises ModelFault or BudgetExhausted."""
        reply: ModelReply | None = None
        async with aclosing(self.stream(request)) as items:
            async for item in items:
                reply = item if isinstance(item, ModelReply) else reply
        assert reply is not None
        return reply

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the reply as it arrives, the complete one last; raises ModelFault or BudgetExhausted.

        Close it (`aclosing`): the cost is booked when the stream ends.
        """
        reservation = await self.budget.reserve(request, self._price)
        reply: ModelReply | None = None
        received_chars = 0
        try:
            async with closing_stream(self._client.stream(reservation.request)) as items:
                async for item in items:
                    if isinstance(item, ModelReply):
                        reply = item
                    elif isinstance(item, StreamRestarted):
                        # The aborted attempt was paid for, and the next one needs its own reservation.
                        self._commit(reservation, self._estimate(reservation, received_chars))
                        received_chars = 0
                        reservation = await self.budget.reserve(reservation.request, self._price, full_length=True)
                    else:
                        received_chars += len(item.text)
                    yield item
            assert reply is not None, "a model stream ended without a reply or a fault"
        finally:
            self._commit(reservation, reply.usage if reply else self._estimate(reservation, received_chars))

    def _commit(self, reservation: Reservation, usage: Usage) -> None:
        self.budget.commit(reservation, usage)
        if self.budget.is_limited and usage.requests:
            self._emit_spent(reservation.request.step_id)

    def _estimate(self, reservation: Reservation, received_chars: int) -> Usage:
        """Estimate the usage of an interrupted call; none if nothing was received."""
        if not received_chars:
            return Usage()
        usage = Usage(
            input_tokens=estimate_tokens(reservation.request),
            output_tokens=-(-received_chars // _CHARS_PER_TOKEN),
            requests=1,
        )
        return replace(usage, cost_usd=self._price(reservation.request.model, usage))

    def record_tool_cost(self, tool: str, cost_usd: float, step_id: str) -> None:
        """Record the cost of a paid tool call."""
        self.budget.record(tool, Usage(cost_usd=cost_usd), step_id)
        if self.budget.is_limited:
            self._emit_spent(step_id)

    def _emit_spent(self, step_id: str | None) -> None:
        budget = self.budget
        spent = BudgetSpent(
            usage=budget.total,
            cost_usd=budget.total.cost_usd,
            max_tokens=budget.max_tokens,
            max_budget_usd=budget.max_budget_usd,
        )
        self._channel.emit(spent, step_id=step_id)


async def stream_whole(client: MeteredModel, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
    """Yield a reply like `MeteredModel.stream`, but continue a truncated or paused text.

    Raises ModelFault of the kind `cut_off` or `paused` if that is not enough; its text has been yielded by then.
    """
    beginning, continued = "", 0
    while True:
        reply: ModelReply | None = None
        async with aclosing(client.stream(request)) as items:
            async for item in items:
                if isinstance(item, ModelReply):
                    reply = item
                    continue
                yield item
                if isinstance(item, StreamRestarted) and beginning:
                    yield TextDelta(text=beginning)
        assert reply is not None
        text = beginning + reply.message.content
        if not reply.is_incomplete:
            yield replace(reply, message=replace(reply.message, content=text))
            return
        if continued >= MAX_CONTINUATIONS[reply.finish_reason]:
            raise ModelFault("paused" if reply.finish_reason == PAUSED else "cut_off")
        beginning, continued = text, continued + 1
        said = replace(reply.message, reasoning="", reasoning_signature=None)
        ask = Message(role="user", content=reply.continue_prompt)
        request = replace(request, messages=(*request.messages, said, ask))
