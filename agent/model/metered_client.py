"""The one place from which models are asked: the cost is reserved, fragments are heard, what was spent is booked."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from agent.model.budget import Budget, CostFunction, Reservation, estimate_tokens
from agent.model.closing import closing
from agent.model.port import ModelClient, ModelReply, ModelRequest, StreamItem, StreamRestarted
from agent.protocol.channel import Channel
from agent.protocol.events import BudgetSpent
from agent.vocabulary.usage import Usage

_CHARS_PER_TOKEN = 4


class MeteredModel:
    """Asks models for planner, steps and composer alike."""

    def __init__(self, *, client: ModelClient, budget: Budget, channel: Channel, price: CostFunction) -> None:
        self._client = client
        self._budget = budget
        self._channel = channel
        self._price = price

    @property
    def budget(self) -> Budget:
        """Return the run's ledger."""
        return self._budget

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
        held = await self._budget.reserve(request, self._price)
        reply: ModelReply | None = None
        heard = 0
        try:
            async with closing(self._client.stream(held.request)) as items:
                async for item in items:
                    if isinstance(item, ModelReply):
                        reply = item
                    elif isinstance(item, StreamRestarted):
                        # What broke off was paid for, and the next attempt is a call like any other.
                        self._commit(held, self._estimate(held, heard))
                        heard = 0
                        held = await self._budget.reserve(held.request, self._price, is_whole=True)
                    else:
                        heard += len(item.text)
                    yield item
            assert reply is not None, "a model stream ended without a reply or a fault"
        finally:
            self._commit(held, reply.usage if reply else self._estimate(held, heard))

    def _commit(self, held: Reservation, usage: Usage) -> None:
        self._budget.commit(held, usage)
        if self._budget.is_limited and usage.requests:
            self._emit_spent(held.request.step_id)

    def _estimate(self, held: Reservation, heard: int) -> Usage:
        """Return what a call has probably cost that broke off: nothing when it said nothing."""
        if not heard:
            return Usage()
        usage = Usage(
            input_tokens=estimate_tokens(held.request), output_tokens=-(-heard // _CHARS_PER_TOKEN), requests=1
        )
        return replace(usage, cost_usd=self._price(held.request.model, usage))

    def record_tool_cost(self, tool: str, cost_usd: float, step_id: str) -> None:
        """Add what a call of a tool cost to what the models did."""
        self._budget.record(tool, Usage(cost_usd=cost_usd), step_id)
        if self._budget.is_limited:
            self._emit_spent(step_id)

    def _emit_spent(self, step_id: str | None) -> None:
        ledger = self._budget
        spent = BudgetSpent(
            usage=ledger.total,
            cost_usd=ledger.total.cost_usd,
            max_tokens=ledger.max_tokens,
            max_budget_usd=ledger.max_budget_usd,
        )
        self._channel.emit(spent, step_id=step_id)
