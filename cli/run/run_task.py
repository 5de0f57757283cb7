"""Runs one task, from parsed flags to the exit code: settings, signals, the run, the answer."""

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent.app import App
from agent.config.load import LoadedSettings, load_settings
from agent.config.settings import Settings
from agent.config.user_dirs import config_dir, data_dir, data_path, os_environ, own_folders, user_homes
from agent.plugins.find import find_plugins
from agent.protocol.commands import Submit
from agent.run_context import RunOptions
from agent.run_scope import SessionLocation
from agent.sessions.lock import LockTimeout
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, SessionBusy, UsageError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan
from agent.vocabulary.task_config import TaskConfig
from cli.run.flag_checks import check_network
from cli.run.flags import RunFlags, parse_run_flags
from cli.run.listener import Listener
from cli.run.progress import print_stderr
from cli.run.result_output import check_writable, write_failure, write_result
from cli.run.task_input import StoppedEarly, read_task
from cli.run.work_folder import WorkFolder, choose_folder
from cli.safe_write import check_named_files

if TYPE_CHECKING:
    from cli.run.plan_editor import PlanReview
    from cli.run.resume_target import ResumeTarget
    from tooling.approvals.manifest import GivenManifest

T = TypeVar("T")


def build_request(flags: RunFlags, settings: Settings, environ: Mapping[str, str]) -> Submit:
    """Build the request; a plan file is read, validated and optionally edited first."""
    plan, task = None, flags.prompt
    if flags.user_command:
        task = _expand_command(flags.user_command, task or "", settings, environ)
    if flags.plan:
        from cli.run.plan_editor import load_plan

        given = load_plan(flags, settings, environ)
        plan, task = given.plan, given.request if task is None else task
    prompt, stdin = read_task(
        task, print_stderr, settings.timeout_s, reads_context=plan is None or _uses_context(flags, plan)
    )
    return Submit(
        prompt=prompt,
        stdin=stdin,
        files=flags.files,
        plan_only=flags.plan_only,
        plan=plan,
    )


def _expand_command(name: str, argument: str, settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the request of a user's or a plugin's command."""
    from agent.config.user_commands import find_user_command

    found = find_plugins(environ, settings)
    plugins = [plugin.folder for plugin in found.plugins if plugin.folder] if found else []
    return find_user_command(name, (config_dir(environ), *plugins)).expand(argument)


def _uses_context(flags: RunFlags, plan: Plan) -> bool:
    """Whether anything reads piped text; a plan without a model must not wait for the pipe to close."""
    return plan.needs_model and not flags.plan_only


EDIT_NEEDS_TERMINAL = "--edit needs a terminal"
TIME_LIMIT = "the time limit was reached"
_SIGNALS = {
    signal.SIGINT: (exit_codes.INTERRUPTED, "interrupted"),
    signal.SIGTERM: (exit_codes.TERMINATED, "terminated"),
    signal.SIGHUP: (exit_codes.TERMINATED, "the terminal was closed"),
}


def run_task(given: Mapping[str, object], request: Submit | None = None) -> int:
    """Run the task of a command line, or `request` if there is one, and return the exit code.

    With a JSON output format, a document is written however the run ends.
    """
    try:
        flags = parse_run_flags(given)
        environ = os_environ()
        target = _resume_target(flags, environ)
        loaded = _load_settings(flags, environ, target)
        check_network(flags.settings, loaded.settings.backend)
        check_writable(flags.last_message)
        check_writable(flags.save)
        # These contents become part of the request; a file that is not a plan or a cassette is refused anyway.
        inputs = (path for path, _ in _task_config(flags).inputs)
        named = (flags.record, flags.schema, *flags.files, *inputs)
        check_named_files(named, (*filter(None, (flags.cwd,)), *flags.add_dirs))
        check_writable(Path(flags.manifest_output) if flags.manifest_output else None)
        if flags.input_format == "stream-json":
            return _run_stream_session(flags, target, loaded, environ)
        if flags.edit and not is_interactive():
            raise UsageError(EDIT_NEEDS_TERMINAL)
        with _signals_as_errors():
            submit = request or _resolve_request(flags, target, loaded, environ)
            folder = choose_folder(flags, target, environ)
            review = _plan_review(flags, loaded, environ, submit)
            app = _open_app(flags, target, folder, loaded, environ, review)
        if not (flags.quiet or flags.plan_only or flags.output_format == "stream-json"):
            print_stderr(folder.describe(app.scope.cwd, is_ephemeral=flags.ephemeral))
        outcome, listener = _run_loop(app, _run(app, flags, environ, submit, review))
    except AgentError as error:
        return report_error(error, given.get("output_format", "text"))
    exit_code = write_result(flags, outcome, listener, submit.prompt)
    if folder.worktree:
        from cli.run.worktree_choice import finish_worktree

        can_ask = is_interactive() and not flags.quiet
        finish_worktree(
            folder.worktree,
            environ,
            submit.prompt,
            may_remove=outcome.exit_code == 0,
            is_quiet=flags.quiet,
            can_ask=can_ask,
        )
    return exit_code


def _run_stream_session(
    flags: RunFlags, target: "ResumeTarget | None", loaded: LoadedSettings, environ: Mapping[str, str]
) -> int:
    from cli.run.stream_session import run_stream_session

    lock_timeout = LockTimeout(limit_s=loaded.settings.session_wait_s, on_wait=print_stderr)
    folder = choose_folder(flags, target, environ)
    options = _run_options(flags, target, folder, environ, lock_timeout)
    return run_stream_session(loaded=loaded, environ=environ, options=options, flags=flags, signals=_SIGNALS)


def _resume_target(flags: RunFlags, environ: Mapping[str, str]) -> "ResumeTarget | None":
    if not flags.is_resume:
        return None
    from cli.run.resume_target import find_resume_target

    return find_resume_target(flags, SessionStore(data_dir(environ)), can_ask=is_interactive())


def report_error(error: AgentError, output_format: object) -> int:
    """Write the error document for programs; the caller reports it to a terminal."""
    if output_format == "text":
        raise error
    return write_failure(error, is_stream=output_format == "stream-json")


def _resolve_request(
    flags: RunFlags, target: "ResumeTarget | None", loaded: LoadedSettings, environ: Mapping[str, str]
) -> Submit:
    return Submit(prompt="") if target and target.run_id else build_request(flags, loaded.settings, environ)


@contextmanager
def _signals_as_errors() -> Iterator[None]:
    """Turn signals before the run into the error that a signal during the run produces."""

    def stop(number: int, frame: object) -> None:
        raise StoppedEarly(*_SIGNALS[signal.Signals(number)])

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _load_settings(flags: RunFlags, environ: Mapping[str, str], target: "ResumeTarget | None") -> LoadedSettings:
    return load_settings(
        environ=environ,
        flags={**(target.settings if target else {}), **flags.settings},
        assignments=flags.assignments,
        profile=flags.profile,
        strict=flags.strict,
        bare=flags.bare,
    )


def _plan_review(
    flags: RunFlags, loaded: LoadedSettings, environ: Mapping[str, str], submit: Submit
) -> "PlanReview | None":
    """Return the hook for --edit, unless the plan was given and edited already."""
    if not flags.edit or submit.plan:
        return None
    from cli.run.plan_editor import PlanReview

    return PlanReview(settings=loaded.settings, environ=environ, request=submit.prompt)


def _open_app(
    flags: RunFlags,
    target: "ResumeTarget | None",
    folder: WorkFolder,
    loaded: LoadedSettings,
    environ: Mapping[str, str],
    review: "PlanReview | None",
) -> App:
    """Open the run's session, waiting while it is busy but not past the time limit."""
    wait_s = None if is_interactive() else loaded.settings.session_wait_s
    limit_s = loaded.settings.timeout_s
    is_limit_first = limit_s is not None and (wait_s is None or limit_s < wait_s)
    lock_timeout = LockTimeout(limit_s=limit_s if is_limit_first else wait_s, on_wait=print_stderr)
    try:
        options = replace(_run_options(flags, target, folder, environ, lock_timeout), review=review)
        return App(loaded=loaded, environ=environ, options=options)
    except SessionBusy as busy:
        if is_limit_first:
            raise StoppedEarly(exit_codes.TIMED_OUT, f"{TIME_LIMIT}: {busy.message}") from busy
        raise


def _run_loop(app: App, running: Coroutine[None, None, T]) -> T:
    """Run an event loop; unless the run was cut short, it is left as it is when it ends, because the process exits.

    Closing it starts a thread that wakes and joins all others. They are idle: the run has waited for what they did.
    """
    runner = asyncio.Runner()
    try:
        result = runner.run(running)
    except BaseException:
        runner.close()
        raise
    if app.is_interrupted:
        runner.close()
    return result


async def _run(
    app: App, flags: RunFlags, environ: Mapping[str, str], submit: Submit, review: "PlanReview | None"
) -> tuple[Outcome, Listener]:
    def stop(number: signal.Signals) -> None:
        # While an editor is open on our terminal, Ctrl-C is meant for the editor.
        if number is not signal.SIGINT or not (review and review.is_open):
            app.interrupt(*_SIGNALS[number])

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    listener = Listener(app=app, flags=flags, environ=environ)
    listening = asyncio.ensure_future(listener.listen(app.subscribe()))
    try:
        outcome = await app.run(submit)
    finally:
        await listener.finish(listening)
    return outcome, listener


def _run_options(
    flags: RunFlags,
    target: "ResumeTarget | None",
    folder: WorkFolder,
    environ: Mapping[str, str],
    lock_timeout: LockTimeout,
) -> RunOptions:
    location = SessionLocation(
        # An ephemeral run reads the memory, if there is one, and writes nothing there.
        data_dir=data_path(environ) if flags.ephemeral else data_dir(environ),
        session_id=target.session_id if target else flags.session,
        is_ephemeral=flags.ephemeral,
        cwd=folder.path,
        worktree=folder.worktree,
        extra_dirs=flags.add_dirs,
        own_dirs=own_folders(environ),
        homes=user_homes(environ),
    )
    return RunOptions(
        location=location,
        is_user_present=is_interactive(),
        record=flags.record,
        replay=flags.replay,
        output_schema=flags.schema,
        lock_timeout=lock_timeout,
        resumes=target.run_id if target else None,
        is_strict=flags.strict,
        task=_task_config(flags),
        manifest=_read_manifest(flags.manifest),
    )


def _read_manifest(path: Path | None) -> "GivenManifest | None":
    if path is None:
        return None
    from agent.planning.manifest_file import read_manifest

    return read_manifest(path)


def _task_config(flags: RunFlags) -> TaskConfig:
    return TaskConfig(
        repo_url=flags.repo or "",
        skill_files=flags.skills,
        git_branch=flags.branch,
        is_shallow=flags.shallow,
        input_files=tuple(map(_input_file, flags.inputs)),
        mcp_config=_mcp_config(flags),
    )


def _mcp_config(flags: RunFlags) -> Mapping[str, object]:
    """Return the servers of all files of --mcp as one. Raises ConfigError."""
    if not flags.mcp:
        return {}
    from agent.config.mcp_file import merge_files

    return merge_files(flags.mcp)


def _input_file(given: str) -> dict[str, object]:
    """Return a file, and its name if given as NAME=FILE; an existing file with = in its name is used unchanged."""
    name, equals, path = given.partition("=")
    is_named = equals and path and not Path(given).exists()
    return {"path": path, "name": name} if is_named else {"path": given}


def is_interactive() -> bool:
    """Whether the user can be asked: stdin and stderr are terminals."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
