"""One task from command line to exit code: settings, signals, the run, the answer."""

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.app import App
from agent.assembly import RunOptions
from agent.config.load import LoadedSettings, load_settings
from agent.config.settings import Settings
from agent.config.user_dirs import data_dir, os_environ
from agent.protocol.commands import Submit
from agent.run_scope import SessionLocation
from agent.sessions.lock import LockTimeout
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, SessionBusy, UsageError
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan
from cli.run.flags import RunFlags, parse_run_flags
from cli.run.listener import Listener
from cli.run.progress import print_stderr
from cli.run.result_output import check_writable, write_failure, write_result
from cli.run.task_input import StoppedEarly, read_task

if TYPE_CHECKING:
    from cli.run.plan_editor import PlanReview
    from cli.run.resume_target import ResumeTarget


def build_request(flags: RunFlags, settings: Settings, environ: Mapping[str, str]) -> Submit:
    """Return the task; a plan file is read, checked and perhaps edited before anything else happens."""
    plan, asked = None, flags.prompt
    if flags.plan:
        from cli.run.plan_editor import load_plan

        given = load_plan(flags, settings, environ)
        plan, asked = given.plan, given.request if asked is None else asked
    prompt, stdin = read_task(
        asked, print_stderr, settings.timeout_s, reads_context=plan is None or _uses_context(flags, plan)
    )
    return Submit(
        prompt=prompt,
        stdin=stdin,
        files=flags.files,
        inputs=flags.inputs,
        plan_only=flags.plan_only,
        plan=plan,
    )


def _uses_context(flags: RunFlags, plan: Plan) -> bool:
    """Say whether piped text has a reader; a plan without a model must not wait for the end of a pipe."""
    return plan.needs_model and not flags.plan_only


_SIGNALS = {
    signal.SIGINT: (exit_codes.INTERRUPTED, "interrupted"),
    signal.SIGTERM: (exit_codes.TERMINATED, "terminated"),
    signal.SIGHUP: (exit_codes.TERMINATED, "the terminal was closed"),
}


def run_task(given: Mapping[str, object], known: Submit | None = None) -> int:
    """Do the task of a command line, or one that is known already, and return the exit code.

    Programs get their document on every ending.
    """
    try:
        flags = parse_run_flags(given)
        environ = os_environ()
        going = _resume_target(flags, environ)
        loaded = _load_settings(flags, environ, going)
        check_writable(flags.last_message)
        check_writable(flags.save)
        if flags.edit and not is_interactive():
            raise UsageError("--edit needs a terminal")
        with _signals_as_errors():
            submit = known or _resolve_request(flags, going, loaded, environ)
            review = _plan_review(flags, loaded, environ, submit)
            app = _open_app(flags, going, loaded, environ, review)
        outcome, listener = asyncio.run(_run(app, flags, environ, submit, review))
    except AgentError as error:
        return report_error(error, given.get("output_format", "text"))
    return write_result(flags, outcome, listener, submit.prompt)


def _resume_target(flags: RunFlags, environ: Mapping[str, str]) -> "ResumeTarget | None":
    if not flags.is_resume:
        return None
    from cli.run.resume_target import find_resume_target

    return find_resume_target(flags, SessionStore(data_dir(environ)))


def report_error(error: AgentError, output_format: object) -> int:
    """Give a program the document of a run that could not begin; a person is told by who called."""
    if output_format == "text":
        raise error
    return write_failure(error, is_stream=output_format == "stream-json")


def _resolve_request(
    flags: RunFlags, going: "ResumeTarget | None", loaded: LoadedSettings, environ: Mapping[str, str]
) -> Submit:
    return Submit(prompt="") if going and going.run_id else build_request(flags, loaded.settings, environ)


@contextmanager
def _signals_as_errors() -> Iterator[None]:
    """Let a signal that comes before the run end it as one that comes later would."""

    def stop(number: int, frame: object) -> None:
        raise StoppedEarly(*_SIGNALS[signal.Signals(number)])

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _load_settings(flags: RunFlags, environ: Mapping[str, str], going: "ResumeTarget | None") -> LoadedSettings:
    return load_settings(
        environ=environ,
        flags={**(going.settings if going else {}), **flags.settings},
        assignments=flags.assignments,
        profile=flags.profile,
        strict=flags.strict,
        bare=flags.bare,
    )


def _plan_review(
    flags: RunFlags, loaded: LoadedSettings, environ: Mapping[str, str], submit: Submit
) -> "PlanReview | None":
    """Return what lets the person edit a plan that is still to be made."""
    if not flags.edit or submit.plan:
        return None
    from cli.run.plan_editor import PlanReview

    return PlanReview(settings=loaded.settings, environ=environ, request=submit.prompt)


def _open_app(
    flags: RunFlags,
    going: "ResumeTarget | None",
    loaded: LoadedSettings,
    environ: Mapping[str, str],
    review: "PlanReview | None",
) -> App:
    """Open the run's session, waiting for one that is busy, but not past the time limit."""
    wait_s = None if is_interactive() else loaded.settings.session_wait_s
    limit_s = loaded.settings.timeout_s
    is_limit_first = limit_s is not None and (wait_s is None or limit_s < wait_s)
    patience = LockTimeout(limit_s=limit_s if is_limit_first else wait_s, on_wait=print_stderr)
    try:
        options = replace(_run_options(flags, going, environ, patience), review=review)
        return App(loaded=loaded, environ=environ, options=options)
    except SessionBusy as busy:
        if is_limit_first:
            raise StoppedEarly(exit_codes.TIMED_OUT, f"the time limit is over, and {busy.message}") from busy
        raise


async def _run(
    app: App, flags: RunFlags, environ: Mapping[str, str], submit: Submit, review: "PlanReview | None"
) -> tuple[Outcome, Listener]:
    def stop(number: signal.Signals) -> None:
        # Ctrl-C in an editor that shares the terminal with us is meant for the editor.
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
    flags: RunFlags, going: "ResumeTarget | None", environ: Mapping[str, str], patience: LockTimeout
) -> RunOptions:
    place = SessionLocation(
        data_dir=data_dir(environ),
        session_id=going.session_id if going else flags.session,
        is_ephemeral=flags.ephemeral,
        cwd=flags.cwd or (going.cwd if going else None),
        extra_dirs=flags.add_dirs,
    )
    return RunOptions(
        location=place,
        is_user_present=is_interactive(),
        record=flags.record,
        replay=flags.replay,
        output_schema=flags.schema,
        lock_timeout=patience,
        resumes=going.run_id if going else None,
    )


def is_interactive() -> bool:
    """Say whether a person can be asked: both sides of the conversation are a terminal."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
