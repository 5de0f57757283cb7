"""One ledger for planner, steps, retries and composer: tokens and money, checked before every call."""

from agent.model.port import ModelRequest
from agent.vocabulary.usage import Usage

_CHARS_PER_TOKEN = 4


class BudgetExhausted(Exception):
    """The next call would go past a limit; what is finished is answered from."""


class Ledger:
    """Adds up what was spent and stops the next call once a limit is reached.

    Nothing is reserved: calls that are under way at the same moment can together go past a limit.
    """

    def __init__(self, *, max_tokens: int | None = None, max_budget_usd: float | None = None) -> None:
        self.max_tokens = max_tokens
        self.max_budget_usd = max_budget_usd
        self.total = Usage()
        self.by_model: dict[str, Usage] = {}
        self._by_step: dict[str, Usage] = {}

    @property
    def is_limited(self) -> bool:
        """Say whether there is a limit to watch."""
        return self.max_tokens is not None or self.max_budget_usd is not None

    def check(self, request: ModelRequest) -> None:
        """Raise BudgetExhausted when this request cannot be afforded."""
        if self.max_tokens is not None:
            expected = self.total.total_tokens + _tokens(request)
            if expected > self.max_tokens:
                raise BudgetExhausted(f"the next request would pass the limit of {self.max_tokens} tokens")
        if self.max_budget_usd is None:
            return
        if self.total.cost_usd is None:
            raise BudgetExhausted("the model's price is not known, so a limit in USD cannot be kept; use --max-tokens")
        if self.total.cost_usd >= self.max_budget_usd:
            raise BudgetExhausted(f"the limit of {self.max_budget_usd:g} USD is spent")

    def of_step(self, step_id: str) -> Usage:
        """Return what a step has cost so far."""
        return self._by_step.get(step_id, Usage())

    def record(self, model: str, usage: Usage, step_id: str | None = None) -> None:
        """Add what a call cost."""
        self.total += usage
        self.by_model[model] = self.by_model.get(model, Usage()) + usage
        if step_id is not None:
            self._by_step[step_id] = self.of_step(step_id) + usage


def _tokens(request: ModelRequest) -> int:
    return sum(len(message.content) for message in request.messages) // _CHARS_PER_TOKEN
