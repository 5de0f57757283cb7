"""The tools there are: a tuple somebody can read, plus what installed packages offer."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tooling.contract.tool import AnyTool, Tool, ToolCommand, ToolServices, ToolSpec
from tooling.entry_points import EntryPoint, entry_points
from tooling.tools.ask_user import AskUser
from tooling.tools.delete_file import DeleteFile
from tooling.tools.edit_file import EditFile
from tooling.tools.fetch_page import FetchPage
from tooling.tools.find_files import FindFiles
from tooling.tools.list_directory import ListDirectory
from tooling.tools.manage_jobs import ManageJobs
from tooling.tools.manage_tasks import ManageTasks
from tooling.tools.memory import MemoryTool
from tooling.tools.read_file import ReadFile
from tooling.tools.run_command import RunCommand
from tooling.tools.search_text import SearchText
from tooling.tools.search_web import SearchWeb
from tooling.tools.write_file import WriteFile

TOOLS: tuple[type[AnyTool], ...] = (
    RunCommand,
    ReadFile,
    WriteFile,
    EditFile,
    DeleteFile,
    ListDirectory,
    FindFiles,
    SearchText,
    SearchWeb,
    FetchPage,
    ManageTasks,
    ManageJobs,
    MemoryTool,
    AskUser,
)


class RegistrationError(ValueError):
    """A tool that cannot be offered; the message says why."""


class ToolRegistry:
    """Tools by name, in the order they were registered."""

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: AnyTool) -> None:
        """Add a tool, or raise RegistrationError when its name or schema will not do."""
        spec = getattr(tool, "spec", None)
        if not isinstance(spec, ToolSpec) or not _is_valid_name(spec.name):
            raise RegistrationError(f"{type(tool).__name__} has no spec with a usable name")
        if spec.parameters.get("type") != "object":
            raise RegistrationError(f"{spec.name}: its parameters are not an object schema")
        if spec.name in self._tools:
            raise RegistrationError(f"{spec.name}: there is already a tool of this name")
        self._check_commands(tool)
        self._tools[spec.name] = tool

    def _check_commands(self, tool: AnyTool) -> None:
        taken = {command.name for known in self for command in known.commands}
        for command in tool.commands:
            if not isinstance(command, ToolCommand) or not _is_valid_name(command.name) or not command.help:
                raise RegistrationError(f"{tool.spec.name}: its command {command!r} has no usable name or no help")
            if command.name in taken:
                raise RegistrationError(f"{tool.spec.name}: there is already a command /{command.name}")
            taken.add(command.name)

    def get(self, name: str) -> AnyTool | None:
        """Return a tool by its name."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names in order."""
        return tuple(self._tools)

    def schemas(self) -> list[Mapping[str, object]]:
        """Return what a model is shown."""
        return [tool.spec.to_openai_tool() for tool in self]


def _is_valid_name(name: str) -> bool:
    """Say whether every provider accepts this as the name of a function."""
    return 0 < len(name) <= 64 and name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()


def load_tools(
    services: ToolServices, *, paths: Sequence[str] | None = None, only_useful: bool = True
) -> tuple[ToolRegistry, tuple[str, ...]]:
    """Build the first set and the plugins; a plugin that fails becomes a warning and the rest loads.

    With `only_useful` a tool that the services have nothing for is left out.
    """
    registry = ToolRegistry(tool(services) for tool in TOOLS if not only_useful or tool.is_offered(services))
    found = entry_points(sys.path if paths is None else paths)
    warnings = [problem for point in found if (problem := _add_plugin(registry, point, services))]
    return registry, tuple(warnings)


def _add_plugin(registry: ToolRegistry, point: EntryPoint, services: ToolServices) -> str | None:
    try:
        offered = point.load()
        if not (isinstance(offered, type) and issubclass(offered, Tool)):
            raise RegistrationError("it is not a Tool class")
        registry.register(offered(services))
    except Exception as error:  # noqa: BLE001 (a plugin may raise anything; the others must load)
        return f"tool plugin {point.name} of {point.distribution} was skipped: {type(error).__name__}: {error}"
    return None
