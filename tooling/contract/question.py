"""A question from the work to the person."""

from typing import Protocol

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked and the answers offered; free text is always allowed besides."""

    text: str
    options: tuple[str, ...] = ()


class Asker(Protocol):
    """Puts questions to the person, or says that nobody is there."""

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        """Return the answer, or None when nobody can answer."""
        ...
