"""Finds and loads plugins: from installed packages and from the user's folder, never from a workspace.

A plugin that cannot be loaded is skipped and reported; the others load.
"""

import importlib.util
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from agent.hooks.hook import Hook
from agent.plugins.guard import PluginTimeout, call_in_time, collect_prints, guard_stdout
from agent.plugins.plugin import Plugin, PluginCommand
from agent.plugins.sandboxed import MANIFEST, read_manifest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.result import ToolResult
from tooling.contract.tool import AnyTool, Tool, ToolSpec
from tooling.entry_points import GROUP, PLUGINS, EntryPoint, entry_points, plugin_folders
from tooling.registry import NAME_TAKEN, TOOLS, is_valid_name

LOAD_TIMEOUT_S = 5.0
NO_PLUGIN = "it has no Plugin class and no tools"
TWO_CLASSES = "it has more than one Plugin class"
NOT_A_PLUGIN = "it is neither a Plugin nor a Tool class"
FOREIGN = "other users can change {path}"
_MODULE_FILES = ("plugin.py", "__init__.py")
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def is_plugin_name(name: str) -> bool:
    """Return whether a folder of this name can be a plugin."""
    return bool(_NAME.fullmatch(name))


class PluginError(Exception):
    """A plugin cannot be used; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSource:
    """Origin of a plugin: a folder of the user, or an entry point of a package."""

    name: str
    folder: Path | None = None
    point: EntryPoint | None = None

    @property
    def where(self) -> str:
        """A description of the location."""
        return str(self.folder) if self.folder else f"package {self.point.distribution if self.point else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPlugin:
    """A plugin that is ready to be initialized. `folder` contains its commands and skills, if any."""

    name: str
    where: str
    plugin: Plugin
    tools: tuple[type[AnyTool], ...]
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginProblem:
    """The reason why a plugin was skipped, or an error of it."""

    name: str
    where: str
    reason: str
    is_skipped: bool = True

    def __str__(self) -> str:
        return f"{'skipped ' if self.is_skipped else ''}plugin {self.name} ({self.where}): {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSet:
    """The loaded plugins, and the problems of the others."""

    plugins: tuple[LoadedPlugin, ...] = ()
    problems: tuple[PluginProblem, ...] = ()

    @property
    def tools(self) -> tuple[type[AnyTool], ...]:
        """The tools of all plugins."""
        return tuple(tool for plugin in self.plugins for tool in plugin.tools)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The hooks of all plugins."""
        return tuple(hook for loaded in self.plugins for hook in loaded.plugin.hooks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The problems as texts."""
        return tuple(map(str, self.problems))


def find_sources(folder: Path, paths: Sequence[str] | None = None) -> Iterator[PluginSource]:
    """Yield the plugins of the user's folder, then those of installed packages."""
    for path in plugin_folders(folder):
        yield PluginSource(name=path.name, folder=path)
    for group in (PLUGINS, GROUP):
        for point in entry_points(sys.path if paths is None else paths, group):
            yield PluginSource(name=point.name, point=point)


def load_plugins(
    folder: Path, config: Mapping[str, Mapping[str, object]], *, paths: Sequence[str] | None = None
) -> PluginSet:
    """Load all plugins that are not disabled in their table of `config`."""
    plugins: list[LoadedPlugin] = []
    problems: list[PluginProblem] = []
    taken = {tool.spec.name: "Windlass" for tool in TOOLS}
    for source in find_sources(folder, paths):
        if config.get(source.name, {}).get("enabled", True) is False:
            continue
        said: list[str] = []
        try:
            loaded = _load(source, said)
            _claim_names(loaded, taken)
            plugins.append(loaded)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin may raise anything; the others must still load)
            reason = (
                str(error) if isinstance(error, (PluginError, PluginTimeout)) else f"{type(error).__name__}: {error}"
            )
            problems.append(PluginProblem(name=source.name, where=source.where, reason=reason))
        problems += [
            PluginProblem(name=source.name, where=source.where, reason=text, is_skipped=False) for text in said
        ]
    return PluginSet(plugins=tuple(plugins), problems=tuple(problems))


def _load(source: PluginSource, said: list[str]) -> LoadedPlugin:
    found = _import(source)
    said += found.said
    if found.error is not None:
        raise found.error
    plugin_class, tools = _parts(found.loaded, source)
    plugin = plugin_class() if plugin_class else Plugin()
    tools = (*tools, *plugin.tools)
    for tool in tools:
        if not (isinstance(tool, type) and issubclass(tool, Tool)):
            raise PluginError(f"{tool!r} in its tools is not a tool; decorate the function with @tool")
        if not isinstance(getattr(tool, "spec", None), ToolSpec):
            raise PluginError(f"the tool {tool.__name__} has no spec")
    for command in plugin.commands:
        if not isinstance(command, PluginCommand) or not is_valid_name(command.name) or not command.help:
            raise PluginError(f"the command {command!r} has no valid name or no help")
    return LoadedPlugin(
        name=source.name,
        where=source.where,
        plugin=plugin,
        tools=tuple(_adapt(tool, plugin.tool_prefix) for tool in dict.fromkeys(tools)),
        folder=source.folder or _folder_of(plugin_class),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Imported:
    """The result of importing a plugin: a module or object, or an error."""

    loaded: object = None
    error: BaseException | None = None
    said: tuple[str, ...] = ()


@cache
def _import(source: PluginSource) -> _Imported:
    """Import a plugin once per process, so that a hanging import costs its timeout only once."""
    guard_stdout()
    said: list[str] = []
    try:
        loaded = call_in_time(lambda: _import_now(source), LOAD_TIMEOUT_S, said.append)
        return _Imported(loaded=loaded, said=tuple(said))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (reported by the caller)
        return _Imported(error=error, said=tuple(said))


def _import_now(source: PluginSource) -> object:
    if source.folder is None:
        assert source.point is not None
        return source.point.load()
    if not is_plugin_name(source.name):
        raise PluginError("its folder's name may have only letters, digits, '-' and '_'")
    return _import_folder(source.folder)


def _import_folder(folder: Path) -> ModuleType:
    file = next((folder / name for name in _MODULE_FILES if (folder / name).is_file()), None)
    if file is None and (folder / MANIFEST).is_file():
        return _declared_module(folder)
    if file is None:
        raise PluginError(f"{folder} has no plugin.py")
    for path in (folder, file):
        _check_owner(path)
    name = f"windlass_plugin_{folder.name.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise PluginError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _declared_module(folder: Path) -> ModuleType:
    """Return a module with the tools of a plugin that runs in the sandbox; none of its code is imported."""
    for path in (folder, folder / MANIFEST):
        _check_owner(path)
    module = ModuleType(f"windlass_plugin_{folder.name}")
    for tool in read_manifest(folder):
        tool.__module__ = module.__name__
        setattr(module, tool.spec.name, tool)
    return module


def _check_owner(path: Path) -> None:
    """Refuse code that another user could have written."""
    info = path.stat()
    if info.st_mode & stat.S_IWOTH or info.st_uid not in (0, os.getuid()):
        raise PluginError(FOREIGN.format(path=path))


def _parts(loaded: object, source: PluginSource) -> tuple[type[Plugin] | None, tuple[type[AnyTool], ...]]:
    """Return the Plugin class and the tools of a module, or of the object that an entry point names."""
    if isinstance(loaded, type) and issubclass(loaded, Plugin):
        return loaded, ()
    if isinstance(loaded, type) and issubclass(loaded, Tool):
        return None, (loaded,)
    if not isinstance(loaded, ModuleType):
        raise PluginError(NOT_A_PLUGIN)
    own = [value for value in vars(loaded).values() if getattr(value, "__module__", "") == loaded.__name__]
    classes = [value for value in own if isinstance(value, type) and issubclass(value, Plugin)]
    tools = [value for value in own if isinstance(value, type) and issubclass(value, Tool)]
    if len(classes) > 1:
        raise PluginError(TWO_CLASSES)
    if classes:
        return classes[0], ()
    has_files = source.folder is not None and any((source.folder / name).is_dir() for name in ("commands", "skills"))
    if not tools and not has_files:
        raise PluginError(NO_PLUGIN)
    return None, tuple(tools)


def _adapt(tool: type[AnyTool], prefix: str) -> type[AnyTool]:
    """Return the tool with a prefixed name; its printed output becomes part of its result."""

    async def run(self: AnyTool, params: object, ctx: ExecCtx) -> ToolResult:
        with collect_prints() as text:
            result = await tool.run(self, params, ctx)
        said = text.getvalue().strip()
        return replace(result, content=f"{result.content}\n{said}") if said else result

    spec = replace(tool.spec, name=prefix + tool.spec.name)
    return type(tool.__name__, (tool,), {"spec": spec, "run": run, "__module__": tool.__module__})


def _claim_names(loaded: LoadedPlugin, taken: dict[str, str]) -> None:
    """Refuse a plugin if the name of one of its tools is taken."""
    names = [tool.spec.name for tool in loaded.tools]
    for number, name in enumerate(names):
        if name in taken or name in names[:number]:
            raise PluginError(f"{name}: {NAME_TAKEN} (from {taken.get(name, loaded.name)})")
    taken.update(dict.fromkeys(names, loaded.name))


def _folder_of(plugin_class: type[Plugin] | None) -> Path | None:
    """Return the folder of a package's plugin."""
    file = getattr(sys.modules.get(plugin_class.__module__), "__file__", None) if plugin_class else None
    return Path(file).parent if file else None
