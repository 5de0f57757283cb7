"""The registry of tools: the built-in ones, plus those of plugins."""

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Literal, cast

from tooling.contract.tool import AnyTool, ToolCommand, ToolServices, ToolSpec

STORED_SPECS = Path(__file__).with_name("tools") / "specs.json"


class BuiltInTool:
    """A built-in tool: its spec is stored, and its code is imported with its first call."""

    def __init__(self, target: str, *, needs: Literal["memory", "scheduler"] | None = None) -> None:
        self.target = target
        self._needs = needs

    @property
    def spec(self) -> ToolSpec:
        """Return the stored spec; a test compares it with that of the class."""
        return _stored_specs()[self.target]

    def is_offered(self, services: ToolServices) -> bool:
        """Return whether a run with these services can use the tool."""
        return self._needs is None or getattr(services, self._needs) is not None

    def load(self) -> type[AnyTool]:
        """Import the class of the tool."""
        module, _, name = self.target.partition(":")
        return cast(type[AnyTool], getattr(importlib.import_module(module), name))


# In the order of the list for the model.
TOOLS: tuple[BuiltInTool, ...] = (
    BuiltInTool("tooling.tools.run_command:RunCommand"),
    BuiltInTool("tooling.tools.run_command:RunPython"),
    BuiltInTool("tooling.tools.read_file:ReadFile"),
    BuiltInTool("tooling.tools.write_file:WriteFile"),
    BuiltInTool("tooling.tools.edit_file:EditFile"),
    BuiltInTool("tooling.tools.apply_patch:ApplyPatch"),
    BuiltInTool("tooling.tools.delete_file:DeleteFile"),
    BuiltInTool("tooling.tools.list_directory:ListDirectory"),
    BuiltInTool("tooling.tools.find_files:FindFiles"),
    BuiltInTool("tooling.tools.search_text:SearchText"),
    BuiltInTool("tooling.tools.search_web:SearchWeb"),
    BuiltInTool("tooling.tools.fetch_page:FetchPage"),
    BuiltInTool("tooling.tools.manage_tasks:ManageTasks"),
    BuiltInTool("tooling.tools.manage_jobs:ManageJobs"),
    BuiltInTool("tooling.tools.memory:MemoryTool", needs="memory"),
    BuiltInTool("tooling.tools.schedule_task:ScheduleTask", needs="scheduler"),
    BuiltInTool("tooling.tools.send_file:SendFile"),
    BuiltInTool("tooling.tools.ask_user:AskUser"),
)


@cache
def _stored_specs() -> Mapping[str, ToolSpec]:
    rows = json.loads(STORED_SPECS.read_bytes())
    return {target: ToolSpec(**{**row, "tags": tuple(row["tags"])}) for target, row in rows.items()}


NAME_TAKEN = "a tool with this name already exists"


class RegistrationError(ValueError):
    """The tool cannot be registered; the message is the reason."""


class ToolRegistry:
    """Tools by name, in the order they were registered."""

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._tools: dict[str, AnyTool] = {}
        self._makers: dict[str, Callable[[], AnyTool]] = {}
        self._unlisted: set[str] = set()
        # Every step asks for all of them.
        self._schemas: tuple[Mapping[str, object], ...] | None = None
        for tool in tools:
            self.register(tool)

    def register(self, tool: AnyTool, *, is_listed: bool = True) -> None:
        """Add a tool; raise RegistrationError if its name, schema or commands are invalid or already taken.

        An unlisted tool can be called, but the model does not get its schema.
        """
        spec = getattr(tool, "spec", None)
        if not isinstance(spec, ToolSpec) or not is_valid_name(spec.name):
            raise RegistrationError(f"{type(tool).__name__} has no spec with a valid name")
        if spec.parameters.get("type") != "object":
            raise RegistrationError(f"{spec.name}: the parameters are not an object schema")
        if spec.name in self._specs:
            raise RegistrationError(f"{spec.name}: {NAME_TAKEN}")
        self._check_commands(tool)
        self._specs[spec.name] = spec
        self._tools[spec.name] = tool
        self._schemas = None
        if not is_listed:
            self._unlisted.add(spec.name)

    def register_late(self, spec: ToolSpec, make: Callable[[], AnyTool]) -> None:
        """Add a tool without slash commands that is created when it is first needed."""
        self._specs[spec.name] = spec
        self._makers[spec.name] = make
        self._schemas = None

    def _check_commands(self, tool: AnyTool) -> None:
        taken = {command.name for _, command in self.commands}
        for command in tool.commands:
            if not isinstance(command, ToolCommand) or not is_valid_name(command.name) or not command.help:
                raise RegistrationError(f"{tool.spec.name}: the command {command!r} has no valid name or no help")
            if command.name in taken:
                raise RegistrationError(f"{tool.spec.name}: a command /{command.name} already exists")
            taken.add(command.name)

    def get(self, name: str) -> AnyTool | None:
        if name in self._makers and name not in self._tools:
            self._tools[name] = self._makers[name]()
            self._schemas = None
        return self._tools.get(name)

    def spec_of(self, name: str) -> ToolSpec | None:
        tool = self._tools.get(name)
        return tool.spec if tool else self._specs.get(name)

    def __iter__(self) -> Iterator[ToolSpec]:
        return (spec for name in self._specs if (spec := self.spec_of(name)))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._specs)

    @property
    def commands(self) -> Iterator[tuple[str, ToolCommand]]:
        """Yield the slash commands with the names of their tools."""
        return ((name, command) for name, tool in self._tools.items() for command in tool.commands)

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the function schemas for the model."""
        if self._schemas is None:
            self._schemas = tuple(spec.to_openai_tool() for spec in self if spec.name not in self._unlisted)
        return list(self._schemas)


def is_valid_name(name: str) -> bool:
    """Return whether every provider accepts this as a function name."""
    return 0 < len(name) <= 64 and name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()


def load_tools(
    services: ToolServices, plugin_tools: Iterable[type[AnyTool]] = (), *, only_offered: bool = True
) -> tuple[ToolRegistry, tuple[str, ...]]:
    """Build the registry and return it with warnings; a tool of a plugin that fails becomes a warning.

    With `only_offered`, built-in tools that these services cannot support are omitted.
    """
    registry = ToolRegistry()
    for tool in TOOLS:
        if not only_offered or tool.is_offered(services):
            registry.register_late(tool.spec, partial(_make, tool, services))
    warnings = [problem for one in plugin_tools if (problem := _add_plugin_tool(registry, one, services))]
    return registry, tuple(warnings)


def _make(tool: BuiltInTool, services: ToolServices) -> AnyTool:
    return tool.load()(services)


def _add_plugin_tool(registry: ToolRegistry, tool: type[AnyTool], services: ToolServices) -> str | None:
    try:
        registry.register(tool(services))
    except Exception as error:  # noqa: BLE001 (a plugin may raise anything; the others must still load)
        return f"skipped the tool {tool.__name__} of a plugin: {type(error).__name__}: {error}"
    return None
