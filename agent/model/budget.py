"""One ledger for planner, steps, retries and composer: tokens and money, reserved before every call."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from agent.model.port import ModelRequest
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass

CostFunction: TypeAlias = Callable[[str, Usage], float | None]

# A call that may say less than this is not worth its prompt.
MIN_OUTPUT_TOKENS = 256
# What a request that names no limit of its own may answer.
DEFAULT_OUTPUT_TOKENS = 8192
# Fewer bytes than a token has on average, so that a reservation is rather too large than too small.
_BYTES_PER_TOKEN = 3


class BudgetExhausted(Exception):
    """The next call would go past a limit; what is finished is answered from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reservation:
    """What one call may spend at most; `request` is what may be asked for it, its reply perhaps shorter."""

    request: ModelRequest
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallEstimate:
    """A request in the terms of the ledger."""

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
    """Books what calls cost, and lets no call begin that could go past a limit together with those under way."""

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
        """Say whether there is a limit to watch."""
        return self.max_tokens is not None or self.max_budget_usd is not None

    def set_limits(self, *, max_tokens: int | None, max_budget_usd: float | None) -> None:
        """Set other limits from now on; who waits for room looks again."""
        self.max_tokens, self.max_budget_usd = max_tokens, max_budget_usd
        self._changed.set()

    def step_usage(self, step_id: str = "") -> Usage:
        """Return what a step has cost so far; without an id, what was asked for no step in particular."""
        return self._by_step.get(step_id, Usage())

    async def reserve(self, request: ModelRequest, price: CostFunction, *, is_whole: bool = False) -> Reservation:
        """Set aside what a call can cost; waits while only calls under way stand in its way.

        What is left may allow a shorter reply only, unless it must be `is_whole`; BudgetExhausted says that there is
        not enough even for that.
        """
        if not self.is_limited:
            return Reservation(request=request)
        need = self._estimate(request, price)
        least = need.output_tokens if is_whole else min(MIN_OUTPUT_TOKENS, need.output_tokens)
        async with self._lock:
            while (reservation := self._try_reserve(need, least)) is None:
                self._changed.clear()
                await self._changed.wait()
            self._pending.append(reservation)
            return reservation

    def commit(self, reservation: Reservation, usage: Usage) -> None:
        """Book what a call has really cost, however it ended, and free what it had reserved."""
        if reservation in self._pending:
            self._pending.remove(reservation)
        self._changed.set()
        self.record(reservation.request.model, usage, reservation.request.step_id)

    def record(self, name: str, usage: Usage, step_id: str | None) -> None:
        """Book what a model, or a tool that somebody charges for, has cost."""
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
        # Writing to a provider's cache may cost more than reading without one.
        sent = Usage(input_tokens=input_tokens, cache_write_tokens=input_tokens)
        input_usd = price(request.model, sent)
        whole_usd = price(request.model, replace(sent, output_tokens=need.output_tokens))
        if input_usd is None or whole_usd is None or self.total.cost_usd is None:
            raise BudgetExhausted("the model's price is not known, so a limit in USD cannot be kept; use --max-tokens")
        return replace(need, input_usd=input_usd, usd_per_token=(whole_usd - input_usd) / need.output_tokens)

    def _try_reserve(self, need: _CallEstimate, least: int) -> Reservation | None:
        """Return the reservation, or None while others must settle first."""
        alone = self._available_output(need, ())
        if alone < least:
            raise BudgetExhausted(self._exhausted_reason(need, least))
        wanted = min(alone, need.output_tokens)
        return need.reservation(wanted) if self._available_output(need, self._pending) >= wanted else None

    def _available_output(self, need: _CallEstimate, others: Sequence[Reservation]) -> int:
        """Return how many tokens a reply may have when these calls cost all they may."""
        room = need.output_tokens
        if self.max_tokens is not None:
            taken = self.total.total_tokens + sum(other.tokens for other in others)
            room = min(room, self.max_tokens - taken - need.input_tokens)
        if self.max_budget_usd is None:
            return room
        spent = self.total.cost_usd or 0.0
        left = self.max_budget_usd - spent - sum(other.usd for other in others) - need.input_usd
        if left < 0 or spent >= self.max_budget_usd:
            return 0
        return min(room, int(left / need.usd_per_token)) if need.usd_per_token else room

    def _exhausted_reason(self, need: _CallEstimate, least: int) -> str:
        if self.max_tokens is not None:
            left = self.max_tokens - self.total.total_tokens - need.input_tokens
            if left < least:
                return f"the next request would pass the limit of {self.max_tokens} tokens"
        if (self.total.cost_usd or 0.0) >= (self.max_budget_usd or 0.0):
            return f"the limit of {self.max_budget_usd:g} USD is spent"
        return f"the next request could pass the limit of {self.max_budget_usd:g} USD"


def estimate_tokens(request: ModelRequest) -> int:
    """Estimate how many tokens a request sends: never far too few."""
    text = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    calls = sum(len(json.dumps(dict(call.arguments))) for message in request.messages for call in message.tool_calls)
    tools = len(json.dumps(request.tools, default=dict)) if request.tools else 0
    return (text + calls + tools) // _BYTES_PER_TOKEN + len(request.messages)
