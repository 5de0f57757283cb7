"""Where a statement of a shell text stands."""

from tooling.contract.fast_dataclass import dataclass
from tooling.safety.shell.constant_output import Output
from tooling.safety.shell.state import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a statement stands: its shell, what it reads, who reads what it prints."""

    scope: Scope
    stdin: str | None = None
    feed: Output | None = None
    is_fed: bool = False
    sink: Output | None = None
    may_skip: bool = False
    is_parallel: bool = False

    @property
    def input(self) -> str | None:
        """Return the text that comes in, where it is known."""
        return self.feed.text if self.feed is not None else self.stdin
