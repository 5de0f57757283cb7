"""One task from command line to exit code: settings, signals, the run, the answer."""

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from agent.app import App, RunOptions
from agent.config.load import Loaded, load_settings
from agent.config.places import data_dir, os_environ
from agent.protocol.commands import Submit
from agent.run_scope import Place
from agent.sessions.waiting import Patience
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, SessionBusy
from agent.vocabulary.outcome import Outcome
from cli.delivery import check_writable, deliver, tell_failure
from cli.listener import Listener
from cli.progress import stderr_line
from cli.prompt_source import StoppedEarly, task_and_stdin
from cli.run_flags import RunFlags, understood

_SIGNALS = {
    signal.SIGINT: (exit_codes.INTERRUPTED, "interrupted"),
    signal.SIGTERM: (exit_codes.TERMINATED, "terminated"),
    signal.SIGHUP: (exit_codes.TERMINATED, "the terminal was closed"),
}


def perform(given: Mapping[str, object]) -> int:
    """Do the task of a command line and return the exit code; programs get their document on every ending."""
    try:
        flags = understood(given)
        environ = os_environ()
        loaded = _settings(flags, environ)
        check_writable(flags.last_message)
        with _signals_as_errors():
            prompt, stdin = task_and_stdin(flags.prompt, stderr_line, loaded.settings.timeout_s)
            app = _app(flags, loaded, environ)
        submit = Submit(prompt=prompt, stdin=stdin, files=flags.files, inputs=flags.inputs, plan_only=flags.plan_only)
        outcome, listener = asyncio.run(_run(app, flags, environ, submit))
    except AgentError as error:
        output_format = given.get("output_format", "text")
        if output_format == "text":
            raise
        return tell_failure(error, is_stream=output_format == "stream-json")
    return deliver(flags, outcome, listener)


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


def _settings(flags: RunFlags, environ: Mapping[str, str]) -> Loaded:
    return load_settings(
        environ=environ,
        flags=flags.settings,
        assignments=flags.assignments,
        profile=flags.profile,
        strict=flags.strict,
        bare=flags.bare,
    )


def _app(flags: RunFlags, loaded: Loaded, environ: Mapping[str, str]) -> App:
    """Open the run's session, waiting for one that is busy, but not past the time limit."""
    wait_s = None if is_terminal() else loaded.settings.session_wait_s
    limit_s = loaded.settings.timeout_s
    is_limit_first = limit_s is not None and (wait_s is None or limit_s < wait_s)
    patience = Patience(limit_s=limit_s if is_limit_first else wait_s, tell=stderr_line)
    try:
        return App(loaded=loaded, environ=environ, options=_options(flags, environ, patience))
    except SessionBusy as busy:
        if is_limit_first:
            raise StoppedEarly(exit_codes.TIMED_OUT, f"the time limit is over, and {busy.message}") from busy
        raise


async def _run(app: App, flags: RunFlags, environ: Mapping[str, str], submit: Submit) -> tuple[Outcome, Listener]:
    loop = asyncio.get_running_loop()
    for number, ending in _SIGNALS.items():
        loop.add_signal_handler(number, app.interrupt, *ending)
    listener = Listener(app=app, flags=flags, environ=environ)
    listening = asyncio.ensure_future(listener.listen(app.subscribe()))
    try:
        outcome = await app.run(submit)
    finally:
        await listener.finish(listening)
    return outcome, listener


def _options(flags: RunFlags, environ: Mapping[str, str], patience: Patience) -> RunOptions:
    place = Place(
        data_dir=data_dir(environ),
        session_id=flags.session,
        is_ephemeral=flags.ephemeral,
        cwd=flags.cwd,
        extra_dirs=flags.add_dirs,
    )
    return RunOptions(
        place=place,
        is_person_present=is_terminal(),
        record=flags.record,
        replay=flags.replay,
        output_schema=flags.schema,
        patience=patience,
    )


def is_terminal() -> bool:
    """Say whether a person can be asked: both sides of the conversation are a terminal."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False
