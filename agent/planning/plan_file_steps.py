"""Strict parsing of one plan file step: the fields each step type may and must have."""

from collections.abc import Iterator, Mapping
from math import isfinite

from agent.planning.capabilities import Capabilities
from agent.planning.steps import short_title
from agent.vocabulary.plan import LEAD, PlanStep, StepType
from tooling.contract.json_codec import did_you_mean
from tooling.contract.schema_errors import find_schema_error

_ID_CHARS = 64
_TEXT: Mapping[str, object] = {"type": "string"}
_TEXTS: Mapping[str, object] = {"type": "array", "items": _TEXT}
_ALL = ("task", "tool", "ask_user")
_WORK = ("task", "tool")

# Every field with its schema and the step types that have it.
FIELDS: dict[str, tuple[Mapping[str, object], tuple[str, ...]]] = {
    "id": (_TEXT, _ALL),
    "title": (_TEXT, _ALL),
    "type": ({"type": "string", "enum": list(_ALL)}, _ALL),
    "depends_on": (_TEXTS, _ALL),
    "instruction": (_TEXT, ("task",)),
    "expect": (_TEXT, ("task",)),
    "model": (_TEXT, ("task",)),
    "allowed_tools": (_TEXTS, ("task",)),
    "tool": (_TEXT, ("tool",)),
    "args": ({"type": "object"}, ("tool",)),
    "verify": (_TEXT, _WORK),
    "reads": (_TEXTS, _WORK),
    "writes": (_TEXTS, _WORK),
    "profile": (_TEXT, _WORK),
    "timeout_s": ({"type": "number"}, _WORK),
    "ask_question": (_TEXT, ("ask_user",)),
    "ask_options": (_TEXTS, ("ask_user",)),
}
_REQUIRED: dict[StepType, str] = {"task": "instruction", "tool": "tool", "ask_user": "ask_question"}
# Fields in which an empty text is a mistake.
_NEVER_EMPTY = ("id", "title", "instruction", "tool", "ask_question", "model", "profile", "verify", "expect")


class StepReader:
    """Parses the steps of one file in order."""

    def __init__(self, capabilities: Capabilities) -> None:
        self._capabilities = capabilities
        self._numbers: dict[str, int] = {}

    def read(self, raw: object, number: int) -> PlanStep | list[str]:
        """Return the step, or a list of its problems."""
        if not isinstance(raw, Mapping):
            return [f"expected a table of fields, got {raw!r:.60}"]
        step_type = _type(raw)
        step_id = str(raw.get("id", f"step{number}"))
        # Skip problems that follow from others: a misspelled field is not reported as missing too.
        problems = [*_field_problems(raw)] or [*_type_problems(raw, step_type)]
        if not problems:
            problems = [
                *self._id_problems(step_id, number),
                *_value_problems(raw),
                *self._reference_problems(raw, step_type),
            ]
        self._numbers.setdefault(step_id, number)
        return problems or self._build(raw, step_id, step_type)

    def _id_problems(self, step_id: str, number: int) -> Iterator[str]:
        if step_id in self._numbers:
            yield f"id: {step_id!r} is already the id of step {self._numbers[step_id]}"
        if step_id == LEAD:
            yield f"id: {LEAD!r} is the id of the step that works on whole requests"
        if len(step_id) > _ID_CHARS or not all(char.isalnum() or char in "_-." for char in step_id):
            yield f"id: expected at most {_ID_CHARS} letters, digits, dots, _ and -, got {step_id!r}"

    def _reference_problems(self, raw: Mapping[str, object], step_type: StepType) -> Iterator[str]:
        """Find unknown tools and profiles, and arguments that do not fit the tool."""
        tools, profiles = list(self._capabilities.tools), list(self._capabilities.profiles)
        if (profile := raw.get("profile", "default")) not in profiles:
            hint = did_you_mean(str(profile), profiles) or f"; known: {', '.join(profiles)}"
            yield f"profile: unknown profile {profile!r}{hint}"
        for name in _texts(raw, "allowed_tools"):
            if name not in tools:
                yield f"allowed_tools: {_unknown_tool(name, tools)}"
        if step_type != "tool":
            return
        tool, args = str(raw["tool"]), raw.get("args", {})
        if tool not in tools:
            yield f"tool: {_unknown_tool(tool, tools)}"
        elif isinstance(args, Mapping) and (problem := self._capabilities.problem_with_call(tool, args)):
            yield f"{problem} (`agent tools show {tool}`)"

    def _build(self, raw: Mapping[str, object], step_id: str, step_type: StepType) -> PlanStep:
        args, tool, question = raw.get("args"), str(raw.get("tool", "")), raw.get("ask_question")
        arguments = dict(args) if isinstance(args, Mapping) else {}
        instruction = str(raw.get("instruction") or question or _call_title(tool, arguments)).strip()
        written = self._capabilities.written_paths(tool, arguments) if tool and "writes" not in raw else ()
        return PlanStep(
            id=step_id,
            title=" ".join(str(raw.get("title", "")).split()) or short_title(instruction),
            instruction=instruction,
            type=step_type,
            depends_on=tuple(dict.fromkeys(_texts(raw, "depends_on"))),
            reads=_texts(raw, "reads"),
            writes=_texts(raw, "writes") or written,
            allowed_tools=_texts(raw, "allowed_tools") if "allowed_tools" in raw else None,
            profile=str(raw.get("profile", "default")),
            model=str(raw.get("model", "")),
            tool=tool,
            args=arguments,
            expect=str(raw.get("expect", "")),
            verify=str(raw.get("verify", "")),
            timeout_s=float(limit) if isinstance(limit := raw.get("timeout_s"), (int, float)) else None,
            ask_question=None if question is None else str(question),
            ask_options=_texts(raw, "ask_options"),
        )


def _type(raw: Mapping[str, object]) -> StepType:
    """Return the declared type of a step, or the one implied by its fields."""
    match raw.get("type"):
        case "task":
            return "task"
        case "tool":
            return "tool"
        case "ask_user":
            return "ask_user"
    return "tool" if "tool" in raw else "ask_user" if "ask_question" in raw else "task"


def _field_problems(raw: Mapping[str, object]) -> Iterator[str]:
    for name, value in raw.items():
        if name not in FIELDS:
            yield f"unknown field {name}{did_you_mean(name, FIELDS)}"
        elif problem := find_schema_error(value, FIELDS[name][0], name) or _find_unencodable(value, name):
            yield problem
        elif name in _NEVER_EMPTY and not str(value).strip():
            yield f"{name} is empty"


def _type_problems(raw: Mapping[str, object], step_type: StepType) -> Iterator[str]:
    for name in raw:
        kinds = FIELDS[name][1] if name in FIELDS else _ALL
        if step_type not in kinds:
            yield f"{name} is for steps of type {' and '.join(kinds)}; this one is of type {step_type}"
    if (needed := _REQUIRED[step_type]) not in raw:
        others = "; a step without a model has tool, a question has ask_question" if step_type == "task" else ""
        yield f"{needed} is missing{others}"


def _value_problems(raw: Mapping[str, object]) -> Iterator[str]:
    limit = raw.get("timeout_s")
    if isinstance(limit, (int, float)) and limit <= 0:
        yield f"timeout_s: expected more than 0 seconds, got {limit}"
    if len(_texts(raw, "ask_options")) == 1:
        yield "ask_options: give at least two options, or none for a free-text answer"


def _find_unencodable(value: object, location: str) -> str | None:
    """Find values that JSON or UTF-8 cannot represent: TOML dates, infinity and NaN, lone surrogates."""
    if isinstance(value, Mapping):
        inner = (_find_unencodable(item, f"{location}.{name}") for name, item in value.items())
        return next((problem for problem in inner if problem), None)
    if isinstance(value, list):
        inner = (_find_unencodable(item, f"{location}[{number}]") for number, item in enumerate(value, start=1))
        return next((problem for problem in inner if problem), None)
    if isinstance(value, str):
        is_valid = "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
        return None if is_valid else f"{location}: contains an invalid character"
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and isfinite(value)):
        return None
    return f"{location}: expected text, a number, true or false, a list or a table, got {value!r}"


def _unknown_tool(name: str, tools: list[str]) -> str:
    return f"unknown tool {name!r}{did_you_mean(name, tools) or '; see `agent tools list`'}"


def _texts(raw: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = raw.get(name)
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _call_title(tool: str, args: Mapping[str, object]) -> str:
    subject = args.get("command") or args.get("path") or args.get("pattern") or ""
    return str(subject) if tool == "run_command" and subject else f"{tool} {subject}".strip()
