"""Questions to the user."""

from typing import Protocol

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and its suggested answers; free text is always allowed, too."""

    text: str
    options: tuple[str, ...] = ()


class Asker(Protocol):
    """Asks the user, if one is present."""

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        """Return the answer, or None if no user is present."""
        ...
