"""The run's token and cost budget, reserved before every model call and shared by planner, steps and composer."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

from agent.model.port import CostFunction, ModelRequest
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass

# A call limited to a shorter reply than this is not worth its prompt.
MIN_OUTPUT_TOKENS = 256
# Reply limit of a request that sets none.
DEFAULT_OUTPUT_TOKENS = 8192
# Cost of an image of the largest size that is sent.
TOKENS_PER_IMAGE = 1600
# Below the average size of a token, so reservations are too large rather than too small.
_BYTES_PER_TOKEN = 3


class BudgetExhausted(Exception):
    """The next call would exceed a limit; the run answers from the finished steps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reservation:
    """The most one call may spend; `request` is the request to send, possibly with a shorter reply limit."""

    request: ModelRequest
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallEstimate:
    """A request with its estimated tokens and cost."""

    request: ModelRequest
    input_tokens: int
    output_tokens: int
    input_usd: float = 0.0
    usd_per_token: float = 0.0

    def reservation(self, output_tokens: int) -> Reservation:
        return Reservation(
            request=replace(self.request, max_output_tokens=output_tokens),
            tokens=self.input_tokens + output_tokens,
            usd=self.input_usd + output_tokens * self.usd_per_token,
        )


class Budget:
    """Records spending, and delays or refuses calls that could exceed a limit together with pending ones."""

    def __init__(self, *, max_tokens: int | None = None, max_budget_usd: float | None = None) -> None:
        self.max_tokens = max_tokens
        self.max_budget_usd = max_budget_usd
        self.total = Usage()
        self.by_model: dict[str, Usage] = {}
        self._by_step: dict[str, Usage] = {}
        self._pending: list[Reservation] = []
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def is_limited(self) -> bool:
        return self.max_tokens is not None or self.max_budget_usd is not None

    def set_limits(self, *, max_tokens: int | None, max_budget_usd: float | None) -> None:
        """Change the limits; calls waiting in `reserve` check again."""
        self.max_tokens, self.max_budget_usd = max_tokens, max_budget_usd
        self._changed.set()

    def step_usage(self, step_id: str = "") -> Usage:
        """Return the usage of a step so far; without an id, that of calls outside any step."""
        return self._by_step.get(step_id, Usage())

    async def reserve(self, request: ModelRequest, price: CostFunction, *, full_length: bool = False) -> Reservation:
        """Reserve the maximum cost of a call; wait if it fits only after pending calls end.

        The reply limit is lowered to fit the budget, unless `full_length`. Raise BudgetExhausted if not even a short
        reply fits.
        """
        if not self.is_limited:
            return Reservation(request=request)
        need = self._estimate(request, price)
        least = need.output_tokens if full_length else min(MIN_OUTPUT_TOKENS, need.output_tokens)
        async with self._lock:
            while (reservation := self._try_reserve(need, least)) is None:
                self._changed.clear()
                await self._changed.wait()
            self._pending.append(reservation)
            return reservation

    def commit(self, reservation: Reservation, usage: Usage) -> None:
        """Record the actual usage of a call, however it ended, and release its reservation."""
        if reservation in self._pending:
            self._pending.remove(reservation)
        self._changed.set()
        self.record(reservation.request.model, usage, reservation.request.step_id)

    def record(self, name: str, usage: Usage, step_id: str | None) -> None:
        """Record the usage of a model or of a paid tool."""
        self.total += usage
        self.by_model[name] = self.by_model.get(name, Usage()) + usage
        self._by_step[step_id or ""] = self.step_usage(step_id or "") + usage

    def _estimate(self, request: ModelRequest, price: CostFunction) -> _CallEstimate:
        input_tokens = estimate_tokens(request)
        need = _CallEstimate(
            request=request,
            input_tokens=input_tokens,
            output_tokens=request.max_output_tokens or DEFAULT_OUTPUT_TOKENS,
        )
        if self.max_budget_usd is None:
            return need
        # Writing to a provider's cache may cost more than plain input.
        sent = Usage(input_tokens=input_tokens, cache_write_tokens=input_tokens)
        input_usd = price(request.model, sent)
        total_usd = price(request.model, replace(sent, output_tokens=need.output_tokens))
        if input_usd is None or total_usd is None or self.total.cost_usd is None:
            raise BudgetExhausted("the model's price is unknown, so a cost limit cannot be enforced; use --max-tokens")
        return replace(need, input_usd=input_usd, usd_per_token=(total_usd - input_usd) / need.output_tokens)

    def _try_reserve(self, need: _CallEstimate, least: int) -> Reservation | None:
        """Return the reservation, or None if pending calls must end first."""
        alone = self._available_output(need, ())
        if alone < least:
            raise BudgetExhausted(self._exhausted_reason(need, least))
        wanted = min(alone, need.output_tokens)
        return need.reservation(wanted) if self._available_output(need, self._pending) >= wanted else None

    def _available_output(self, need: _CallEstimate, others: Sequence[Reservation]) -> int:
        """Return how many tokens the reply may have if the other calls spend all they reserved."""
        available = need.output_tokens
        if self.max_tokens is not None:
            used = self.total.total_tokens + sum(other.tokens for other in others)
            available = min(available, self.max_tokens - used - need.input_tokens)
        if self.max_budget_usd is None:
            return available
        spent = self.total.cost_usd or 0.0
        left = self.max_budget_usd - spent - sum(other.usd for other in others) - need.input_usd
        if left < 0 or spent >= self.max_budget_usd:
            return 0
        return min(available, int(left / need.usd_per_token)) if need.usd_per_token else available

    def _exhausted_reason(self, need: _CallEstimate, least: int) -> str:
        if self.max_tokens is not None:
            left = self.max_tokens - self.total.total_tokens - need.input_tokens
            if left < least:
                return f"the next request would exceed the limit of {self.max_tokens} tokens"
        if (self.total.cost_usd or 0.0) >= (self.max_budget_usd or 0.0):
            return f"the limit of ${self.max_budget_usd:g} is spent"
        return f"the next request could exceed the limit of ${self.max_budget_usd:g}"


def estimate_tokens(request: ModelRequest) -> int:
    """Estimate the input tokens of a request, erring on the high side."""
    text = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    calls = sum(len(json.dumps(dict(call.arguments))) for message in request.messages for call in message.tool_calls)
    tools = len(json.dumps(request.tools, default=dict)) if request.tools else 0
    images = sum(len(message.images) for message in request.messages)
    return (text + calls + tools) // _BYTES_PER_TOKEN + len(request.messages) + images * TOKENS_PER_IMAGE
