"""The plugins of one run, or of the prompt: initialized with their services, closed at the end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.execution.approvals import PendingQuestions
from agent.model.port import ModelClient
from agent.plugins.guard import await_in_time
from agent.plugins.load import LOAD_TIMEOUT_S, LoadedPlugin, PluginProblem, PluginSet
from agent.plugins.plugin import PluginQuestions, PluginServices, PluginSession
from agent.protocol.events import WarningRaised
from agent.run_scope import RunScope
from agent.sessions.resume.conversation import read_conversation
from agent.sessions.views.task_list import read_tasks
from agent.vocabulary.message import Message
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.question import Question
from tooling.contract.result import TaskItem
from tooling.contract.tool import AnyTool
from tooling.files.workspace_files import WorkspaceFiles
from tooling.web.settings import SearchFunction

RECENT_MESSAGES = 20
_CLOSE_TIMEOUT_S = 5.0
_FOLDER = "plugins"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginHost:
    """The session and the user, as needed by the services of plugins."""

    cwd: Path
    data_dir: Path
    config: Mapping[str, Mapping[str, object]]
    questions: PluginQuestions
    warn: Callable[[str], None]
    ctx: ExecCtx
    session_id: str = ""
    run_id: str = ""
    log: Path | None = None

    def services_for(self, name: str) -> PluginServices:
        """Return the services for one plugin."""
        return PluginServices(
            config={key: value for key, value in self.config.get(name, {}).items() if key != "enabled"},
            session=PluginSession(id=self.session_id, run_id=self.run_id, cwd=self.cwd),
            folder=lambda: self._create_folder(name),
            files=WorkspaceFiles(self.ctx),
            questions=self.questions,
            recent_messages=self._recent_messages,
            tasks=self._tasks,
            warn=lambda text: self.warn(f"plugin {name}: {text}"),
        )

    def _create_folder(self, name: str) -> Path:
        folder = self.data_dir / _FOLDER / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _recent_messages(self) -> Sequence[Message]:
        if self.log is None or not self.log.exists():
            return ()
        return tuple(read_conversation(self.log, lambda tool: None))[-RECENT_MESSAGES:]

    def _tasks(self) -> Sequence[TaskItem]:
        return read_tasks(self.log) if self.log else ()


class RunQuestions:
    """The questions of a run, as plugins see them."""

    def __init__(self, questions: PendingQuestions, ctx: ExecCtx) -> None:
        self._questions = questions
        self._ctx = ctx

    @property
    def pending(self) -> tuple[str, ...]:
        """The texts of the open questions and approvals, oldest first."""
        return self._questions.pending_texts

    async def ask(self, question: str, options: Sequence[str] = ()) -> str | None:
        """Ask the user; None if no user is present."""
        return await self._questions.ask(Question(text=question, options=tuple(options)), self._ctx)


def host_of_run(
    scope: RunScope,
    questions: PendingQuestions,
    config: Mapping[str, Mapping[str, object]],
) -> PluginHost:
    """Return the host of a run's plugins."""
    ctx = scope.ctx_of("plugin")
    return PluginHost(
        cwd=scope.cwd,
        data_dir=scope.data_dir,
        config=config,
        questions=RunQuestions(questions, ctx),
        warn=lambda text: scope.channel.emit(WarningRaised(message=text)),
        ctx=ctx,
        session_id=scope.folder.id,
        run_id=scope.run_id,
        log=scope.folder.events,
    )


class OpenPlugins:
    """Plugins that have been initialized."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.plugins: tuple[LoadedPlugin, ...] = ()
        self._report = warn
        self._early: list[str] | None = []

    def warn(self, text: str) -> None:
        """Report a warning; before the first event of the run it is buffered."""
        if self._early is None:
            self._report(text)
        else:
            self._early.append(text)

    def take_warnings(self) -> tuple[str, ...]:
        """Return the warnings so far; later ones are reported at once."""
        early, self._early = self._early or [], None
        return tuple(early)

    @property
    def tools(self) -> tuple[type[AnyTool], ...]:
        """The tools of all plugins."""
        return tuple(tool for plugin in self.plugins for tool in plugin.tools)

    @property
    def models(self) -> Mapping[str, Callable[[], ModelClient]]:
        """Factories of model clients, by the prefix of model names."""
        return {prefix: factory for loaded in self.plugins for prefix, factory in loaded.plugin.models.items()}

    @property
    def search(self) -> Mapping[str, SearchFunction]:
        """The search providers by name."""
        return {name: search for loaded in self.plugins for name, search in loaded.plugin.search.items()}

    async def close(self) -> None:
        """Close all plugins in reverse order."""
        for loaded in reversed(self.plugins):
            warn = _warner(loaded, self.warn)
            try:
                await await_in_time(loaded.plugin.close(), _CLOSE_TIMEOUT_S, warn)
            except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge of a plugin: the run has its result already)
                warn(f"it could not be closed: {type(error).__name__}: {error}")


async def initialize_plugins(loaded: PluginSet, host: PluginHost) -> OpenPlugins:
    """Initialize plugins; one that fails is skipped with a warning."""
    opened = OpenPlugins(host.warn)
    host = replace(host, warn=opened.warn)
    for problem in loaded.warnings:
        opened.warn(problem)
    for one in loaded.plugins:
        try:
            services = host.services_for(one.name)
            await await_in_time(one.plugin.initialize(services), LOAD_TIMEOUT_S, _warner(one, host.warn))
            opened.plugins = (*opened.plugins, one)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge of a plugin: the others must still work)
            reason = f"{type(error).__name__}: {error}"
            host.warn(str(PluginProblem(name=one.name, where=one.where, reason=reason)))
    return opened


def _warner(loaded: LoadedPlugin, warn: Callable[[str], None]) -> Callable[[str], None]:
    return lambda text: warn(str(PluginProblem(name=loaded.name, where=loaded.where, reason=text, is_skipped=False)))
