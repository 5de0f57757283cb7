"""A plan drawn as text: parallel steps, dependencies and the critical path."""

from collections.abc import Collection, Mapping, Sequence

from rich.cells import cell_len

from agent.planning.estimate import total_usd
from agent.planning.graph import critical_path, levels
from agent.vocabulary.plan import PlanStep
from cli.screen.colors import Paint, Tone, clip, to_single_line, wrap
from cli.screen.format import format_cost
from tooling.contract.fast_dataclass import dataclass

MIN_WIDTH, MAX_WIDTH = 40, 200
_ID_CELLS = 20
# Cells between number, rail, mark, id and title.
_GAP_CELLS = 7
_ON_PATH, _OFF_PATH = "●", "○"
# Marks of steps that are running or have ended.
_MARKS: dict[str, tuple[str, Tone]] = {
    "running": ("▶", "accent"),
    "ok": ("✓", "good"),
    "partial": ("✓", "warn"),
    "needs_input": ("?", "warn"),
    "error": ("✗", "bad"),
    "timeout": ("✗", "bad"),
    "blocked": ("✗", "bad"),
    "skipped": ("–", "quiet"),
    "cancelled": ("–", "quiet"),
}
_DONE = ("ok", "skipped", "cancelled")
_KINDS = {"task": "", "tool": "call", "ask_user": "question"}
NO_MODEL = "needs no model"
COST_UNKNOWN = "estimated cost: unknown (the model has no known price)"
COST_FREE = "estimated cost: none (the model is free)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One step and its position in the drawing."""

    step: PlanStep
    number: str
    rail: str
    is_last: bool
    mark: str
    tone: Tone


def graph_lines(
    steps: Sequence[PlanStep],
    *,
    width: int,
    paint: Paint,
    statuses: Mapping[str, str] | None = None,
    max_steps: int | None = None,
    more_hint: str = "",
) -> list[str]:
    """Draw the steps level by level; a rail joins those that can run in parallel.

    With more than `max_steps` only the most relevant ones are drawn, and a last line counts the others.
    """
    width, statuses = min(max(width, MIN_WIDTH), MAX_WIDTH), statuses or {}
    shown = steps if max_steps is None or len(steps) <= max_steps else _most_relevant(steps, statuses, max_steps - 1)
    rows = _rows(steps, statuses, {step.id for step in shown})
    number_cells = max((len(row.number) for row in rows), default=0)
    id_cells = min(max((cell_len(step.id) for step in steps), default=0), _ID_CELLS)
    room = width - number_cells - id_cells - _GAP_CELLS
    lines: list[str] = []
    for row in rows:
        name = clip(row.step.id, id_cells)
        place = paint("quiet", f"{row.number:>{number_cells}} {row.rail}")
        head = f"{place} {paint(row.tone, row.mark)} {paint('accent', name)}"
        below = paint("quiet", f"{'':>{number_cells}} {' ' if row.is_last else '│'}") + " " * (
            id_cells + _GAP_CELLS - 2
        )
        first, *rest = _step_lines(row.step, room, paint)
        lines.append(f"{head}{' ' * (id_cells - cell_len(name))}  {first}".rstrip())
        lines += [f"{below}{line}" for line in rest]
    if len(shown) < len(steps):
        rest_text = _count_rest([step for step in steps if step not in shown], statuses)
        lines += [paint("quiet", line) for line in wrap(f"… {rest_text}{more_hint}", width)]
    return lines


def _most_relevant(steps: Sequence[PlanStep], statuses: Mapping[str, str], room: int) -> list[PlanStep]:
    """Return the most relevant steps: running and failed ones first, then the next ones, then finished ones."""
    level_of = levels(steps)

    def rank(step: PlanStep) -> tuple[int, int]:
        status = statuses.get(step.id, "")
        return (2, -level_of[step.id]) if status in _DONE else (1, level_of[step.id]) if not status else (0, 0)

    return sorted(steps, key=rank)[:room]


def _count_rest(steps: Sequence[PlanStep], statuses: Mapping[str, str]) -> str:
    done = sum(statuses.get(step.id, "") in _DONE for step in steps)
    counts = ((done, "more done"), (len(steps) - done, "to do" if done else "more steps"))
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def summary_lines(steps: Sequence[PlanStep], *, width: int, paint: Paint) -> list[str]:
    """Return the critical path and the estimated cost of a plan."""
    width = min(max(width, MIN_WIDTH), MAX_WIDTH)
    path = critical_path(steps)
    lines: list[str] = []
    if len(path) > 1 and len(path) < len(steps):
        lines += wrap(f"{_ON_PATH} critical path: {' → '.join(path)}", width)
    return [paint("quiet", line) for line in (*lines, *wrap(cost_text(steps), width))]


def cost_text(steps: Sequence[PlanStep]) -> str:
    """Return the estimated cost as text."""
    if not any(step.type == "task" for step in steps):
        return NO_MODEL
    total = total_usd(steps)
    if total is None:
        return COST_UNKNOWN
    if total == 0:
        return COST_FREE
    return f"estimated cost: about {format_cost(total)} for steps of typical size"


def _rows(steps: Sequence[PlanStep], statuses: Mapping[str, str], shown: Collection[str]) -> list[_Row]:
    level_of, path = levels(steps), critical_path(steps)
    rows: list[_Row] = []
    for level in range(max(level_of.values(), default=-1) + 1):
        parallel = [step for step in steps if level_of[step.id] == level and step.id in shown]
        last = len(parallel) - 1
        for index, step in enumerate(parallel):
            not_started: tuple[str, Tone] = (_ON_PATH, "strong") if step.id in path else (_OFF_PATH, "plain")
            mark, tone = _MARKS.get(statuses.get(step.id, ""), not_started)
            rail = "─" if last == 0 else "┌" if index == 0 else "└" if index == last else "│"
            number = str(level + 1) if index == 0 else ""
            rows.append(_Row(step=step, number=number, rail=rail, is_last=index == last, mark=mark, tone=tone))
    return rows


def _step_lines(step: PlanStep, room: int, paint: Paint) -> list[str]:
    """Return title, kind and dependencies on one line if they fit, else the dependencies below."""
    kind = _KINDS[step.type]
    title = clip(f"{step.title} ({kind})" if kind else step.title, room)
    after = to_single_line(f"← {', '.join(step.depends_on)}") if step.depends_on else ""
    if not after:
        return [title]
    if cell_len(title) + 2 + cell_len(after) <= room:
        return [f"{title}  {paint('quiet', after)}"]
    return [title, *(paint("quiet", line) for line in wrap(after, room))]
