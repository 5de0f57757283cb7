"""Progress as plain lines on stderr: plan, steps and tool calls, never redrawn."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalResolved,
    ErrorRaised,
    MemoryChanged,
    MessageAdded,
    PlanUpdated,
    RuleSaved,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    WarningRaised,
)
from agent.vocabulary.plan import LEAD, PLAN_TOOL, PlanStep
from cli.messages.translate import translate
from cli.screen.format import approval_text, image_labels, is_by_user, replan_text, saved_rule_text
from cli.screen.open_calls import OpenCalls

_SUBJECT_CHARS = 100
CACHE_NOTES = {"miss": "", "hit": " (already done)", "resumed": " (resumed)"}
_ANSI_CODES = {"dim": "2", "red": "31", "green": "32", "yellow": "33", "bold": "1"}


class Progress:
    """Writes one line per event that the user should see."""

    def __init__(self, *, write: Callable[[str], None], has_color: bool) -> None:
        self._write = write
        self._has_color = has_color
        self._calls = OpenCalls()
        self._shown_steps = 0

    def on_event(self, envelope: Envelope) -> None:
        """Write the lines of an event, if it has any."""
        step = envelope.step_id
        prefix = "" if step in (None, LEAD) else f"  {step}: "
        self._calls.on_event(envelope)
        match envelope.event:
            case RunStarted() as started:
                if started.resumes:
                    self._print_line("bold", f"resuming {started.resumes}")
                for warning in started.warnings:
                    self._print_line("yellow", f"warning: {warning}")
            case PlanUpdated(diff=diff, reason=reason) if diff and self._shown_steps:
                self._print_line("bold", replan_text(reason))
                for line in diff.splitlines():
                    self._print_line("dim", f"  {line}")
            case PlanUpdated(steps=steps):
                self._print_plan([step for step in steps if step.id != LEAD])
            case StepStarted() | StepCompleted() if step == LEAD:
                # Its text is the answer, and its failure the error of the run.
                pass
            case ToolCompleted(name=tool, status="ok") if tool == PLAN_TOOL:
                # Delegated steps have their own lines.
                pass
            case StepStarted(title=title, cache=cache):
                self._print_line("bold", f"{step}: {title}{CACHE_NOTES[cache]}")
            case MessageAdded(role="user", images=images) if images and step is None:
                self._print_line("dim", image_labels(images).strip())
            case ToolCompleted() as call:
                subject = _shorten(self._calls.pop(step, call.tool_id).subject) + image_labels(call.images)
                ending = "" if call.status == "ok" else f" [{call.status}, exit {call.exit_code}]"
                self._print_line("dim" if call.status == "ok" else "yellow", f"{prefix}{call.name} {subject}{ending}")
            case StepCompleted() as end:
                color = "green" if end.status in ("ok", "partial") else "red"
                why = "" if end.status in ("ok", "partial") else f": {end.summary}"
                self._print_line(color, f"{step}: {end.status} in {end.elapsed_ms / 1000:.1f} s{why}")
            case ApprovalResolved(decision="deny", by="policy", opinion=None):
                # The line of the call says it.
                pass
            case ApprovalResolved() as answer if answer.decision != "allow" or answer.edited_command or answer.opinion:
                is_calm = answer.decision == "allow" or is_by_user(answer)
                self._print_line("dim" if is_calm else "yellow", f"{prefix}{approval_text(answer)}")
            case RuleSaved() as saved:
                self._print_line("dim", saved_rule_text(saved))
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

    def _print_plan(self, steps: Sequence[PlanStep]) -> None:
        if steps and not self._shown_steps:
            self._print_line("bold", "plan:")
        for planned in steps[self._shown_steps :]:
            after = f"  (after {', '.join(planned.depends_on)})" if planned.depends_on else ""
            self._print_line("dim", f"  {planned.id}  {planned.title}{after}")
        self._shown_steps = len(steps)

    def _print_line(self, color: str, text: str) -> None:
        shown = text
        if not text.isprintable():
            shown = "".join(char if char.isprintable() else "?" for char in text.replace("\n", " ⏎ "))
        self._write(f"\x1b[{_ANSI_CODES[color]}m{shown}\x1b[0m" if self._has_color else shown)


def write_stderr_raw(text: str) -> None:
    """Write text that contains our own escape sequences, bypassing the stream that strips them."""
    try:
        sys.stderr.flush()
        sys.stderr.buffer.write(text.encode(sys.stderr.encoding, "backslashreplace"))
        sys.stderr.buffer.flush()
    except (OSError, ValueError):
        # stderr is closed; the run continues.
        pass


def print_stderr(text: str) -> None:
    """Write one line to stderr, ignoring errors: a closed stderr must not end the run."""
    try:
        sys.stderr.write(translate(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def wants_color(environ: Mapping[str, str], stream: TextIO | None = None) -> bool:
    """Whether the stream, by default stderr, is a terminal that supports colors."""
    # By no-color.org an empty NO_COLOR does not count.
    return (stream or sys.stderr).isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def can_redraw(environ: Mapping[str, str]) -> bool:
    """Whether stderr is a terminal on which lines can be redrawn."""
    return sys.stderr.isatty() and environ.get("TERM", "dumb") != "dumb"


def stderr_size() -> tuple[int, int]:
    """Return columns and rows of the terminal; 80x24 if it reports none."""
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        columns, rows = 80, 24
    return columns or 80, rows or 24


def _shorten(text: str) -> str:
    return text if len(text) <= _SUBJECT_CHARS else text[: _SUBJECT_CHARS - 1] + "…"
