"""Cards of approvals and questions: the exact action, the reason, and its diff, folded if it is long."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from rich.cells import cell_len, chop_cells

from agent.protocol.events import MANIFEST_TOOL, ApprovalRequested, QuestionAsked
from agent.vocabulary.plan import LEAD
from cli.screen.blocks import split_fold, wrap_hanging
from cli.screen.colors import Paint, wrap_lines
from cli.screen.diff import DiffLine, diff_lines
from cli.screen.format import COMMAND_TOOL, COMMAND_TOOLS
from tooling.contract.action import Opinion
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.hidden_characters import escape_hidden

InputRequest: TypeAlias = ApprovalRequested | QuestionAsked

# The user may change the command or the grants.
EDITABLE_TOOLS = (COMMAND_TOOL, MANIFEST_TOOL)
_DEFAULT_REASON = "it changes a file in your folder (mode auto-edit does not ask)"
_OPINIONS = {"allow": "looks fine.", "ask": "needs a closer look.", "deny": "should not run."}
_INDENT = "    "
# Rows of a window besides the diff: the request, the reasons, the keys, the steps and the prompt.
_OTHER_ROWS = 16
_MIN_DIFF_ROWS, _MAX_DIFF_ROWS = 8, 40
_TAIL_SHARE = 3
_PLAIN_WIDTH = 100
VIEW_HINT = "[v] shows all"
_CONTINUATION = "  │ "
# Longer commands do not fit a window together with the question below them.
_MAX_CHARS, _MAX_LINES = 1000, 12
_SPACES = lazy_pattern(" {20,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRenderer:
    """Draws cards for a window; `full_text` returns folded parts."""

    paint: Paint
    width: int
    rows: int

    def lines(self, request: InputRequest, *, step: str = "", folds: bool = True) -> list[str]:
        """Return the card; `step` is the step that asks. Nothing is folded if the whole diff fits."""
        name = self.paint("accent", f"{escape_hidden(step)}: ") if step else ""
        if isinstance(request, QuestionAsked):
            first, *rest = question_lines(request, self.width - cell_len(step) - 2 if step else self.width)
            return [name + self.paint("warn", first), *rest]
        if request.tool == MANIFEST_TOOL:
            return [self.paint("warn", "allow all of this for the plan?"), *self._sheet(request), *self._facts(request)]
        first, *rest = command_lines(request.command)
        tool = "" if request.tool in (None, COMMAND_TOOL) else f"{escape_hidden(request.tool or '')} "
        return [
            f"{name}{self.paint('warn', 'allow this?')}  {self.paint('strong', f'{tool}{first}')}",
            *rest,
            *self._facts(request),
            *(self._diff_of(request) if folds else self._diff(request.diff, None)),
        ]

    def full_text(self, request: ApprovalRequested) -> str:
        """Return the complete request, for a pager."""
        is_command = request.tool in COMMAND_TOOLS
        whole = [*command_lines(request.command)] if is_command else [escape_hidden(request.command)]
        lines = [self.paint("strong", whole[0]), *whole[1:], *self._facts(request), ""]
        return "\n".join([*lines, *self._diff(request.diff, None)]) + "\n"

    def is_folded(self, request: InputRequest) -> bool:
        """Whether the card does not show everything at once."""
        if isinstance(request, QuestionAsked):
            return False
        return is_long_command(request.command) or any(VIEW_HINT in line for line in self._diff_of(request))

    def _sheet(self, request: ApprovalRequested) -> list[str]:
        """Return the manifest of a plan, without the number of its format."""
        lines = [line for line in request.command.rstrip("\n").split("\n") if not line.startswith("version = ")]
        return [f"{_INDENT}{escape_hidden(line)}" for line in lines]

    def _diff_of(self, request: ApprovalRequested) -> list[str]:
        rows = min(max(self.rows - _OTHER_ROWS, _MIN_DIFF_ROWS), _MAX_DIFF_ROWS)
        return self._diff(request.diff, rows)

    def _facts(self, request: ApprovalRequested) -> list[str]:
        reason = f"  because {escape_hidden(request.reason) or _DEFAULT_REASON}"
        involved = [f"  it {escape_hidden(part)}" for part in _worth_saying(request)]
        return [
            self.paint("quiet", f"  in {escape_hidden(request.cwd)}"),
            *wrap_hanging(reason, self.width, "  "),
            *(self.paint("quiet", line) for line in involved),
            *(wrap_hanging(opinion_text(request.opinion), self.width, "  ") if request.opinion else ()),
        ]

    def _diff(self, diff: str | None, max_rows: int | None) -> list[str]:
        """Return the head and the tail of a diff, with long lines wrapped: lines to be approved are never truncated."""
        lines = diff_lines(diff.expandtabs()) if diff else []
        shown = [self._diff_line(line) for line in lines]
        start, end = _hidden_lines([len(pieces) for pieces in shown], max_rows)
        if start < end:
            shown[start:end] = [[self.paint("quiet", f"{_INDENT}… {end - start} more lines; {VIEW_HINT}")]]
        return [piece for pieces in shown for piece in pieces]

    def _diff_line(self, line: DiffLine) -> list[str]:
        room = max(10, self.width - len(_INDENT) - len(line.gutter))
        first, *rest = chop_cells(escape_hidden(line.text), room) or [""]
        continued = " " * len(line.gutter)
        texts = [f"{line.gutter}{first}", *(f"{continued}{piece}" for piece in rest)]
        return [_INDENT + self.paint(line.tone, text) for text in texts]


def _worth_saying(request: ApprovalRequested) -> tuple[str, ...]:
    """Return what a command involves; that `rm x` runs rm can be seen."""
    involved = request.involves or ()
    program = request.command.split(maxsplit=1)[0] if request.command.strip() else ""
    return () if involved == (f"runs {program}",) else involved


def command_lines(command: str) -> list[str]:
    """Return all lines of a command, continuation lines behind a bar; a long command ends with its size."""
    lines = [_SPACES.sub(_count_spaces, escape_hidden(line)) for line in command.split("\n")]
    shown = [lines[0], *(f"{_CONTINUATION}{line}" for line in lines[1:])]
    return [*shown, size_note(len(lines), len(command))] if is_long_command(command) else shown


def is_long_command(command: str) -> bool:
    """Whether a command fills a window."""
    return command.count("\n") >= _MAX_LINES or len(command) > _MAX_CHARS


def size_note(lines: int, chars: int) -> str:
    """Return the last line of a long command."""
    extent = f"{lines:,} lines, " if lines > 1 else ""
    return f"  {extent}{chars:,} characters: scroll up to read from the start"


def _count_spaces(spaces: re.Match[str]) -> str:
    # A long run of spaces would push the rest of the command out of sight.
    return f" [{len(spaces[0])} spaces] "


def opinion_text(opinion: Opinion) -> str:
    """Return a reviewer's opinion as one line."""
    return escape_hidden(f"  reviewer: {_OPINIONS[opinion.verdict]} {opinion.text}".rstrip())


def question_lines(request: QuestionAsked, width: int) -> list[str]:
    """Return a question and its numbered options, wrapped between words."""
    question = wrap_lines("\n".join(map(escape_hidden, request.question.split("\n"))), width)
    options = [f"  {n}. {escape_hidden(option)}" for n, option in enumerate(request.options, 1)]
    return [*question, *(line for option in options for line in wrap_hanging(option, width, "     "))]


def join_keys(keys: Sequence[str], width: int, gap: str = " ") -> list[str]:
    """Return the keys in as few lines as possible; a key stays with its description."""
    lines = [""]
    for key in keys:
        longer = f"{lines[-1]}{gap}{key}" if lines[-1] else key
        lines = [*lines[:-1], longer] if cell_len(longer) <= width else [*lines, key]
    return [line for line in lines if line]


def rule_text(request: ApprovalRequested) -> str:
    """Return the rule that would be saved, quoted."""
    return f"'{escape_hidden(request.rule)}'"


def can_store_rule(request: ApprovalRequested) -> bool:
    return bool(request.rule)


def _hidden_lines(heights: Sequence[int], max_rows: int | None) -> tuple[int, int]:
    """Return the range of hidden lines, so that the others fit into `max_rows`."""
    if max_rows is None or sum(heights) <= max_rows + 1:
        return 0, 0
    tail_rows = max_rows // _TAIL_SHARE
    head = sum(used <= max_rows - tail_rows for used in accumulate(heights))
    tail = sum(used <= tail_rows for used in accumulate(reversed(heights)))
    return split_fold(len(heights), head=head, tail=tail)


def card_text(request: InputRequest, *, step: str) -> str:
    """Return the text that a terminal shows, complete and without colors."""
    renderer = CardRenderer(paint=Paint(has_color=False), width=_PLAIN_WIDTH, rows=_PLAIN_WIDTH)
    return "\n".join(renderer.lines(request, step="" if step == LEAD else step, folds=False))
