"""What is remembered from run to run, as far as a tool may touch it."""

from typing import Protocol

from tooling.contract.context import ExecCtx


class Memory(Protocol):
    """The user's memory in one run; what cannot be stored is a ToolError."""

    async def read(self) -> str:
        """Return everything that is remembered."""
        ...

    def check(self, text: str) -> None:
        """Raise ToolError when this text may not be remembered."""
        ...

    def is_requested(self, text: str) -> bool:
        """Say whether the user asked in so many words that this be remembered."""
        ...

    async def append(self, text: str, ctx: ExecCtx) -> str:
        """Remember a text and return the line it became, or why there is no need to."""
        ...

    async def clear(self, ctx: ExecCtx) -> int:
        """Forget everything and return how many lines that were."""
        ...
