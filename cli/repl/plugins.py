"""Plugins at the prompt: their commands, menus, dialogs, input handlers and completions."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from agent.config.user_dirs import data_path
from agent.plugins.plugin import CANCEL_WORDS, DIALOG_TIMEOUT_S, CommandHandler, DialogCancelled
from agent.plugins.run_plugins import OpenPlugins, PluginHost, initialize_plugins
from agent.plugins.ui import OwnedCommand, PluginUi, plugin_ui
from agent.vocabulary.errors import AgentError
from cli.repl.slash_commands import Candidate, SlashCommand
from cli.screen.sanitize import sanitize
from tooling.contract.context import ExecCtx

if TYPE_CHECKING:
    from agent.plugins.load import PluginSet
    from cli.repl.repl import Repl

T = TypeVar("T")
CANCELLED = "cancelled"
NO_MENUS = "no plugin has a menu; `agent plugins list` shows the plugins"
WHICH_PLUGIN = "Menu of which plugin?"
_HANDLER_TIMEOUT_S = 10.0


class ReplPrompt:
    """The prompt interface for plugins."""

    def __init__(self, repl: "Repl") -> None:
        self._repl = repl

    def print_line(self, text: str) -> None:
        """Print lines above the prompt."""
        self._repl.print_line(sanitize(text))

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the user. Raises DialogCancelled after a cancel word or 300 seconds."""
        try:
            async with asyncio.timeout(DIALOG_TIMEOUT_S):
                answer = await self._repl.ui.ask(question, tuple(options), is_expected=True)
        except TimeoutError as error:
            raise DialogCancelled from error
        if answer.strip().casefold() in ("", *CANCEL_WORDS) and answer not in options:
            raise DialogCancelled
        return answer

    def submit(self, request: str) -> None:
        """Send a request to the model."""
        self._repl.submit(request)


class PromptQuestions:
    """The questions of plugins outside of a run."""

    def __init__(self, repl: "Repl") -> None:
        self._repl = repl
        self.pending: tuple[str, ...] = ()

    async def ask(self, question: str, options: Sequence[str] = ()) -> str | None:
        """Ask the user."""
        return await self._repl.ui.ask(question, tuple(options))


class PromptPlugins:
    """The plugins of one prompt."""

    def __init__(self, repl: "Repl", opened: OpenPlugins, ui: PluginUi) -> None:
        self._repl = repl
        self._opened = opened
        self._ui = ui
        self._prompt = ReplPrompt(repl)

    @property
    def commands(self) -> list[SlashCommand]:
        """The slash commands of all plugins."""
        return [self._slash_command(owned) for owned in self._ui.commands]

    @property
    def handles_input(self) -> bool:
        """Whether a plugin handles typed input."""
        return bool(self._ui.input_handlers)

    async def filter_input(self, text: str) -> str | None:
        """Return the request as changed by the plugins; None to send nothing."""
        for plugin, handler in self._ui.input_handlers:
            changed = await self._guarded(plugin, handler(self._prompt, text), default=text)
            if changed is None:
                return None
            text = changed
        return text

    def complete(self, word: str) -> Iterable[Candidate]:
        """Return the plugins' completions of a word; a completer that fails offers none."""
        found: list[Candidate] = []
        for complete in self._ui.completers:
            try:
                found += complete(word)
            except Exception:  # noqa: BLE001 (the edge of a plugin: the user types on)
                continue
        return found

    async def open_menu(self) -> None:
        """Let the user choose a plugin and one of its actions."""
        menus = {menu.label: menu for menu in self._ui.menus}
        if not menus:
            self._repl.print_line(NO_MENUS, "quiet")
            return
        label: str | None = next(iter(menus))
        if len(menus) > 1:
            label = await self._repl.ui.pick(WHICH_PLUGIN, [(label, menus[label].plugin) for label in menus])
        if label is None:
            return
        actions = {action.label: action for action in menus[label].actions}
        chosen = await self._repl.ui.pick(label, [(name, "") for name in actions])
        if chosen is not None:
            await self._run(menus[label].plugin, actions[chosen].run, "")

    async def close(self) -> None:
        """Close all plugins."""
        await self._opened.close()

    def _slash_command(self, owned: OwnedCommand) -> SlashCommand:
        command = owned.command
        complete: Callable[[Repl, Sequence[str]], Iterable[Candidate]] | None = None
        if (words_of := command.complete) is not None:
            complete = lambda repl, typed: words_of(typed)  # noqa: E731 (it needs the name that was checked)
        return SlashCommand(
            name=command.name.removeprefix("/"),
            help=command.help,
            usage=command.usage,
            run=lambda repl, argument: self._run(owned.plugin, command.run, argument),
            complete=complete,
        )

    async def _run(self, plugin: str, handler: CommandHandler, argument: str) -> None:
        await self._guarded(plugin, handler(self._prompt, argument), default=None, limit_s=None)

    async def _guarded(
        self, plugin: str, work: Awaitable[T], *, default: T, limit_s: float | None = _HANDLER_TIMEOUT_S
    ) -> T:
        """Await a plugin's code; its exceptions become errors at the prompt."""
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except DialogCancelled:
            self._repl.print_line(CANCELLED, "quiet")
        except Exception as error:  # noqa: BLE001 (the edge of a plugin)
            self._repl.print_error(AgentError(f"plugin {plugin}: {type(error).__name__}: {error}"))
        return default


async def open_prompt_plugins(repl: "Repl", loaded: "PluginSet") -> PromptPlugins:
    """Initialize the plugins of the prompt."""
    state = repl.state
    settings = state.read_settings().settings
    ctx = ExecCtx(user_id=uuid.uuid4(), task_id=uuid.uuid4(), working_dir=state.cwd)
    host = PluginHost(
        cwd=state.cwd,
        data_dir=data_path(state.environ),
        config=settings.plugins,
        questions=PromptQuestions(repl),
        warn=repl.warn,
        ctx=ctx,
    )
    opened = await initialize_plugins(loaded, host)
    for warning in opened.take_warnings():
        repl.warn(warning)
    return PromptPlugins(repl, opened, plugin_ui(opened.plugins, settings.tools))
