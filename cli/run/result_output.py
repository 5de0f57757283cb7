"""The end of a command line: the answer where it was asked for, the failure where a program looks for it."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from agent.protocol.events import Envelope, Event, RunCompleted, RunStarted
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, InputError
from agent.vocabulary.outcome import Outcome
from cli.run.flags import RunFlags
from cli.run.listener import Listener
from cli.run.progress import stderr_line
from cli.run.stdout import event_line, whole_result, write_line
from cli.safe_write import write_own_file


def deliver(flags: RunFlags, outcome: Outcome, listener: Listener, request: str = "") -> int:
    """Write the answer and return the exit code; an answer that could not be written is no success."""
    for warning in outcome.warnings:
        stderr_line(f"warning: {warning}")
    saved = _problem_of(lambda: _save(flags, outcome, listener.folders, request))
    shown = listener.problem or _problem_of(lambda: _show(flags, outcome, listener))
    if shown:
        _forget_stdout()
    serious = [problem for problem in (saved, shown) if problem and not isinstance(problem, BrokenPipeError)]
    for problem in serious:
        stderr_line(f"error: the answer could not be written: {problem.strerror}")
    if flags.output_format == "text":
        _tell_more(outcome, is_quiet=flags.quiet, is_told=listener.is_live)
    if flags.save and not outcome.exit_code and not (outcome.plan and outcome.plan.steps):
        stderr_line(f"error: {flags.save} was not written: the task needs no plan")
        return exit_codes.FAILED
    return outcome.exit_code or (exit_codes.FAILED if serious else exit_codes.OK)


def _save(flags: RunFlags, outcome: Outcome, folders: tuple[Path, ...], request: str) -> None:
    if flags.last_message:
        write_own_file(flags.last_message, outcome.answer + "\n", folders)
    if flags.save:
        from cli.run.plan_output import save_plan

        save_plan(flags.save, request, outcome)


def _show(flags: RunFlags, outcome: Outcome, listener: Listener) -> None:
    if flags.plan_only:
        _show_plan(flags, outcome, listener)
    elif flags.output_format == "text":
        if outcome.answer and not listener.has_answered:
            write_line(listener.answer_text(outcome.answer))
    elif flags.output_format == "json" and listener.result:
        write_line(whole_result(listener.result, outcome))


def _show_plan(flags: RunFlags, outcome: Outcome, listener: Listener) -> None:
    from cli.run.plan_output import graph_figures, plan_text

    if flags.output_format == "text":
        if text := plan_text(outcome):
            write_line(text)
    elif flags.output_format == "json" and listener.result:
        write_line(whole_result(listener.result, outcome, {"graph": graph_figures(outcome)}))


def _tell_more(outcome: Outcome, *, is_quiet: bool, is_told: bool) -> None:
    """Say after the answer what else there is, where no screen has told it: the files made, and how to go on."""
    if is_told:
        return
    if outcome.artifacts and not is_quiet:
        stderr_line(f"files: {', '.join(outcome.artifacts)}")
    if outcome.resume:
        stderr_line(f"hint: to go on with what is not done: {outcome.resume}")


def _problem_of(deed: Callable[[], None]) -> OSError | None:
    try:
        deed()
    except OSError as problem:
        return problem
    return None


def tell_failure(error: AgentError, *, is_stream: bool) -> int:
    """Write the document of a run that could not even begin, and return its exit code."""
    stderr_line(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
    started = RunStarted(model="", planner_model="", cwd="", workspace="", backend="", approval_mode="", tools=())
    completed = RunCompleted(
        subtype=error.subtype,
        is_error=True,
        exit_code=error.exit_code,
        result="",
        error=error.message,
    )
    outcome = Outcome(subtype=completed.subtype, exit_code=error.exit_code, answer="", error=error.message)
    try:
        if is_stream:
            write_line(event_line(_alone(1, started)))
            write_line(event_line(_alone(2, completed)))
        else:
            write_line(whole_result(_alone(1, completed), outcome))
    except OSError:
        _forget_stdout()
    return error.exit_code


def check_writable(path: Path | None) -> None:
    """Refuse a file for the answer that cannot be written, before any work is done."""
    if path and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise InputError(f"the answer cannot be written to {path}", "give -o a file in a folder that exists")


def _alone(seq: int, event: Event) -> Envelope:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Envelope(seq=seq, ts=now, session_id="", run_id="", event=event)


def _forget_stdout() -> None:
    """Point stdout nowhere, so that nothing tries to flush what cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
