"""Output at the end of a run: the answer, files, hints, and error documents for programs."""

import errno
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from agent.protocol.envelope import Envelope
from agent.protocol.events import Event, RunCompleted, RunStarted
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, InputError
from agent.vocabulary.outcome import Outcome
from cli.exit import could_not_write
from cli.run.flags import RunFlags
from cli.run.listener import Listener
from cli.run.progress import print_stderr
from cli.run.stdout import event_line, result_document, write_line
from cli.safe_write import write_user_file
from cli.screen.format import WILL_RUN, resume_hint, runnable_lines, shorten_path

NO_PLAN = "the task needs no plan"


def write_result(flags: RunFlags, outcome: Outcome, listener: Listener, request: str = "") -> int:
    """Write the answer and return the exit code; failing to write it is a failure of the run."""
    for warning in outcome.warnings:
        print_stderr(f"warning: {warning}")
    saved = _catch_os_error(lambda: _write_files(flags, outcome, listener.writable_dirs, request))
    shown = listener.write_error or _catch_os_error(lambda: _write_answer(flags, outcome, listener))
    if shown:
        _discard_stdout()
    if shown and shown.errno == errno.EBADF and flags.last_message and not saved:
        # Closed on purpose: the answer is in its file.
        shown = None
    serious = [problem for problem in (saved, shown) if problem and not isinstance(problem, BrokenPipeError)]
    for problem in serious:
        print_stderr(f"error: {could_not_write('answer', problem)}")
    if serious and outcome.answer:
        print_stderr(f"hint: {_where_answer_is(flags, listener)}")
    if flags.output_format == "text":
        _print_hints(outcome, listener, is_quiet=flags.quiet)
    if flags.save and not outcome.exit_code and not (outcome.plan and outcome.plan.steps):
        print_stderr(f"error: {flags.save} was not written: {NO_PLAN}")
        return exit_codes.FAILED
    return outcome.exit_code or (exit_codes.FAILED if serious else exit_codes.OK)


def _where_answer_is(flags: RunFlags, listener: Listener) -> str:
    """Return how to read an answer that could not be written."""
    if flags.ephemeral or listener.result is None:
        return "the run was not saved; to keep its answer, run it again with -o FILE"
    return f"the answer is saved; show it with: agent runs show {listener.result.run_id}"


def _write_files(flags: RunFlags, outcome: Outcome, folders: tuple[Path, ...], request: str) -> None:
    if flags.last_message:
        write_user_file(flags.last_message, outcome.answer + "\n", folders)
    if flags.save:
        from cli.run.plan_output import save_plan

        save_plan(flags.save, request, outcome)
    if flags.manifest_output:
        from cli.run.plan_output import save_manifest

        save_manifest(Path(flags.manifest_output), outcome)


def _write_answer(flags: RunFlags, outcome: Outcome, listener: Listener) -> None:
    if flags.plan_only:
        _write_plan(flags, outcome, listener)
    elif flags.output_format == "text":
        if outcome.answer and not listener.has_answered:
            write_line(listener.answer_text(outcome.answer))
    elif flags.output_format == "json" and listener.result:
        write_line(result_document(listener.result, outcome))


def _write_plan(flags: RunFlags, outcome: Outcome, listener: Listener) -> None:
    from cli.run.plan_output import manifest_text, render_plan

    if flags.output_format == "text":
        is_manifest = flags.manifest_output == "" and outcome.manifest is not None
        if text := manifest_text(outcome).rstrip() if is_manifest else render_plan(outcome):
            write_line(text)
    elif flags.output_format == "json" and listener.result:
        write_line(result_document(listener.result, outcome, _plan_data(outcome)))


def _plan_data(outcome: Outcome) -> dict[str, object]:
    from agent.planning.manifest_file import manifest_data
    from cli.run.plan_output import graph_data

    manifest = {"manifest": manifest_data(outcome.manifest)} if outcome.manifest else {}
    return {"graph": graph_data(outcome), **manifest}


def _print_hints(outcome: Outcome, listener: Listener, *, is_quiet: bool) -> None:
    """Print the location of created files and the resume command, unless a live screen has shown them."""
    if outcome.artifacts and not is_quiet and not (listener.is_live and listener.own_folder is None):
        where = f" in {shorten_path(listener.files_folder)}" if listener.files_folder else ""
        print_stderr(f"files{where}: {', '.join(outcome.artifacts)}")
    if outcome.will_run and not listener.is_live:
        print_stderr("\n".join((WILL_RUN, *runnable_lines(outcome.will_run))))
    if outcome.resume and not listener.is_live:
        print_stderr(f"hint: {resume_hint(outcome.resume)}")


def _catch_os_error(action: Callable[[], None]) -> OSError | None:
    try:
        action()
    except OSError as problem:
        return problem
    return None


def write_failure(error: AgentError, *, is_stream: bool) -> int:
    """Write the error document of a run that could not start, and return its exit code."""
    print_stderr(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
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
            write_line(event_line(_envelope(1, started)))
            write_line(event_line(_envelope(2, completed)))
        else:
            write_line(result_document(_envelope(1, completed), outcome))
    except OSError:
        _discard_stdout()
    return error.exit_code


def check_writable(path: Path | None) -> None:
    """Refuse an output file that cannot be written, before any work is done."""
    if path and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
        raise InputError(f"cannot write to {path}", "name a file in a folder that exists")


def _envelope(seq: int, event: Event) -> Envelope:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Envelope(seq=seq, ts=now, session_id="", run_id="", event=event)


def _discard_stdout() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
