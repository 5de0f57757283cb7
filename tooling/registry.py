"""The registry of tools: the built-in ones, plus those of plugins."""

from collections.abc import Iterable, Iterator, Mapping

from tooling.contract.tool import AnyTool, ToolCommand, ToolServices, ToolSpec
from tooling.tools.apply_patch import ApplyPatch
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
from tooling.tools.run_command import RunCommand, RunPython
from tooling.tools.search_text import SearchText
from tooling.tools.search_web import SearchWeb
from tooling.tools.send_file import SendFile
from tooling.tools.write_file import WriteFile

TOOLS: tuple[type[AnyTool], ...] = (
    RunCommand,
    RunPython,
    ReadFile,
    WriteFile,
    EditFile,
    ApplyPatch,
    DeleteFile,
    ListDirectory,
    FindFiles,
    SearchText,
    SearchWeb,
    FetchPage,
    ManageTasks,
    ManageJobs,
    MemoryTool,
    SendFile,
    AskUser,
)

NAME_TAKEN = "a tool with this name already exists"


class RegistrationError(ValueError):
    """The tool cannot be registered; the message says why."""


class ToolRegistry:
    """Tools by name, in the order they were registered."""

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._unlisted: set[str] = set()
        self._schemas: dict[str, tuple[ToolSpec, Mapping[str, object]]] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: AnyTool, *, is_listed: bool = True) -> None:
        """Add a tool; raise RegistrationError if its name, schema or commands are invalid or already taken.

        A tool that is not listed can be called, but the model does not get its schema.
        """
        spec = getattr(tool, "spec", None)
        if not isinstance(spec, ToolSpec) or not is_valid_name(spec.name):
            raise RegistrationError(f"{type(tool).__name__} has no spec with a valid name")
        if spec.parameters.get("type") != "object":
            raise RegistrationError(f"{spec.name}: the parameters are not an object schema")
        if spec.name in self._tools:
            raise RegistrationError(f"{spec.name}: {NAME_TAKEN}")
        self._check_commands(tool)
        self._tools[spec.name] = tool
        if not is_listed:
            self._unlisted.add(spec.name)

    def _check_commands(self, tool: AnyTool) -> None:
        taken = {command.name for known in self for command in known.commands}
        for command in tool.commands:
            if not isinstance(command, ToolCommand) or not is_valid_name(command.name) or not command.help:
                raise RegistrationError(f"{tool.spec.name}: the command {command!r} has no valid name or no help")
            if command.name in taken:
                raise RegistrationError(f"{tool.spec.name}: a command /{command.name} already exists")
            taken.add(command.name)

    def get(self, name: str) -> AnyTool | None:
        return self._tools.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the function schemas for the model."""
        return [self._schema(tool.spec) for tool in self if tool.spec.name not in self._unlisted]

    def _schema(self, spec: ToolSpec) -> Mapping[str, object]:
        # Every step asks for all of them.
        known = self._schemas.get(spec.name)
        if known is None or known[0] is not spec:
            known = self._schemas[spec.name] = (spec, spec.to_openai_tool())
        return known[1]


def is_valid_name(name: str) -> bool:
    """Return whether every provider accepts this as a function name."""
    return 0 < len(name) <= 64 and name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()


def load_tools(
    services: ToolServices, plugin_tools: Iterable[type[AnyTool]] = (), *, only_offered: bool = True
) -> tuple[ToolRegistry, tuple[str, ...]]:
    """Build the registry and return it with warnings; a tool of a plugin that fails becomes a warning.

    With `only_offered`, built-in tools that these services cannot support are left out.
    """
    registry = ToolRegistry(tool(services) for tool in TOOLS if not only_offered or tool.is_offered(services))
    warnings = [problem for tool in plugin_tools if (problem := _add_plugin_tool(registry, tool, services))]
    return registry, tuple(warnings)


def _add_plugin_tool(registry: ToolRegistry, tool: type[AnyTool], services: ToolServices) -> str | None:
    try:
        registry.register(tool(services))
    except Exception as error:  # noqa: BLE001 (a plugin may raise anything; the others must still load)
        return f"skipped the tool {tool.__name__} of a plugin: {type(error).__name__}: {error}"
    return None
