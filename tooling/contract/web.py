"""The web, as tools see it."""

from typing import Literal, Protocol, TypeAlias

from tooling.contract.action import ActionGate
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolResult

FetchMode: TypeAlias = Literal["auto", "text", "raw", "reader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCall:
    """The page that a tool requests, and which part of it."""

    tool: str
    url: str
    query: str = ""
    offset: int = 0
    mode: FetchMode = "auto"
    use_cache: bool = True


class Web(Protocol):
    """Fetches pages and searches the web for the tools of a run; only public addresses, within limits."""

    async def fetch_page(self, call: FetchCall, ctx: ExecCtx, gate: ActionGate) -> ToolResult:
        """Fetch a page; `gate` decides about redirects to other hosts. Raises ToolError."""
        ...

    async def search(self, text: str, count: int) -> ToolResult:
        """Search with the configured providers. Raises ToolError."""
        ...


class NoWeb:
    """The web port of tools without web access."""

    async def fetch_page(self, call: FetchCall, ctx: ExecCtx, gate: ActionGate) -> ToolResult:
        """Refuse."""
        return _NO_WEB

    async def search(self, text: str, count: int) -> ToolResult:
        """Refuse."""
        return _NO_WEB


_NO_WEB = ToolResult("The web is not available here.", 1)
