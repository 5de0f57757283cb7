"""Loads the hooks of a run: passed in code, named in the settings, from packages, commands of the user or a project."""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence

from agent.config.user_dirs import callback_spool, has_spooled_callbacks, hooks_file
from agent.hooks.command_config import EVENTS, CommandSpec, read_commands
from agent.hooks.command_hook import CommandHook, HookPlace
from agent.hooks.hook import Hook
from agent.hooks.runner import HookRunner
from agent.hooks.trust import TrustStore, check_trusted, read_project_hooks
from agent.run_context import RunContext
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import ConfigError, UntrustedFolder
from tooling.contract.fast_dataclass import dataclass
from tooling.entry_points import HOOKS, EntryPoint, entry_points

NOT_TRUSTED = "{folder} has hooks that you have not trusted"
NO_LONGER_TRUSTED = "the hooks of {folder} have changed since you trusted them"
TRUST_HINT = "`agent trust` shows them and asks"
NOT_A_HOOK = "{name} is not a subclass of Hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHook:
    """A hook and its source; without a `hook`, the `problem` that prevented loading."""

    name: str
    source: str
    hook: Hook | None = None
    problem: str = ""


def load_hooks(context: RunContext) -> HookRunner:
    """Return all hooks of a run. Raises AgentError for a configured hook that cannot be used."""
    found = tuple(find_class_hooks(context.settings.hooks))
    runner: HookRunner | None = None

    def warn(message: str) -> None:
        if runner is not None:
            runner.warn(message)

    commands = CommandHooks(context, warn)
    classes = [entry.hook for entry in found if entry.hook]
    of_plugins = context.plugins.hooks if context.plugins else ()
    own = (*context.options.hooks, *classes, *of_plugins, *commands.of_user(), *commands.of_project())
    runner = HookRunner((*_callbacks(context, warn), *own))
    runner.early_warnings += [f"skipped the hook {entry.name}: {entry.problem}" for entry in found if entry.problem]
    runner.early_warnings += commands.warnings
    return runner


def _callbacks(context: RunContext, warn: Callable[[str], None]) -> tuple[Hook, ...]:
    """Return the hooks that report the run to a URL and deliver undelivered reports of earlier runs."""
    url, scope = context.settings.callback_url, context.scope
    if not url and not (scope.is_persistent and has_spooled_callbacks(scope.data_dir)):
        return ()
    # Imported here: they import httpx.
    from agent.hooks.callback_client import CallbackClient
    from agent.hooks.progress_hooks import CallbackHook, SpooledCallbacks

    client = CallbackClient(
        url,
        session_id=scope.folder.id,
        token=context.settings.callback_token,
        trace_id=context.options.trace_id or (scope.traceparent.split("-")[1] if scope.traceparent else scope.run_id),
        # An ephemeral run leaves nothing on disk.
        spool=callback_spool(scope.data_dir) if scope.is_persistent else None,
        redact=scope.redactor.redact,
        warn=warn,
    )
    return (CallbackHook(client) if url else SpooledCallbacks(client),)


class CommandHooks:
    """The hook commands that apply to a run; `warnings` are about those that do not apply."""

    def __init__(self, context: RunContext, warn: Callable[[str], None]) -> None:
        self._context = context
        self._place = hook_place(context, warn)
        self.warnings: list[str] = []

    def of_user(self) -> list[CommandHook]:
        """Return the commands in the user's settings folder."""
        if self._context.loaded.is_bare:
            return []
        found = read_commands(hooks_file(self._context.environ))
        self.warnings += found.unused
        return [CommandHook(spec, self._place) for spec in _in_order(found.specs)]

    def of_project(self) -> list[CommandHook]:
        """Return the commands of the working folder if they are trusted. Raises UntrustedFolder in a strict run."""
        scope = self._context.scope
        if self._context.loaded.is_bare or scope.uses_session_workspace:
            return []
        try:
            project = read_project_hooks(scope.cwd)
        except ConfigError as error:
            self.warnings.append(f"the hooks of {scope.cwd} are left out: {error.message}")
            return []
        store = TrustStore(scope.data_dir)
        status = store.status(project)
        if status in ("untrusted", "changed"):
            problem = NOT_TRUSTED if status == "untrusted" else NO_LONGER_TRUSTED
            message = problem.format(folder=scope.cwd)
            if self._context.options.is_strict:
                raise UntrustedFolder(message, TRUST_HINT)
            self.warnings.append(f"{message}; {TRUST_HINT}")
            return []
        return [
            CommandHook(
                spec,
                self._place,
                check=lambda: check_trusted(store, project),
                is_restricted=True,
            )
            for spec in _in_order(project.specs)
        ]


def hook_place(context: RunContext, warn: Callable[[str], None]) -> HookPlace:
    """Return the run data for hook commands."""
    scope, settings = context.scope, context.settings
    is_new = not scope.session().runs
    # In the REPL the session started with an earlier request.
    later = "" if context.options.shared_backend is not None else "resume"
    return HookPlace(
        session_id=scope.folder.id,
        transcript=scope.folder.events,
        cwd=lambda: scope.cwd,
        approval_mode=settings.approval_mode,
        model=settings.model,
        environ=context.environ,
        extra_variables=settings.hook_env,
        start_source="startup" if is_new else later,
        warn=warn,
        stop_run=lambda reason: context.interrupt(exit_codes.FAILED, reason, ""),
    )


def _in_order(specs: Sequence[CommandSpec]) -> list[CommandSpec]:
    """Return the commands by event, in the order of events; those of one event in file order."""
    return sorted(specs, key=lambda spec: EVENTS.index(spec.event))


def find_class_hooks(names: Sequence[str], paths: Sequence[str] | None = None) -> Iterator[FoundHook]:
    """Yield the hooks named in the settings, then those of installed packages."""
    for name in names:
        yield FoundHook(name=name, source="settings", hook=load_class(name))
    for point in entry_points(sys.path if paths is None else paths, HOOKS):
        yield _load_point(point)


def load_class(name: str) -> Hook:
    """Return a hook by `module:Class`. Raises ConfigError, because a missing guard must not be skipped silently."""
    module, colon, attribute = name.partition(":")
    if not colon:
        module, _, attribute = name.rpartition(".")
    try:
        loaded = getattr(importlib.import_module(module), attribute)
        return _create(loaded, name)
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"the hook {name} cannot be loaded: {type(error).__name__}: {error}",
            "hooks names classes as module:Class; the module must be importable",
        ) from error


def _load_point(point: EntryPoint) -> FoundHook:
    source = f"package {point.distribution}"
    try:
        return FoundHook(name=point.name, source=source, hook=_create(point.load(), point.target))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge: a package may raise anything; the others must still load)
        return FoundHook(name=point.name, source=source, problem=f"{type(error).__name__}: {error}")


def _create(loaded: object, name: str) -> Hook:
    hook = loaded() if isinstance(loaded, type) and issubclass(loaded, Hook) else loaded
    if not isinstance(hook, Hook):
        raise TypeError(NOT_A_HOOK.format(name=name))
    return hook
