"""The memory that persists across runs, as tools see it."""

from typing import Protocol

from tooling.contract.context import ExecCtx


class Memory(Protocol):
    """Reads and changes the user's memory. Methods raise ToolError if the memory cannot be read or written."""

    async def read(self) -> str:
        """Return everything that is remembered."""
        ...

    def check(self, text: str) -> None:
        """Raise ToolError if this text may not be remembered."""
        ...

    def is_requested(self, text: str) -> bool:
        """Return whether the user explicitly asked to remember this."""
        ...

    async def append(self, text: str, ctx: ExecCtx) -> str:
        """Add a text; return the line that was added, or why none was needed."""
        ...

    async def clear(self, ctx: ExecCtx) -> int:
        """Remove all lines and return their number."""
        ...
