"""The tools, profiles and models that steps of a plan can use."""

from collections.abc import Mapping
from dataclasses import field

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.schema_errors import find_schema_error
from tooling.contract.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The names a plan may use, and the tools behind them."""

    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    profiles: tuple[str, ...] = ("default",)
    models: tuple[str, ...] = ()

    def problem_with_call(self, tool: str, args: Mapping[str, object]) -> str | None:
        """Return the problem with the arguments for a known tool, or None."""
        return find_schema_error(args, self.tools[tool].parameters, "args")

    def written_paths(self, tool: str, args: Mapping[str, object]) -> tuple[str, ...]:
        """Return the paths a call is certain to write: the `path` argument of a writing tool."""
        path = args.get("path")
        return (path,) if self.tools[tool].effect == "write" and isinstance(path, str) else ()
