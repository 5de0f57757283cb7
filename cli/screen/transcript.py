"""The transcript of a run: events as finished lines for the scrollback, in order, never redrawn."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ErrorRaised,
    FilesChanged,
    MemoryChanged,
    MessageAdded,
    PlanUpdated,
    QuestionAnswered,
    RuleSaved,
    RunCompleted,
    RunStarted,
    StepCompleted,
    ToolCompleted,
    WarningRaised,
)
from agent.vocabulary.plan import ANSWER, LEAD, PLAN_TOOL, STREAMING, PlanStep
from agent.vocabulary.status import is_success
from cli.screen.blocks import BlockWriter, FoldedOutput, Folds
from cli.screen.colors import Paint, Tone, clip, to_single_line
from cli.screen.format import (
    COMMAND_TOOLS,
    PYTHON_TOOL,
    WILL_RUN,
    answer_text,
    approval_text,
    command_change_texts,
    decision_text,
    declined_remark,
    format_cost,
    format_duration,
    format_tokens,
    hint_lines,
    image_labels,
    is_by_user,
    replan_text,
    resume_hint,
    runnable_lines,
    saved_rule_text,
    shortfall_text,
)
from cli.screen.markdown_stream import MarkdownStream
from cli.screen.open_calls import OpenCalls
from cli.screen.plan_graph import graph_lines
from cli.screen.plan_view import PlanView
from cli.screen.sanitize import sanitize
from cli.screen.thoughts import FinishedThought, Thoughts
from cli.screen.work_lines import CallText, WorkLines, line_counts, widest_id
from tooling.contract.result import FileChange

# Minimum part of a diff that must be in the card for it to be the same: the card has more of a long one.
_SAME_DIFF_CHARS = 2000
# Shorter ones get no line: many models think briefly before every call.
_MIN_THOUGHT_S = 1.0

Markdown = Callable[[str], str]


# A longer plan would fill a window of 24 rows; it is folded to this many lines.
_MAX_PLAN_STEPS = 12
PLAN_HINT, RUN_HINT = " (/plan shows all)", " (agent runs show lists all)"


class Transcript:
    """Writes the events of a run as lines; without `markdown`, the caller prints the answer.

    `write_answer` receives the model's text if it goes elsewhere than the progress.
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
        self._width = width
        self._paint = paint
        self._markdown = markdown
        self._write_answer = write_answer or write
        self._is_in_repl = markdown is not None and write_answer is None
        self._blocks = BlockWriter(write=write, width=width, paint=paint)
        self._folds = Folds(expand_hint)
        self._calls = OpenCalls()
        self._requests: dict[str, ApprovalRequested] = {}
        self._declined: list[ApprovalRequested] = []
        self._approved_diffs: dict[str, str] = {}
        # These events arrive before the end of the call they belong to, and are shown below it.
        self._changes: dict[str, tuple[FileChange, ...]] = {}
        self._command_changes: dict[str, str] = {}
        self._errors: list[ErrorRaised] = []
        self._answer = MarkdownStream()
        self._has_answered = False
        self._lead_text = ""
        self._shown_plan: tuple[PlanStep, ...] = ()
        self._thoughts = Thoughts(now)
        self.plan = PlanView(paint)

    @property
    def folded(self) -> deque[FoldedOutput]:
        """Return the partly shown texts, newest last."""
        return self._folds.texts

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
        self._calls.on_event(envelope)
        if thought := self._thoughts.on_event(envelope):
            self._on_thought_ended(envelope.step_id, thought)
        match envelope.event:
            case RunStarted(warnings=warnings):
                self._on_run_started(warnings)
            case PlanUpdated() as plan:
                self._on_plan(plan, is_first=not had_steps)
            case MessageAdded() as said:
                self._on_message(envelope, said)
            case ToolCompleted(name=tool, status="ok") if tool == PLAN_TOOL:
                # Delegated steps have their own lines.
                pass
            case ToolCompleted() as call:
                self._on_tool_completed(envelope.step_id or "", call)
            case FilesChanged(changes=changes, command_id=str()):
                # Found while the model already goes on: told at the end, not in the middle of its words.
                self._command_changes.update((c.path, c.status) for c in changes if c.kind != "folder")
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
        self._blocks.block("plan", graph_lines(steps, width=self._width(), paint=self._paint))

    def show_card(self, lines: Sequence[str]) -> None:
        """Write the card of an approval or a question."""
        self._blocks.block("card", lines, owner="card")

    def _on_minor_event(self, envelope: Envelope) -> None:
        """Write the events that take one line each."""
        match envelope.event:
            case ApprovalRequested() as request:
                self._requests[request.approval_id] = request
                if not self._is_in_repl:
                    # The front end that reads the answer writes its card.
                    self._blocks.follow("card")
            case ApprovalResolved() as answer:
                self._on_approval(envelope.step_id, answer)
            case RuleSaved() as saved:
                self._blocks.block(
                    "card", self._blocks.wrapped("quiet", f"  {saved_rule_text(saved)}"), owner="card", is_end=True
                )
            case QuestionAnswered(answer=answer):
                self._note("card", "quiet", f"  {_prefix(envelope.step_id)}{answer_text(answer)}")
            case MemoryChanged(action=action, entry=entry):
                self._note("note", "quiet", f"memory {action}{': ' + entry if entry else ''}")
            case WarningRaised(message=message):
                self._blocks.block("note", self._blocks.wrapped("warn", f"warning: {message}"))
            case ErrorRaised() as error:
                # Printed at the end of the run, which is near: the answer may still be streaming.
                self._errors.append(error)
            case _:
                pass

    def _on_approval(self, step: str | None, answer: ApprovalResolved) -> None:
        """Write the decision below its card; a declined call gets its line when it ends."""
        request = self._requests.pop(answer.approval_id, None)
        if request and is_by_user(answer):
            if answer.decision != "allow":
                self._declined.append(request)
                return
            self._approved_diffs[step or ""] = request.diff or ""
        tone: Tone = "quiet" if answer.decision == "allow" or is_by_user(answer) else "warn"
        lines = self._blocks.wrapped(tone, f"  {_prefix(step)}{approval_text(answer)}")
        self._blocks.block("card", lines if answer.opinion else lines[:1], owner="card", is_end=True)

    def _note(self, group: str, tone: Tone, text: str) -> None:
        """Write one line; one that belongs to a card stays with it."""
        self._blocks.block(group, [self._blocks.clipped(tone, text)], owner=group, is_end=True)

    def _on_run_started(self, warnings: tuple[str, ...]) -> None:
        self._changes, self._requests, self._approved_diffs = {}, {}, {}
        self._answer, self._errors, self._declined = MarkdownStream(), [], []
        self._has_answered, self._command_changes = False, {}
        self._lead_text, self._shown_plan = "", ()
        # At the prompt, the request is above.
        self._blocks.start("request" if self._is_in_repl else "")
        for warning in warnings:
            self._blocks.block("note", self._blocks.wrapped("warn", f"warning: {warning}"))

    def _on_plan(self, plan: PlanUpdated, *, is_first: bool) -> None:
        """Draw the plan once it is complete; while it streams in, the live area shows the running steps."""
        shown = [(step.id, step.title, step.depends_on) for step in self._shown_plan]
        if shown == [(step.id, step.title, step.depends_on) for step in self.plan.steps] and not plan.diff:
            return
        if plan.reason == STREAMING or (plan.reason.startswith(ANSWER) and not plan.diff):
            return
        lines: list[str] = []
        if plan.diff and not is_first:
            lines += self._blocks.wrapped("strong", replan_text(plan.reason))
            lines += [self._blocks.clipped(_diff_tone(line), f"  {line}") for line in plan.diff.splitlines()]
        hint = PLAN_HINT if self._is_in_repl else RUN_HINT
        drawn = self.plan.lines(self._width(), is_final=True, max_steps=_MAX_PLAN_STEPS, more_hint=hint)
        self._blocks.block("plan", [*lines, *drawn])

    def _on_message(self, envelope: Envelope, said: MessageAdded) -> None:
        """Stream the answer, which comes from the lead, the composer or the only step; list the images of a request."""
        if said.role == "user" and envelope.step_id is None:
            for image in said.images or ():
                self._note("request", "quiet", f"  {image.label}")
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
        hint = self._folds.add(title, sanitize(thought.text))
        self._note("work", "quiet", f"  {title}{hint}")

    def _write_result(self, result: str) -> None:
        """Write the answer of the run, unless the lead has already written it."""
        if result.strip() != self._lead_text:
            self._finish_answer(result)

    def _finish_answer(self, text: str) -> None:
        """Write the part of the final text that was not streamed."""
        missing = self._answer.finish(text)
        self._answer = MarkdownStream()
        self._write_markdown(text if missing is None else missing)

    def _write_markdown(self, text: str) -> None:
        if text.strip() and self._markdown:
            self._write_answer(self._blocks.separate("answer") + self._markdown(text.strip("\n")))

    def _on_tool_completed(self, step: str, end: ToolCompleted) -> None:
        opened = self._calls.pop(step, end.tool_id)
        about = opened.subject
        changes = self._changes.pop(step, ())
        is_named = [change.path for change in changes] == [about]
        call = CallText(
            step="" if step == LEAD else step,
            tool="$" if end.name == "run_command" else end.name,
            subject=f"{about}{image_labels(end.images)}",
            extent=line_counts(changes[0]) if is_named else "",
            tone="good" if end.status == "ok" else "warn",
            note="" if end.status == "ok" else f"[{end.status}, exit {end.exit_code}]",
        )
        declined = self._take_declined(end.name, about) if end.status == "denied" else None
        if declined:
            call = replace(call, tone="quiet", note=declined_remark(declined, end.output))
        elif end.status == "cancelled":
            call = replace(call, tone="quiet", note="stopped")
        elif opened.is_edited and not call.note:
            call = replace(call, note="(you edited it)")
        work = self._work_lines(step)
        lines = [work.call(call), *self._change_lines(step, changes, is_named=is_named)]
        if not declined and (end.name in COMMAND_TOOLS or end.status != "ok"):
            # For a stopped call, the event contains only the text for the model.
            output = sanitize(opened.output if end.status == "cancelled" else end.display or end.output)
            lines += work.output(call, output, is_command=end.name in COMMAND_TOOLS)
        self._blocks.block("work", lines, owner=step)

    def _take_declined(self, tool: str, about: str) -> ApprovalRequested | None:
        """Return the request that the user declined, if this call made it."""
        # The code of a call is shown without the command that runs it.
        is_code = tool == PYTHON_TOOL
        found = next(
            (r for r in self._declined if (r.tool == tool if is_code else " ".join(r.command.split()) == about)), None
        )
        if found:
            self._declined.remove(found)
        return found

    def _change_lines(self, step: str, changes: tuple[FileChange, ...], *, is_named: bool = False) -> list[str]:
        """Return the diffs of changes; one that the user has just approved was in its card."""
        approved = self._approved_diffs.pop(step, "") if changes else ""
        work = self._work_lines(step)
        return [
            line
            for change in changes
            for line in work.change(
                change, is_named=is_named, is_shown=bool(approved) and change.diff[:_SAME_DIFF_CHARS] in approved
            )
        ]

    def _work_lines(self, step: str) -> WorkLines:
        ids = [planned.id for planned in self.plan.steps]
        return WorkLines(paint=self._paint, width=self._width(), id_cells=widest_id([*ids, step]), folds=self._folds)

    def _on_step_completed(self, step: str, end: StepCompleted) -> None:
        if changed := self._change_lines(step, self._changes.pop(step, ())):
            self._blocks.block("work", changed, owner=step)
        if step != LEAD:
            # The text of the lead is the answer, and its failure the error of the run.
            lines = self._work_lines(step).step_end(step, self.plan.title(step), end)
            self._blocks.block("work", lines, owner=step, is_end=True)

    def _on_run_completed(self, end: RunCompleted) -> None:
        if end.is_error and (not end.result or self._answer.finish(end.result) is None):
            # The run was stopped in the middle of a sentence.
            self._write_markdown(self._answer.pending)
            self._answer = MarkdownStream()
        if end.result and not self._has_answered:
            self._write_result(end.result)
        self._answer = MarkdownStream()
        lines = [line for error in self._errors for line in self._error_lines(error)]
        if end.artifacts:
            lines += self._blocks.wrapped("quiet", f"  wrote {', '.join(map(to_single_line, end.artifacts))}")
        for text in command_change_texts(self._command_changes, end.artifacts):
            lines += self._blocks.wrapped("quiet", f"  {text}")
        if end.will_run:
            lines += self._blocks.wrapped("warn", f"  {WILL_RUN}")
            named = [f"  {text}" for text in runnable_lines(end.will_run)]
            lines += [line for text in named for line in self._blocks.wrapped("quiet", text)]
        parts = [format_duration(end.duration_ms / 1000)]
        parts += [counts] if (counts := self._step_counts(end)) else []
        parts += [format_tokens(end.usage)] if end.usage.total_tokens else []
        parts += [format_cost(end.total_cost_usd)] if end.total_cost_usd else []
        parts += [f"exit {end.exit_code}"] if end.exit_code and not self._is_in_repl else []
        lines.append(self._blocks.clipped("quiet", "· " + " · ".join(parts)))
        if end.resume and not self._can_be_continued_by_talking(end):
            lines += self._blocks.wrapped("quiet", f"  {resume_hint(end.resume, in_repl=self._is_in_repl)}")
        self._blocks.block("end", lines)

    def _can_be_continued_by_talking(self, end: RunCompleted) -> bool:
        """Whether the next request at the prompt continues a run: the lead has answered, and no step is left."""
        is_answered = bool(end.result) and not self.plan.steps and bool(self._errors)
        return self._is_in_repl and is_answered and all(map(shortfall_text, self._errors))

    def _step_counts(self, end: RunCompleted) -> str:
        if self.plan.has_lead and not self.plan.steps:
            return ""
        # The event counts the lead, too.
        lead = self.plan.status(LEAD)
        ok = end.steps.ok - is_success(lead)
        failed = end.steps.failed - (lead not in ("", "running") and not is_success(lead))
        # The event counts cancelled steps as failed; the user stopped them.
        stopped = min(self.plan.count_status("cancelled"), failed)
        # It also counts partial ones as good, although the run reports what they lack.
        partial = min(self.plan.count_status("partial"), ok)
        counts = (("ok", ok - partial), ("partial", partial), ("failed", failed - stopped), ("stopped", stopped))
        return ", ".join(f"{count} {word}" for word, count in counts if count)

    def _error_lines(self, error: ErrorRaised) -> list[str]:
        if decision := decision_text(error):
            return self._blocks.wrapped("quiet", f"  {decision}")
        if self._is_in_repl and (shortfall := shortfall_text(error)):
            return self._blocks.wrapped("quiet", f"  {shortfall}")
        hints = hint_lines(error.hint or "", in_repl=self._is_in_repl)
        wrapped = [line for hint in hints for line in self._blocks.wrapped("quiet", f"  {hint}")]
        return [*self._blocks.wrapped("bad", f"error: {error.message}"), *wrapped]


def _prefix(step: str | None) -> str:
    """Return the name of the step before its line; the lead needs none."""
    return "" if step in (None, LEAD) else f"{step}: "


def _diff_tone(line: str) -> Tone:
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
