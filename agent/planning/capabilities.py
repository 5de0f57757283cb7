"""What the steps of a plan can use: tools, profiles, models."""

from collections.abc import Mapping
from dataclasses import field

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.schema_errors import find_schema_error
from tooling.contract.tool import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The names a plan may use, and what they stand for."""

    tools: Mapping[str, ToolSpec] = field(default_factory=dict)
    profiles: tuple[str, ...] = ("default",)
    models: tuple[str, ...] = ()

    def problem_with_call(self, tool: str, args: Mapping[str, object]) -> str | None:
        """Return what is wrong with the arguments of a call of a tool there is."""
        return find_schema_error(args, self.tools[tool].parameters, "args")

    def written_paths(self, tool: str, args: Mapping[str, object]) -> tuple[str, ...]:
        """Return what a call surely writes: the file that a writing tool is given."""
        path = args.get("path")
        return (path,) if self.tools[tool].effect == "write" and isinstance(path, str) else ()
