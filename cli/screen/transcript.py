"""The transcript of a run: events as finished lines for the scrollback, in order, never redrawn."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from agent.protocol.events import (
    ApprovalResolved,
    Envelope,
    ErrorRaised,
    FilesChanged,
    MemoryChanged,
    MessageAdded,
    PlanUpdated,
    QuestionAnswered,
    RunCompleted,
    RunStarted,
    StepCompleted,
    ToolCompleted,
    ToolStarted,
    WarningRaised,
)
from agent.vocabulary.plan import ANSWER, LEAD, PLAN_TOOL, STREAMING, PlanStep
from agent.vocabulary.status import is_success
from cli.screen.colors import Paint, Tone, clip, clip_line, to_single_line, wrap
from cli.screen.diff import diff_lines
from cli.screen.format import (
    approval_text,
    call_subject,
    format_cost,
    format_duration,
    format_tokens,
    image_labels,
    replan_text,
    resume_hint,
)
from cli.screen.markdown_stream import MarkdownStream
from cli.screen.plan_graph import graph_lines
from cli.screen.plan_view import PlanView
from cli.screen.sanitize import sanitize
from cli.screen.thoughts import FinishedThought, Thoughts
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange

_OUTPUT_LINES = 3
_DIFF_LINES = 12
_MAX_FOLDED = 50
# Not worth a line: many models think for a moment before every call.
_MIN_THOUGHT_S = 1.0

Markdown = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedOutput:
    """A text of which the transcript shows only a part."""

    title: str
    text: str


class Transcript:
    """Writes the events of a run as lines; without `markdown`, the caller prints the answer.

    `write_answer` receives what the model says, if that goes elsewhere than the progress.
    """

    def __init__(
        self,
        *,
        write: Callable[[str], None],
        width: Callable[[], int],
        paint: Paint,
        markdown: Markdown | None = None,
        write_answer: Callable[[str], None] | None = None,
        expand_hint: str = "",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._width = width
        self._paint = paint
        self._markdown = markdown
        self._write_answer = write_answer or write
        self._is_in_repl = markdown is not None and write_answer is None
        self._calls: dict[tuple[str | None, str], str] = {}
        # These events arrive before the end of the call they belong to, and are shown below it.
        self._changes: dict[str, tuple[FileChange, ...]] = {}
        self._command_changes: list[str] = []
        self._errors: list[ErrorRaised] = []
        self._answer = MarkdownStream()
        self._has_answered = False
        self._lead_text = ""
        self._shown_plan: tuple[PlanStep, ...] = ()
        self._is_after_answer = False
        self._expand_hint = expand_hint
        self._thoughts = Thoughts(now)
        self.plan = PlanView(paint)
        self.folded: deque[FoldedOutput] = deque(maxlen=_MAX_FOLDED)

    @property
    def partial_answer(self) -> str:
        """Return the end of the answer that is not a complete block yet."""
        return self._answer.pending

    def partial_answer_lines(self, width: int, height: int) -> list[str]:
        """Return the last lines of the incomplete block, each on one row."""
        return [clip(line, width) for line in self.partial_answer.splitlines()[-height:]] if height > 0 else []

    def on_event(self, envelope: Envelope) -> None:
        """Write the lines of an event, if it has any."""
        had_steps = bool(self.plan.steps)
        self.plan.on_event(envelope)
        if thought := self._thoughts.on_event(envelope):
            self._on_thought_ended(envelope.step_id, thought)
        match envelope.event:
            case RunStarted(warnings=warnings):
                self._on_run_started(warnings)
            case PlanUpdated() as plan:
                self._on_plan(plan, is_first=not had_steps)
            case MessageAdded() as said:
                self._on_message(envelope, said)
            case ToolStarted() as call:
                self._calls[(envelope.step_id, call.tool_id)] = call_subject(call.input)
            case ToolCompleted(name=tool, status="ok") if tool == PLAN_TOOL:
                # The steps it handed out have their own lines.
                pass
            case ToolCompleted() as call:
                self._on_tool_completed(envelope.step_id or "", call)
            case FilesChanged(changes=changes, command_id=str()):
                # Found while the model already goes on: told at the end, not in the middle of its words.
                self._command_changes += [change.path for change in changes if change.kind != "folder"]
            case FilesChanged(changes=changes):
                step = envelope.step_id or ""
                self._changes[step] = (*self._changes.get(step, ()), *changes)
            case StepCompleted() as end:
                self._on_step_completed(envelope.step_id or "", end)
            case RunCompleted() as end:
                self._on_run_completed(end)
            case _:
                self._on_minor_event(envelope)

    def show_plan(self, steps: Sequence[PlanStep]) -> None:
        """Draw a plan that has not started; it is not drawn again when it starts unchanged."""
        self._shown_plan = tuple(steps)
        for line in graph_lines(steps, width=self._width(), paint=self._paint):
            self._print_line(line)

    def _on_minor_event(self, envelope: Envelope) -> None:
        """Write the events that take one line each."""
        match envelope.event:
            case ApprovalResolved(decision=decision, by=by, opinion=opinion):
                tone: Tone = "quiet" if decision == "allow" else "warn"
                write = self._print_wrapped if opinion else self._print_clipped
                write(tone, f"  {_prefix(envelope.step_id)}{approval_text(decision, by, opinion)}")
            case QuestionAnswered(answer=answer):
                reply = f"answered: {line}" if (line := to_single_line(answer or "")) else "not answered"
                self._print_clipped("quiet", f"  {_prefix(envelope.step_id)}{reply}")
            case MemoryChanged(action=action, entry=entry):
                self._print_clipped("quiet", f"memory {action}{': ' + entry if entry else ''}")
            case WarningRaised(message=message):
                self._print_wrapped("warn", f"warning: {message}")
            case ErrorRaised() as error:
                # Printed at the end of the run, which is near: the answer may still be streaming.
                self._errors.append(error)
            case _:
                pass

    def _on_run_started(self, warnings: tuple[str, ...]) -> None:
        self._calls, self._changes, self._command_changes = {}, {}, []
        self._answer, self._errors = MarkdownStream(), []
        self._has_answered = self._is_after_answer = False
        self._lead_text, self._shown_plan = "", ()
        for warning in warnings:
            self._print_wrapped("warn", f"warning: {warning}")

    def _on_plan(self, plan: PlanUpdated, *, is_first: bool) -> None:
        """Draw the plan once it is complete; while it streams in, the live area shows the running steps."""
        shown = [(step.id, step.title, step.depends_on) for step in self._shown_plan]
        if shown == [(step.id, step.title, step.depends_on) for step in self.plan.steps] and not plan.diff:
            return
        if plan.reason == STREAMING or (plan.reason.startswith(ANSWER) and not plan.diff):
            return
        if plan.diff and not is_first:
            self._print_wrapped("strong", replan_text(plan.reason))
            for line in plan.diff.splitlines():
                self._print_clipped(_diff_tone(line), f"  {line}")
        for line in self.plan.lines(self._width()):
            self._print_line(line)

    def _on_message(self, envelope: Envelope, said: MessageAdded) -> None:
        """Stream the answer, which comes from the lead, the composer or the only step; name the images of a request."""
        if said.role == "user" and envelope.step_id is None:
            for image in said.images or ():
                self._print_clipped("quiet", f"  {image.label}")
        is_only = len(self.plan.steps) == 1 and not self.plan.has_lead
        is_answer = envelope.step_id in (None, LEAD) or is_only
        if said.role != "assistant" or not is_answer or self._markdown is None:
            return
        if said.delta:
            self._write_markdown(self._answer.feed(said.content))
        elif said.tool_calls:
            self._finish_answer(said.content)
        elif envelope.step_id == LEAD:
            self._finish_answer(said.content)
            self._lead_text = said.content.strip()
        elif envelope.step_id is None:
            self._write_result(said.content)
            self._has_answered = True

    def _on_thought_ended(self, step: str | None, thought: FinishedThought) -> None:
        if thought.seconds < _MIN_THOUGHT_S:
            return
        title = f"{_prefix(step)}thought for {format_duration(thought.seconds)}"
        self.folded.append(FoldedOutput(title=title, text=sanitize(thought.text)))
        self._print_clipped("quiet", f"  {title}{self._expand_hint}")

    def _write_result(self, result: str) -> None:
        """Write the answer of the run, unless the lead has said it already."""
        if result.strip() != self._lead_text:
            self._finish_answer(result)

    def _finish_answer(self, text: str) -> None:
        """Write the part of the final text that was not streamed."""
        missing = self._answer.finish(text)
        self._answer = MarkdownStream()
        self._write_markdown(text if missing is None else missing)

    def _write_markdown(self, text: str) -> None:
        if text.strip() and self._markdown:
            # A blank line separates the model's text from the progress above.
            self._write_answer("\n" + self._markdown(text.strip("\n")))
            self._is_after_answer = True

    def _on_tool_completed(self, step: str, call: ToolCompleted) -> None:
        about = self._calls.pop((step, call.tool_id), "")
        ending = "" if call.status == "ok" else f"  [{call.status}, exit {call.exit_code}]"
        mark = "$" if call.name == "run_command" else call.name
        indent, title = ("", "") if step == LEAD else ("  ", f"{step} ")
        title += f"{mark} {about}{image_labels(call.images)}{ending}"
        changes = self._changes.pop(step, ())
        is_named = [change.path for change in changes] == [about]
        extent = _line_counts(changes[0]) if is_named else ""
        self._print_clipped("plain" if call.status == "ok" else "warn", f"{indent}{title}{extent}")
        self._print_changes(changes, is_named=is_named)
        output = sanitize(call.display or call.output)
        if call.name == "run_command":
            self._print_tail(title, output)
        elif call.status != "ok":
            self._print_head(title, output)

    def _print_head(self, title: str, output: str) -> None:
        lines = _visible_lines(output)
        hidden = _hidden_count(lines)
        for line in lines[: len(lines) - hidden]:
            self._print_clipped("quiet", f"      {line}")
        if hidden:
            self._fold(f"{hidden} more lines", FoldedOutput(title=to_single_line(title), text=output))

    def _print_tail(self, title: str, output: str) -> None:
        """Print the end of a command's output, which has its result or its error."""
        lines = _visible_lines(output)
        hidden = _hidden_count(lines)
        if hidden:
            self._fold(f"{hidden} lines above", FoldedOutput(title=to_single_line(title), text=output))
        for line in lines[hidden:]:
            self._print_clipped("quiet", f"      {line}")

    def _print_changes(self, changes: tuple[FileChange, ...], *, is_named: bool = False) -> None:
        for change in changes:
            if not is_named:
                self._print_clipped("plain", f"    {change.path}{_line_counts(change)}")
            lines = diff_lines(change.diff.expandtabs())
            for tone, line in lines[:_DIFF_LINES]:
                self._print_clipped(tone, f"      {line}")
            if len(lines) > _DIFF_LINES:
                self._fold(
                    f"{len(lines) - _DIFF_LINES} more lines",
                    FoldedOutput(title=to_single_line(change.path), text=sanitize(change.diff)),
                )

    def _fold(self, hidden: str, folded: FoldedOutput) -> None:
        self.folded.append(folded)
        self._print_clipped("quiet", f"      … {hidden}{self._expand_hint}")

    def _on_step_completed(self, step: str, end: StepCompleted) -> None:
        self._print_changes(self._changes.pop(step, ()))
        if step == LEAD:
            # Its text is the answer, and its failure the error of the run.
            return
        is_good = is_success(end.status)
        mark = "✓" if end.status == "ok" else "~" if is_good else "✗"
        cost = f", {format_cost(end.cost_usd)}" if end.cost_usd else ""
        tokens = f", {format_tokens(end.usage)}" if end.usage.total_tokens else ""
        checked = {True: ", verified", False: ", check failed", None: ""}[end.verified]
        status = "" if end.status == "ok" else f"{end.status}, "
        facts = f"{status}{format_duration(end.elapsed_ms / 1000)}{tokens}{cost}{checked}"
        why = "" if is_good else f": {end.summary}"
        tone: Tone = "good" if end.status == "ok" else "warn" if is_good else "bad"
        self._print_wrapped(tone, f"{mark} {step} {self.plan.title(step)} ({facts}){why}")

    def _on_run_completed(self, end: RunCompleted) -> None:
        if end.is_error and (not end.result or self._answer.finish(end.result) is None):
            # The run was stopped in the middle of a sentence.
            self._write_markdown(self._answer.pending)
            self._answer = MarkdownStream()
        if end.result and not self._has_answered:
            self._write_result(end.result)
        self._answer = MarkdownStream()
        self._print_errors()
        for path in end.artifacts:
            self._print_clipped("quiet", f"  wrote {path}")
        if by_commands := [path for path in dict.fromkeys(self._command_changes) if path not in end.artifacts]:
            self._print_clipped("quiet", f"  commands changed {', '.join(by_commands)}")
        parts = [format_duration(end.duration_ms / 1000)]
        parts += [counts] if (counts := self._step_counts(end)) else []
        parts += [format_tokens(end.usage)] if end.usage.total_tokens else []
        parts += [format_cost(end.total_cost_usd)] if end.total_cost_usd else []
        parts += [f"exit {end.exit_code}"] if end.exit_code else []
        self._print_clipped("quiet", "· " + " · ".join(parts))
        if end.resume:
            self._print_wrapped("quiet", f"  {resume_hint(end.resume, in_repl=self._is_in_repl)}")

    def _step_counts(self, end: RunCompleted) -> str:
        if self.plan.has_lead and not self.plan.steps:
            return ""
        # The event counts the lead, too.
        lead = self.plan.status(LEAD)
        ok = end.steps.ok - is_success(lead)
        failed = end.steps.failed - (lead not in ("", "running") and not is_success(lead))
        # The event counts cancelled steps as failed; the user stopped them.
        stopped = min(self.plan.count_status("cancelled"), failed)
        counts = (("ok", ok), ("failed", failed - stopped), ("stopped", stopped))
        return ", ".join(f"{count} {word}" for word, count in counts if count)

    def _print_errors(self) -> None:
        for error in self._errors:
            self._print_wrapped("bad", f"error: {error.message}")
            for line in (error.hint or "").splitlines():
                self._print_wrapped("quiet", f"  {line}")

    def _print_wrapped(self, tone: Tone, text: str) -> None:
        """Write a text completely, wrapped where it is too long."""
        for line in _wrap_hanging(text, self._width()):
            self._print_line(self._paint(tone, line))

    def _print_clipped(self, tone: Tone, text: str) -> None:
        self._print_line(self._paint(tone, clip_line(text, self._width())))

    def _print_line(self, line: str) -> None:
        if self._is_after_answer:
            self._write("\n")
            self._is_after_answer = False
        self._write(line + "\n")


def _prefix(step: str | None) -> str:
    """Return the name of the step before its line; the lead needs none."""
    return "" if step in (None, LEAD) else f"{step}: "


def _visible_lines(output: str) -> list[str]:
    return [line for line in output.rstrip().expandtabs().splitlines() if line.strip()]


def _hidden_count(lines: Sequence[str]) -> int:
    """Return how many lines of an output are hidden; a note about one would take as much room as the line."""
    hidden = max(0, len(lines) - _OUTPUT_LINES)
    return 0 if hidden == 1 else hidden


def _wrap_hanging(text: str, width: int) -> list[str]:
    """Wrap text, indenting all lines but the first."""
    lines = wrap(text, width)
    if len(lines) == 1:
        return lines
    first, *rest = wrap(text, width - 2)
    return [first, *(f"  {line}" for line in rest)]


def _line_counts(change: FileChange) -> str:
    return f"  +{change.added_lines} -{change.deleted_lines}"


def _diff_tone(line: str) -> Tone:
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
