"""The tools as a list to look at, without anything to run them with."""

from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.question import Question
from tooling.contract.tool import ToolCommand, ToolServices, ToolSpec
from tooling.jobs import BackgroundJobs
from tooling.registry import load_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCommand:
    """A slash command and the tool that it calls."""

    tool: str
    command: ToolCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCatalog:
    """What there is, and which plugins could not be loaded."""

    specs: tuple[ToolSpec, ...]
    warnings: tuple[str, ...]
    commands: tuple[CatalogCommand, ...] = ()


class _UnusedPorts:
    """Stands in for the ports of tools that are only looked at."""

    async def run(self, request: CommandRequest) -> CommandOutput:
        raise AssertionError("a catalogue runs nothing")

    async def ask(self, question: Question, ctx: ExecCtx) -> str | None:
        raise AssertionError("a catalogue asks nobody")


def load_catalog() -> ToolCatalog:
    """Return the specs of all tools and plugins."""
    nobody = _UnusedPorts()
    registry, warnings = load_tools(
        ToolServices(runner=nobody, asker=nobody, jobs=BackgroundJobs(nobody)), only_useful=False
    )
    return ToolCatalog(
        specs=tuple(tool.spec for tool in registry),
        warnings=warnings,
        commands=tuple(
            CatalogCommand(tool=tool.spec.name, command=command) for tool in registry for command in tool.commands
        ),
    )
