"""Plan files: hand-written plans in TOML or JSON, parsed strictly; every problem is reported with its location."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.planning.capabilities import Capabilities
from agent.planning.graph import find_cycle, topological_order
from agent.planning.plan_file_steps import StepReader
from agent.planning.table_file import TableFormat
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import FILE, Plan, PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean

_KEYS = ("request", "steps")
_MAX_PROBLEMS = 10
HINT = "see docs/running-tasks.md#plan-files for all fields of a step"
NO_STEPS = "the plan has no steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A valid plan file."""

    request: str
    steps: tuple[PlanStep, ...]

    @property
    def plan(self) -> Plan:
        """The plan to run."""
        return Plan(steps=topological_order(self.steps), reason=FILE)


class PlanFileError(InputError):
    """An invalid plan file; the message lists the problems."""


_FORMAT = TableFormat(kind="plan file", example='{"request": …, "steps": […]}', hint=HINT, error=PlanFileError)


def read_plan_file(path: Path, capabilities: Capabilities) -> PlanFile:
    """Read a plan file; raises PlanFileError if it is invalid."""
    text = _FORMAT.read(path)
    return parse_plan(text, name=str(path), default_request=path.stem, capabilities=capabilities)


def parse_plan(text: str, *, name: str, default_request: str, capabilities: Capabilities) -> PlanFile:
    """Parse the text of a plan file; `name` is the file name in error messages."""
    table, is_json = _FORMAT.parse(text, name)
    raw_steps = table.get("steps")
    problems = [f"unknown key {key}{did_you_mean(key, list(_KEYS))}" for key in table if key not in _KEYS]
    request = table.get("request", "")
    if not isinstance(request, str):
        problems.append(f"request: expected text, got {request!r}")
    if not problems and not raw_steps:
        problems.append(NO_STEPS + ("" if is_json else "; a step starts with a [[steps]] line"))
    elif not isinstance(raw_steps, list) and raw_steps is not None:
        problems.append("steps: expected a list of steps" + ("" if is_json else ", each under a [[steps]] line"))
    steps: list[PlanStep] = []
    if isinstance(raw_steps, list):
        lines = {} if is_json else _step_lines(text, len(raw_steps))
        steps, step_problems = _parse_steps(raw_steps, capabilities, lines)
        problems += step_problems
    if problems:
        raise PlanFileError(_format_problems(name, problems), HINT)
    return PlanFile(request=str(request).strip() or default_request, steps=tuple(steps))


def _parse_steps(
    raw_steps: Sequence[object], capabilities: Capabilities, lines: Mapping[int, int]
) -> tuple[list[PlanStep], list[str]]:
    reader = StepReader(capabilities)
    steps: list[PlanStep] = []
    problems: list[str] = []
    for number, raw in enumerate(raw_steps, start=1):
        step = reader.read(raw, number)
        if isinstance(step, PlanStep):
            steps.append(step)
            continue
        line = f"line {lines[number]}, " if number in lines else ""
        problems += [f"{line}step {_label(raw, number)}: {problem}" for problem in step]
    if not problems:
        problems = _unknown_dependencies(steps)
    if not problems and (cycle := find_cycle(steps)):
        problems = [f"dependency cycle: {' → '.join(cycle)}"]
    return steps, problems


def _unknown_dependencies(steps: Sequence[PlanStep]) -> list[str]:
    ids = [step.id for step in steps]
    return [
        f"step {step.id}: depends_on: unknown step {dep!r}{did_you_mean(dep, ids)}"
        for step in steps
        for dep in step.depends_on
        if dep not in ids
    ]


def _label(raw: object, number: int) -> str:
    step_id = raw.get("id") if isinstance(raw, Mapping) else None
    return f"{number} ({step_id})" if isinstance(step_id, str) and step_id else f"{number}"


def _format_problems(name: str, problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return f"{name}: {problems[0]}"
    shown = [f"  {problem}" for problem in problems[:_MAX_PROBLEMS]]
    if len(problems) > len(shown):
        shown.append(f"  and {len(problems) - len(shown)} more")
    return "\n".join((f"{name} has {len(problems)} problems:", *shown))


def _step_lines(text: str, count: int) -> dict[int, int]:
    """Return the line where each step starts; empty if the number of headers found is not `count`."""
    headers = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if re.match(r"\s*\[\[\s*steps\s*\]\]\s*(#|$)", line)
    ]
    return dict(enumerate(headers, start=1)) if len(headers) == count else {}
