"""Tool calls outside of a run: with settings, approvals and sandbox, but without a session on disk."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from agent.config.environment import is_shared_place
from agent.config.load import load_settings
from agent.config.user_dirs import current_folder, data_path, os_environ, own_folders, user_homes
from agent.diagnostics.one_call import FULL_OUTPUT_CHARS
from agent.execution.approvals import PendingQuestions
from agent.memory.memory_file import MemoryFile
from agent.memory.run_memory import RunMemory
from agent.protocol.channel import Subscription
from agent.protocol.events import WarningRaised
from agent.run_scope import SessionLocation, open_scope
from agent.tool_setup import ToolEnvironment, open_scheduler
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import SandboxError
from cli.run.flag_checks import check_network
from cli.run.progress import print_stderr
from cli.run.run_task import is_interactive
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from cli.run.terminal_approvals import TerminalApprovals

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Folders and settings of the call; `is_checked=False` skips the judge and approvals."""

    cwd: Path | None = None
    add_dirs: tuple[Path, ...] = ()
    flags: Mapping[str, object]
    assignments: tuple[str, ...] = ()
    is_checked: bool = True


def run_standalone(options: CallOptions, call: Callable[[ToolEnvironment], Awaitable[T]]) -> T:
    """Run `call` and return its result; a signal stops it and every process it started."""
    try:
        return asyncio.run(_run(options, call))
    except asyncio.CancelledError as stopped:
        raise typer.Exit(exit_codes.TERMINATED) from stopped


async def _run(options: CallOptions, call: Callable[[ToolEnvironment], Awaitable[T]]) -> T:
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _stop_once, asyncio.current_task())
    environ = os_environ()
    loaded = load_settings(environ=environ, flags=options.flags, assignments=options.assignments)
    check_network(options.flags, loaded.settings.backend)
    settings = replace(loaded.settings, output_trim_chars=FULL_OUTPUT_CHARS)
    is_shared = is_shared_place(settings.shared, environ)
    scope = open_scope(_session_location(options, environ), loaded.secrets, is_shared=is_shared)
    questions = PendingQuestions(
        channel=scope.channel, is_present=is_interactive(), timeout_s=settings.approval_timeout_s
    )
    listening = asyncio.ensure_future(_listen(scope.channel.subscribe(), questions, environ, scope.cwd))
    sandbox_errors: list[SandboxError] = []
    environment = ToolEnvironment(
        settings=settings,
        environ=environ,
        secrets=loaded.secrets,
        scope=scope,
        questions=questions,
        is_user_present=is_interactive(),
        is_checked=options.is_checked,
        on_refused=lambda reason, hint: None,
        on_sandbox_error=sandbox_errors.append,
        scheduler=open_scheduler(scope, environ, settings.model or ""),
        memory=RunMemory(
            file=MemoryFile(scope.data_dir),
            redactor=scope.redactor,
            channel=scope.channel,
            request="",
            is_persistent=True,
            settings=settings,
        )
        if settings.memory
        else None,
    )
    try:
        result = await call(environment)
        if sandbox_errors:
            raise sandbox_errors[0]
        return result
    finally:
        await scope.close()
        await asyncio.wait([listening])


def _session_location(options: CallOptions, environ: Mapping[str, str]) -> SessionLocation:
    return SessionLocation(
        data_dir=data_path(environ),
        is_ephemeral=True,
        cwd=options.cwd or current_folder(),
        extra_dirs=options.add_dirs,
        own_dirs=own_folders(environ),
        homes=user_homes(environ),
    )


def _stop_once(task: "asyncio.Task[T] | None") -> None:
    # A second cancellation would interrupt the clean-up.
    if task and not task.cancelling():
        task.cancel()


def _terminal_approvals(questions: PendingQuestions, environ: Mapping[str, str], cwd: Path) -> "TerminalApprovals":
    from cli.run.terminal_approvals import TerminalApprovals

    return TerminalApprovals(send=questions.resolve, environ=environ, cwd=cwd)


async def _listen(events: Subscription, questions: PendingQuestions, environ: Mapping[str, str], cwd: Path) -> None:
    answers = _terminal_approvals(questions, environ, cwd) if is_interactive() else None
    async for envelope in events:
        if answers:
            answers.on_event(envelope)
        if isinstance(envelope.event, WarningRaised):
            print_stderr(f"warning: {envelope.event.message}")
