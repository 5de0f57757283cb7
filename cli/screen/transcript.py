"""What stays of a run on the screen: every event as finished lines, in order, never drawn twice."""

from collections import deque
from collections.abc import Callable

from agent.protocol.events import (
    ApprovalResolved,
    Envelope,
    ErrorRaised,
    FilesChanged,
    MemoryChanged,
    MessageSaid,
    PlanMade,
    QuestionAnswered,
    RunCompleted,
    RunStarted,
    StepCompleted,
    ToolCompleted,
    ToolStarted,
    WarningRaised,
)
from agent.vocabulary.plan import ANSWER, STREAMING
from agent.vocabulary.status import is_success
from cli.screen.colors import Paint, Tone, clipped_line, shown, wrapped
from cli.screen.diff import diff_lines
from cli.screen.format import amount, money, span, subject
from cli.screen.markdown_stream import MarkdownStream
from cli.screen.plan_board import PlanBoard
from cli.screen.sanitize import readable
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange

_OUTPUT_LINES = 3
_DIFF_LINES = 12
_MOST_FOLDED = 50

Markdown = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A text of which only the beginning stands in the transcript, and what it is."""

    title: str
    text: str


class Transcript:
    """Turns the events of a run into lines for the scrollback; without `markdown` the answer is left to others."""

    def __init__(
        self,
        *,
        write: Callable[[str], None],
        width: Callable[[], int],
        paint: Paint,
        markdown: Markdown | None = None,
        way_to_more: str = "",
    ) -> None:
        self._write = write
        self._width = width
        self._paint = paint
        self._markdown = markdown
        self._calls: dict[tuple[str | None, str], str] = {}
        # Told before the call that made them is over, and shown below it.
        self._changes: dict[str, tuple[FileChange, ...]] = {}
        self._errors: list[ErrorRaised] = []
        self._answer = MarkdownStream()
        self._has_answered = False
        self._is_after_words = False
        self._way_to_more = way_to_more
        self.plan = PlanBoard(paint)
        self.folded: deque[Folded] = deque(maxlen=_MOST_FOLDED)

    @property
    def unfinished(self) -> str:
        """Return the part of the answer that is not whole yet."""
        return self._answer.rest

    def hear(self, envelope: Envelope) -> None:
        """Write what stays of an event."""
        self.plan.hear(envelope)
        match envelope.event:
            case RunStarted(warnings=warnings):
                self._begin(warnings)
            case PlanMade() as plan:
                self._plan(plan)
            case MessageSaid() as said:
                self._say(envelope, said)
            case ToolStarted() as call:
                self._calls[(envelope.step_id, call.tool_id)] = subject(call.input)
            case ToolCompleted() as call:
                self._call(envelope.step_id or "", call)
            case FilesChanged(changes=changes):
                step = envelope.step_id or ""
                self._changes[step] = (*self._changes.get(step, ()), *changes)
            case StepCompleted() as end:
                self._step(envelope.step_id or "", end)
            case RunCompleted() as end:
                self._end(end)
            case _:
                self._small(envelope)

    def _small(self, envelope: Envelope) -> None:
        """Write the events that are one line each."""
        match envelope.event:
            case ApprovalResolved(decision=decision, by=by):
                tone: Tone = "quiet" if decision == "allow" else "warn"
                self._line(tone, f"  {envelope.step_id} {_DECISIONS[decision]} by {by}")
            case QuestionAnswered(answer=answer):
                self._line("quiet", f"  {envelope.step_id} answered: {shown(answer or '') or 'nobody could answer'}")
            case MemoryChanged(action=action, entry=entry):
                self._line("quiet", f"memory {action}{': ' + entry if entry else ''}")
            case WarningRaised(message=message):
                self._words("warn", f"warning: {message}")
            case ErrorRaised() as error:
                # Told at the end of the run, which is near: the answer may still be arriving.
                self._errors.append(error)
            case _:
                pass

    def _begin(self, warnings: tuple[str, ...]) -> None:
        self._calls, self._changes = {}, {}
        self._answer, self._errors = MarkdownStream(), []
        self._has_answered = self._is_after_words = False
        for warning in warnings:
            self._words("warn", f"warning: {warning}")

    def _plan(self, plan: PlanMade) -> None:
        """Draw the plan once it is whole; while it still arrives, the live area shows what runs already."""
        if plan.reason == STREAMING or (plan.reason.startswith(ANSWER) and not plan.diff):
            return
        if plan.diff:
            self._words("strong", f"plan, revision {plan.revision}: {plan.reason}")
            for line in plan.diff.splitlines():
                self._line(_diff_tone(line), f"  {line}")
        for line in self.plan.lines(self._width()):
            self._fact(line)

    def _say(self, envelope: Envelope, said: MessageSaid) -> None:
        """Stream the answer: the composer's words, or those of the only step there is."""
        is_answer = envelope.step_id is None or len(self.plan.steps) == 1
        if said.role != "assistant" or not is_answer or self._markdown is None:
            return
        if said.delta:
            self._blocks(self._answer.feed(said.content))
        elif said.tool_calls:
            self._whole(said.content)
        elif envelope.step_id is None:
            self._whole(said.content)
            self._has_answered = True

    def _whole(self, text: str) -> None:
        """Write what is missing of a text that is now whole."""
        missing = self._answer.finish(text)
        self._answer = MarkdownStream()
        self._blocks(text if missing is None else missing)

    def _blocks(self, text: str) -> None:
        if text.strip() and self._markdown:
            # The words of the model stand apart from what was done.
            self._write("\n" + self._markdown(text.strip("\n")))
            self._is_after_words = True

    def _call(self, step: str, call: ToolCompleted) -> None:
        about = self._calls.pop((step, call.tool_id), "")
        ending = "" if call.status == "ok" else f"  [{call.status}, exit {call.exit_code}]"
        mark = "$" if call.name == "run_command" else call.name
        title = f"{step} {mark} {about}{ending}"
        changes = self._changes.pop(step, ())
        is_named = [change.path for change in changes] == [about]
        extent = _extent(changes[0]) if is_named else ""
        self._line("plain" if call.status == "ok" else "warn", f"  {title}{extent}")
        self._files(changes, is_named=is_named)
        if call.name == "run_command" or call.status != "ok":
            self._output(title, readable(call.display or call.output))

    def _output(self, title: str, output: str) -> None:
        lines = [line for line in output.rstrip().expandtabs().splitlines() if line.strip()]
        # To say that one line is missing would take as much room as the line.
        visible = lines if len(lines) == _OUTPUT_LINES + 1 else lines[:_OUTPUT_LINES]
        for line in visible:
            self._line("quiet", f"      {line}")
        if hidden := len(lines) - len(visible):
            self._fold(hidden, Folded(title=shown(title), text=output))

    def _files(self, changes: tuple[FileChange, ...], *, is_named: bool = False) -> None:
        for change in changes:
            if not is_named:
                self._line("plain", f"    {change.path}{_extent(change)}")
            lines = diff_lines(change.diff.expandtabs())
            for tone, line in lines[:_DIFF_LINES]:
                self._line(tone, f"      {line}")
            if len(lines) > _DIFF_LINES:
                self._fold(len(lines) - _DIFF_LINES, Folded(title=shown(change.path), text=readable(change.diff)))

    def _fold(self, more: int, folded: Folded) -> None:
        self.folded.append(folded)
        self._line("quiet", f"      … {more} more lines{self._way_to_more}")

    def _step(self, step: str, end: StepCompleted) -> None:
        self._files(self._changes.pop(step, ()))
        is_good = is_success(end.status)
        mark = "✓" if end.status == "ok" else "~" if is_good else "✗"
        cost = f", {money(end.cost_usd)}" if end.cost_usd else ""
        tokens = f", {amount(end.usage.total_tokens)} tokens" if end.usage.total_tokens else ""
        checked = {True: ", verified", False: ", check failed", None: ""}[end.verified]
        facts = f"{'' if end.status == 'ok' else end.status + ', '}{span(end.elapsed_ms / 1000)}{tokens}{cost}{checked}"
        why = "" if is_good else f": {end.summary}"
        tone: Tone = "good" if end.status == "ok" else "warn" if is_good else "bad"
        self._words(tone, f"{mark} {step} {self.plan.title(step)} ({facts}){why}")

    def _end(self, end: RunCompleted) -> None:
        if end.result and not self._has_answered:
            self._whole(end.result)
        self._answer = MarkdownStream()
        self._tell_errors()
        for path in end.artifacts:
            self._line("quiet", f"  wrote {path}")
        counts = f"{end.steps.ok} ok" + (f", {end.steps.failed} failed" if end.steps.failed else "")
        parts = [span(end.duration_ms / 1000)]
        parts += [counts] if end.steps.ok or end.steps.failed else []
        parts += [f"{amount(end.usage.total_tokens)} tokens"] if end.usage.total_tokens else []
        parts += [money(end.total_cost_usd)] if end.total_cost_usd else []
        parts += [f"exit {end.exit_code}"] if end.exit_code else []
        self._line("quiet", "· " + " · ".join(parts))
        if end.resume:
            self._words("quiet", f"  go on with: {end.resume}{' (here: /resume)' if self._markdown else ''}")

    def _tell_errors(self) -> None:
        for error in self._errors:
            self._words("bad", f"error: {error.message}")
            for line in (error.hint or "").splitlines():
                self._words("quiet", f"  {line}")

    def _words(self, tone: Tone, text: str) -> None:
        """Write a text that must be read to its end."""
        for line in _hanging(text, self._width()):
            self._fact(self._paint(tone, line))

    def _line(self, tone: Tone, text: str) -> None:
        self._fact(self._paint(tone, clipped_line(text, self._width())))

    def _fact(self, line: str) -> None:
        if self._is_after_words:
            self._write("\n")
            self._is_after_words = False
        self._write(line + "\n")


_DECISIONS = {"allow": "allowed", "deny": "denied", "defer": "put off", "fail": "refused"}


def _hanging(text: str, width: int) -> list[str]:
    """Return a text as lines of which all but the first are set in."""
    lines = wrapped(text, width)
    if len(lines) == 1:
        return lines
    first, *rest = wrapped(text, width - 2)
    return [first, *(f"  {line}" for line in rest)]


def _extent(change: FileChange) -> str:
    return f"  +{change.added_lines} -{change.deleted_lines}"


def _diff_tone(line: str) -> Tone:
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
