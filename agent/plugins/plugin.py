"""The interface for plugin authors: `Plugin` and the types of its extension points."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias

from agent.hooks.hook import Hook
from agent.model.port import ModelClient
from agent.vocabulary.message import Message
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.files import Files
from tooling.contract.result import TaskItem
from tooling.contract.tool import AnyTool
from tooling.web.settings import SearchFunction

DIALOG_TIMEOUT_S = 300.0
CANCEL_WORDS = ("cancel", "/cancel", "abort", "quit", "exit", "stop")

# A completion and its description.
Completion: TypeAlias = tuple[str, str]


class DialogCancelled(Exception):
    """The user cancelled a dialog or did not answer in time; the prompt reports it, so plugins need not catch it."""


class PluginPrompt(Protocol):
    """The interactive prompt, as the commands, menus and input handlers of a plugin see it."""

    def print_line(self, text: str) -> None:
        """Print lines above the prompt."""
        ...

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask the user for a line or one of the options. Raises DialogCancelled after a cancel word or 300 seconds."""
        ...

    def submit(self, request: str) -> None:
        """Send a request to the model, as if the user had typed it."""
        ...


CommandHandler: TypeAlias = Callable[[PluginPrompt, str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCommand:
    """A slash command. It is offered only in profiles that have all its `tools`."""

    name: str
    help: str
    run: CommandHandler
    usage: str = ""
    complete: Callable[[Sequence[str]], Iterable[Completion]] | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuAction:
    """An entry of the plugin's menu, which `/plugins` opens."""

    label: str
    run: CommandHandler
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSession:
    """The session that a plugin works in; the prompt has none before its first request."""

    id: str = ""
    run_id: str = ""
    cwd: Path


class PluginQuestions(Protocol):
    """The questions to the user that are open in a run."""

    @property
    def pending(self) -> tuple[str, ...]:
        """The texts of the open questions and approvals, oldest first."""
        ...

    async def ask(self, question: str, options: Sequence[str] = ()) -> str | None:
        """Ask the user; None if no user is present."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginServices:
    """Services passed to a plugin when it is initialized.

    `config` is its table `[plugins.NAME]`. `folder` is its private data folder, created on first use. `files`
    reads and writes files within the workspace. `recent_messages` returns the last 20 messages of the session,
    `tasks` the agent's to-do list. `warn` shows a warning.
    """

    config: Mapping[str, object]
    session: PluginSession
    folder: Callable[[], Path]
    files: Files
    questions: PluginQuestions
    recent_messages: Callable[[], Sequence[Message]]
    tasks: Callable[[], Sequence[TaskItem]]
    warn: Callable[[str], None]


class Plugin:
    """Base class of plugins; override the parts you need. Every run has its own instance, and so has the prompt.

    `tools` are Tool classes and functions with `@tool`; `tool_prefix` is put before their names. `models` open the
    client for models named PREFIX/NAME, `search` are further search providers, asked before the others.
    """

    name: ClassVar[str] = ""
    tool_prefix: ClassVar[str] = ""
    tools: Sequence[type[AnyTool]] = ()
    commands: Sequence[PluginCommand] = ()
    menu_label: str = ""
    menu: Sequence[MenuAction] = ()
    hooks: Sequence[Hook] = ()
    models: Mapping[str, Callable[[], ModelClient]] = {}
    search: Mapping[str, SearchFunction] = {}

    async def initialize(self, services: PluginServices) -> None:
        """Prepare for work; a plugin that raises or takes more than five seconds is skipped."""

    async def close(self) -> None:
        """Release all resources; called once, at the end of the run or of the prompt."""

    async def on_input(self, prompt: PluginPrompt, text: str) -> str | None:
        """Return the request to send instead of the typed text, or None to send nothing."""
        return text

    def complete(self, text: str) -> Iterable[Completion]:
        """Return completions for the word before the cursor in a request."""
        return ()
