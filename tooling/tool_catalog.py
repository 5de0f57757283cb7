"""The catalog of tools and plugins, for listing and completion; it cannot run them."""

from collections.abc import Iterable

from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.question import Question
from tooling.contract.tool import AnyTool, ToolCommand, ToolServices, ToolSpec
from tooling.jobs import BackgroundJobs
from tooling.registry import load_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCommand:
    """A slash command and the tool that it calls."""

    tool: str
    command: ToolCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCatalog:
    """The specs and slash commands of all tools, with a warning for each plugin that failed to load."""

    specs: tuple[ToolSpec, ...]
    warnings: tuple[str, ...]
    commands: tuple[CatalogCommand, ...] = ()


class _UnusedPorts:
    """Placeholder ports for tools that are never run."""

    async def run(self, request: CommandRequest) -> CommandOutput:
        raise AssertionError("the catalog cannot run tools")

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        raise AssertionError("the catalog cannot run tools")


def load_catalog(plugin_tools: Iterable[type[AnyTool]] = (), problems: Iterable[str] = ()) -> ToolCatalog:
    """Load the specs of all tools and those of plugins, including tools that a run would not offer."""
    ports = _UnusedPorts()
    services = ToolServices(runner=ports, asker=ports, jobs=BackgroundJobs(ports))
    registry, warnings = load_tools(services, plugin_tools, only_offered=False)
    return ToolCatalog(
        specs=tuple(registry),
        warnings=(*problems, *warnings),
        commands=tuple(CatalogCommand(tool=name, command=command) for name, command in registry.commands),
    )
