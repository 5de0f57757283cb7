"""The one place from which models are asked: the ledger is checked, fragments are heard, the cost is booked."""

from collections.abc import Callable

from agent.execution.ledger import Ledger
from agent.model.port import Delta, ModelClient, ModelReply, ModelRequest
from agent.protocol.channel import Channel
from agent.protocol.events import BudgetSpent

Hear = Callable[[Delta], None]


class ModelDesk:
    """Asks models for planner, steps and composer alike."""

    def __init__(self, *, client: ModelClient, ledger: Ledger, channel: Channel) -> None:
        self._client = client
        self._ledger = ledger
        self._channel = channel

    @property
    def ledger(self) -> Ledger:
        """Return the run's ledger."""
        return self._ledger

    async def ask(self, request: ModelRequest, hear: Hear | None = None) -> ModelReply:
        """Return the whole reply; raises ModelFault or BudgetExhausted."""
        self._ledger.check(request)
        reply: ModelReply | None = None
        async for item in self._client.stream(request):
            if isinstance(item, ModelReply):
                reply = item
            elif hear:
                hear(item)
        assert reply is not None, "a model stream ended without a reply or a fault"
        self._ledger.record(reply.model, reply.usage, request.step_id)
        if self._ledger.is_limited:
            self._tell(request.step_id)
        return reply

    def _tell(self, step_id: str | None) -> None:
        ledger = self._ledger
        spent = BudgetSpent(
            usage=ledger.total,
            cost_usd=ledger.total.cost_usd,
            max_tokens=ledger.max_tokens,
            max_budget_usd=ledger.max_budget_usd,
        )
        self._channel.whisper(spent, step_id=step_id)
