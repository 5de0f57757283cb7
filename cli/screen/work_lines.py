"""Lines about calls, changes and steps: columns and colors distinguish mark, step, tool and subject."""

from collections.abc import Sequence

from rich.cells import cell_len

from agent.protocol.events import StepCompleted
from agent.vocabulary.status import is_success
from cli.screen.blocks import Folds, split_fold, wrap_hanging
from cli.screen.colors import Paint, Tone, clip, clip_line, paint_parts, to_single_line
from cli.screen.diff import DiffLine, diff_lines
from cli.screen.format import format_cost, format_duration, format_tokens
from cli.screen.sanitize import sanitize
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange

_BODY = "    "
_OUTPUT_LINES = 3
_DIFF_HEAD, _DIFF_TAIL = 9, 3
_MIN_TITLE = 20
# In a narrower window, columns do not help.
_NARROW = 32
MAX_ID_CELLS = 16
CALL_MARK = "•"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallText:
    """The text of a call's line; `step` is empty for the lead, `note` describes an unsuccessful end."""

    step: str
    tool: str
    subject: str
    extent: str = ""
    note: str = ""
    tone: Tone = "good"

    @property
    def title(self) -> str:
        """The line as plain text."""
        return " ".join(to_single_line(part) for part in (self.step, self.tool, self.subject, self.note) if part)


class WorkLines:
    """Renders lines that fit the window; `id_cells` is the width of the column of step ids."""

    def __init__(self, *, paint: Paint, width: int, id_cells: int, folds: Folds) -> None:
        self._paint = paint
        self._width = width
        self._id_cells = min(id_cells, MAX_ID_CELLS, max(4, width // 4))
        self._folds = folds

    def call(self, call: CallText) -> str:
        """Return the line of a call: a mark, its step, its tool, its subject."""
        note = f"  {call.note}" if call.note else ""
        note_tone: Tone = "quiet" if call.tone in ("quiet", "good") else call.tone
        subject = to_single_line(call.subject)
        if note:
            # The note about the end of a call matters more than the end of its subject.
            used = cell_len(f"{CALL_MARK} {self._id(call.step)}{call.tool} ") + cell_len(note) + cell_len(call.extent)
            subject = clip(subject, max(self._width // 3, self._width - used))
        parts: tuple[tuple[Tone, str], ...] = (
            (call.tone, f"{CALL_MARK} "),
            ("accent", self._id(call.step)),
            ("strong", call.tool),
            ("plain", f" {subject}" if subject else ""),
            ("quiet", call.extent),
            (note_tone, note),
        )
        return paint_parts(self._paint, self._width, *parts)

    def output(self, call: CallText, text: str, *, is_command: bool) -> list[str]:
        """Return the end of an output, which contains its result or error; other tools start with the error."""
        lines = [line for line in text.rstrip().expandtabs().splitlines() if line.strip()]
        head = 0 if is_command else 1
        start, end = split_fold(len(lines), head=head, tail=_OUTPUT_LINES - head)
        shown = [self._body("quiet", line) for line in lines]
        if start < end:
            above = " above" if is_command else ""
            hint = self._folds.add(call.title, text)
            shown[start:end] = [
                self._body("quiet", f"… {end - start} {'lines above' if above else 'more lines'}{hint}")
            ]
        return shown

    def change(self, change: FileChange, *, is_named: bool, is_shown: bool) -> list[str]:
        """Return the diff of a change, its name first unless the line above has it; only the name if it was shown."""
        name = [] if is_named else [self._body("strong", f"{change.path}{line_counts(change)}")]
        if is_shown:
            return name
        lines = diff_lines(change.diff.expandtabs())
        start, end = split_fold(len(lines), head=_DIFF_HEAD, tail=_DIFF_TAIL)
        shown = [self._diff_line(line) for line in lines]
        if start < end:
            hint = self._folds.add(to_single_line(change.path), sanitize(change.diff))
            shown[start:end] = [self._body("quiet", f"… {end - start} more lines{hint}")]
        return [*name, *shown]

    def step_end(self, step: str, title: str, end: StepCompleted) -> list[str]:
        """Return the line of a finished step; a failed one includes the reason."""
        is_good = is_success(end.status)
        mark = "✓" if end.status == "ok" else "~" if is_good else "–" if end.status in _CALM else "✗"
        tone: Tone = "good" if end.status == "ok" else "warn" if is_good else "quiet" if mark == "–" else "bad"
        head = f"{mark} {self._id(step)}"
        room = self._width - cell_len(head) - 2
        facts = _facts(end)
        while len(facts) > 1 and room - cell_len(", ".join(facts)) - 4 < min(_MIN_TITLE, cell_len(title)):
            facts.pop()
        known = f"({', '.join(facts)})"
        why = [] if is_good or not end.summary else wrap_hanging(f"{_BODY}{end.summary}", self._width, _BODY)
        reason = [self._paint(_why_tone(tone), line) for line in why]
        if self._width < _NARROW:
            ended = wrap_hanging(f"{mark} {step} {title} {known}", self._width)
            return [*(self._paint(tone, line) for line in ended), *reason]
        shown = clip(title, max(_MIN_TITLE // 2, room - cell_len(known)))
        parts: tuple[tuple[Tone, str], ...] = (
            (tone, f"{mark} "),
            ("accent", self._id(step)),
            ("plain", shown),
            ("quiet", f" {known}"),
        )
        return [paint_parts(self._paint, self._width, *parts), *reason]

    def _id(self, step: str) -> str:
        if not step:
            return ""
        name = clip(step, self._id_cells)
        return f"{name}{' ' * (self._id_cells - cell_len(name))} "

    def _body(self, tone: Tone, line: str) -> str:
        return self._paint(tone, clip_line(f"{_BODY}{line}", self._width))

    def _diff_line(self, line: DiffLine) -> str:
        gutter: Tone = line.tone if line.tone != "plain" else "quiet"
        return paint_parts(self._paint, self._width, ("quiet", _BODY), (gutter, line.gutter), (line.tone, line.text))


_CALM = ("skipped", "cancelled")


def line_counts(change: FileChange) -> str:
    """Return the numbers of lines that a change adds and removes."""
    return f"  +{change.added_lines} -{change.deleted_lines}"


def widest_id(steps: Sequence[str]) -> int:
    """Return the width of the column that holds these ids."""
    return max((cell_len(to_single_line(step)) for step in steps), default=0)


def _facts(end: StepCompleted) -> list[str]:
    """Return the facts about the end of a step, the most important first."""
    return [
        *([] if end.status == "ok" else [end.status]),
        format_duration(end.elapsed_ms / 1000),
        *([] if end.verified is None else ["verified" if end.verified else "check failed"]),
        *([format_tokens(end.usage)] if end.usage.total_tokens else []),
        *([format_cost(end.cost_usd)] if end.cost_usd else []),
    ]


def _why_tone(tone: Tone) -> Tone:
    return "quiet" if tone == "quiet" else "plain"
