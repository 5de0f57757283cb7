"""Progress as lines on stderr: the plan, the steps, the calls; one line a fact, nothing ever redrawn."""

import sys
from collections.abc import Callable, Mapping
from typing import TextIO

from agent.protocol.events import (
    ApprovalResolved,
    Envelope,
    ErrorRaised,
    MemoryChanged,
    PlanMade,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
    WarningRaised,
)
from agent.vocabulary.plan import PlanStep

_SUBJECT_CHARS = 100
_SUBJECT_KEYS = ("command", "path", "url", "query", "pattern", "question", "action")
_CACHE_NOTES = {"miss": "", "hit": " (done before)", "resumed": " (goes on)"}
_ANSI_CODES = {"dim": "2", "red": "31", "green": "32", "yellow": "33", "bold": "1"}


class Progress:
    """Turns events into lines for a person; colours only on a terminal that wants them."""

    def __init__(self, *, write: Callable[[str], None], has_colour: bool) -> None:
        self._write = write
        self._has_colour = has_colour
        self._subjects: dict[tuple[str | None, str], str] = {}
        self._shown_steps = 0

    def on_event(self, envelope: Envelope) -> None:
        """Write what a person should see of an event."""
        step = envelope.step_id
        match envelope.event:
            case RunStarted() as started:
                if started.resumes:
                    self._print_line("bold", f"goes on with {started.resumes}")
                for warning in started.warnings:
                    self._print_line("yellow", f"warning: {warning}")
            case PlanMade(diff=diff, reason=reason) if diff:
                self._print_line("bold", f"plan, again: {reason}")
                for line in diff.splitlines():
                    self._print_line("dim", f"  {line}")
            case PlanMade(steps=steps):
                self._print_plan(steps)
            case StepStarted(title=title, cache=cache):
                self._print_line("bold", f"{step}: {title}{_CACHE_NOTES[cache]}")
            case ToolStarted() as call:
                self._subjects[(step, call.tool_id)] = _subject(call.input)
            case ToolCompleted() as call:
                subject = self._subjects.pop((step, call.tool_id), "")
                ending = "" if call.status == "ok" else f" [{call.status}, exit {call.exit_code}]"
                self._print_line("dim" if call.status == "ok" else "yellow", f"  {step}: {call.name} {subject}{ending}")
            case StepCompleted() as end:
                colour = "green" if end.status in ("ok", "partial") else "red"
                why = "" if end.status in ("ok", "partial") else f": {end.summary}"
                self._print_line(colour, f"{step}: {end.status} in {end.elapsed_ms / 1000:.1f} s{why}")
            case ApprovalResolved(decision=decision, by=by) if decision != "allow":
                self._print_line("yellow", f"  {step}: not allowed ({decision} by {by})")
            case MemoryChanged(action=action, entry=entry):
                self._print_line("dim", f"memory {action}{': ' + entry if entry else ''}")
            case WarningRaised(message=message):
                self._print_line("yellow", f"warning: {message}")
            case ErrorRaised(message=message, hint=hint):
                self._print_line("red", f"error: {message}")
                for number, line in enumerate((hint or "").splitlines()):
                    self._print_line("dim", line if number else f"hint: {line}")
            case _:
                pass

    def _print_plan(self, steps: tuple[PlanStep, ...]) -> None:
        if not self._shown_steps:
            self._print_line("bold", "plan:")
        for planned in steps[self._shown_steps :]:
            after = f"  (after {', '.join(planned.depends_on)})" if planned.depends_on else ""
            self._print_line("dim", f"  {planned.id}  {planned.title}{after}")
        self._shown_steps = len(steps)

    def _print_line(self, colour: str, text: str) -> None:
        shown = "".join(mark if mark.isprintable() else "?" for mark in text.replace("\n", " ⏎ "))
        self._write(f"\x1b[{_ANSI_CODES[colour]}m{shown}\x1b[0m" if self._has_colour else shown)


def write_stderr_raw(text: str) -> None:
    """Write text with our own sequences in it, which a terminal would not get as plain text."""
    try:
        sys.stderr.flush()
        sys.stderr.buffer.write(text.encode(sys.stderr.encoding, "backslashreplace"))
        sys.stderr.buffer.flush()
    except (OSError, ValueError):
        # Nobody sees it any more; the run goes on.
        pass


def print_stderr(text: str) -> None:
    """Write one line to stderr; a reader that went away must not end the run."""
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def wants_colour(environ: Mapping[str, str], stream: TextIO | None = None) -> bool:
    """Say whether a stream, stderr unless told, is a terminal that wants colours."""
    # An empty NO_COLOR counts as none, as no-color.org says.
    return (stream or sys.stderr).isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def can_redraw(environ: Mapping[str, str]) -> bool:
    """Say whether stderr is a terminal on which lines can be redrawn."""
    return sys.stderr.isatty() and environ.get("TERM", "dumb") != "dumb"


def _subject(arguments: Mapping[str, object]) -> str:
    for name in _SUBJECT_KEYS:
        if value := arguments.get(name):
            text = " ".join(str(value).split())
            return text if len(text) <= _SUBJECT_CHARS else text[: _SUBJECT_CHARS - 1] + "…"
    return ""
