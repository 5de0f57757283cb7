"""Plan files: a plan written by hand, as TOML or JSON, read strictly; every problem is told with its place."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.planning.capabilities import Capabilities
from agent.planning.graph import find_cycle, topological_order
from agent.planning.plan_file_steps import StepReader
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import FILE, Plan, PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean

_FILE_BYTES = 1_000_000
_KEYS = ("request", "steps")
_MAX_PROBLEMS = 10
_HINT = "docs/running-tasks.md#plan-files has all the fields of a step"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan that was read and found right."""

    request: str
    steps: tuple[PlanStep, ...]

    @property
    def plan(self) -> Plan:
        """Return it as a plan to run."""
        return Plan(steps=topological_order(self.steps), reason=FILE)


class PlanFileError(InputError):
    """A plan file that cannot be run; the message names every problem."""


def read_plan_file(path: Path, means: Capabilities) -> PlanFile:
    """Read a plan file; raises PlanFileError for one that cannot be run as it stands."""
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES + 1)
    except OSError as error:
        raise PlanFileError(f"cannot read the plan file {path}: {error.strerror}") from error
    if len(data) > _FILE_BYTES:
        raise PlanFileError(f"{path} is longer than {_FILE_BYTES} bytes, which is no plan")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PlanFileError(f"{path} is not UTF-8 text") from error
    return parse_plan(text, name=str(path), default_request=path.stem, means=means)


def parse_plan(text: str, *, name: str, default_request: str, means: Capabilities) -> PlanFile:
    """Turn the text of a plan file into steps; `name` is what problems are told with."""
    is_json = name.endswith(".json") or text.lstrip()[:1] == "{"
    table = _from_json(text, name) if is_json else _from_toml(text, name)
    raw_steps = table.get("steps")
    problems = [f"unknown key {key}{did_you_mean(key, list(_KEYS))}" for key in table if key not in _KEYS]
    request = table.get("request", "")
    if not isinstance(request, str):
        problems.append(f"request: expected text, got {request!r}")
    if not problems and not raw_steps:
        problems.append("there are no steps" + ("" if is_json else "; a step begins with a line [[steps]]"))
    elif not isinstance(raw_steps, list) and raw_steps is not None:
        problems.append("steps: expected a list of steps" + ("" if is_json else ", each under a line [[steps]]"))
    steps: list[PlanStep] = []
    if isinstance(raw_steps, list):
        found, more = _steps(raw_steps, means, {} if is_json else _step_lines(text, len(raw_steps)))
        steps, problems = found, problems + more
    if problems:
        raise PlanFileError(_format_problems(name, problems), _HINT)
    return PlanFile(request=str(request).strip() or default_request, steps=tuple(steps))


def _steps(
    raw_steps: Sequence[object], means: Capabilities, lines: Mapping[int, int]
) -> tuple[list[PlanStep], list[str]]:
    reader = StepReader(means)
    steps: list[PlanStep] = []
    problems: list[str] = []
    for number, raw in enumerate(raw_steps, start=1):
        made = reader.read(raw, number)
        if isinstance(made, PlanStep):
            steps.append(made)
            continue
        line = f"line {lines[number]}, " if number in lines else ""
        problems += [f"{line}step {_name(raw, number)}: {problem}" for problem in made]
    if not problems:
        problems = _unknown_dependencies(steps)
    if not problems and (ring := find_cycle(steps)):
        problems = [f"steps wait for each other: {' → '.join(ring)}"]
    return steps, problems


def _unknown_dependencies(steps: Sequence[PlanStep]) -> list[str]:
    ids = [step.id for step in steps]
    return [
        f"step {step.id}: depends_on: there is no step {dep!r}{did_you_mean(dep, ids)}"
        for step in steps
        for dep in step.depends_on
        if dep not in ids
    ]


def _name(raw: object, number: int) -> str:
    step_id = raw.get("id") if isinstance(raw, Mapping) else None
    return f"{number} ({step_id})" if isinstance(step_id, str) and step_id else f"{number}"


def _format_problems(name: str, problems: Sequence[str]) -> str:
    if len(problems) == 1:
        return f"{name}: {problems[0]}"
    shown = [f"  {problem}" for problem in problems[:_MAX_PROBLEMS]]
    if len(problems) > len(shown):
        shown.append(f"  and {len(problems) - len(shown)} more")
    return "\n".join((f"{name} has {len(problems)} problems:", *shown))


def _from_toml(text: str, name: str) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanFileError(f"{name}: not valid TOML: {error}", _HINT) from error


def _from_json(text: str, name: str) -> Mapping[str, object]:
    try:
        value: object = json.loads(text, object_pairs_hook=_reject_duplicates)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(f"{name}: not valid JSON: {error}", _HINT) from error
    if not isinstance(value, Mapping):
        raise PlanFileError(f'{name}: expected an object {{"request": …, "steps": […]}}', _HINT)
    return value


def _reject_duplicates(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return table


def _step_lines(text: str, count: int) -> dict[int, int]:
    """Return the line each step begins at; none when the headers found are not as many as the steps."""
    heads = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if re.match(r"\s*\[\[\s*steps\s*\]\]\s*(#|$)", line)
    ]
    return dict(enumerate(heads, start=1)) if len(heads) == count else {}
