"""Additions of plugins to the prompt, limited by the profile."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from agent.plugins.load import LoadedPlugin
from agent.plugins.plugin import Completion, MenuAction, Plugin, PluginCommand, PluginPrompt
from tooling.contract.fast_dataclass import dataclass

InputHandler: TypeAlias = Callable[[PluginPrompt, str], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginMenu:
    """The menu of one plugin."""

    plugin: str
    label: str
    actions: tuple[MenuAction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedCommand:
    """A slash command and its plugin."""

    plugin: str
    command: PluginCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginUi:
    """All additions of plugins to the prompt: commands, menus, input handlers, completers."""

    commands: tuple[OwnedCommand, ...] = ()
    menus: tuple[PluginMenu, ...] = ()
    input_handlers: tuple[tuple[str, InputHandler], ...] = ()
    completers: tuple[Callable[[str], Iterable[Completion]], ...] = ()

    @property
    def menu_entries(self) -> tuple[str, ...]:
        """The labels of the menus."""
        return tuple(menu.label for menu in self.menus)


def plugin_ui(plugins: Sequence[LoadedPlugin], allowed_tools: tuple[str, ...] | None = None) -> PluginUi:
    """Return the additions available in a profile with these tools; None means all tools."""

    def is_allowed(item: PluginCommand | MenuAction) -> bool:
        return allowed_tools is None or all(tool in allowed_tools for tool in item.tools)

    menus = [
        PluginMenu(
            plugin=loaded.name,
            label=loaded.plugin.menu_label or loaded.name,
            actions=tuple(filter(is_allowed, loaded.plugin.menu)),
        )
        for loaded in plugins
    ]
    return PluginUi(
        commands=tuple(
            OwnedCommand(plugin=loaded.name, command=command)
            for loaded in plugins
            for command in loaded.plugin.commands
            if is_allowed(command)
        ),
        menus=tuple(menu for menu in menus if menu.actions),
        input_handlers=tuple(
            (loaded.name, loaded.plugin.on_input) for loaded in plugins if _overrides(loaded, "on_input")
        ),
        completers=tuple(loaded.plugin.complete for loaded in plugins if _overrides(loaded, "complete")),
    )


def _overrides(loaded: LoadedPlugin, method: str) -> bool:
    return getattr(type(loaded.plugin), method) is not getattr(Plugin, method)
