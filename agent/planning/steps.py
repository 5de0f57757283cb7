"""Builds steps from a planner's raw objects: fills in defaults and makes ids unique."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agent.planning.capabilities import Capabilities
from agent.vocabulary.plan import LEAD, PlanStep, StepType

_TITLE_CHARS = 60
_LONGEST_TITLE = 200
_ID_CHARS = 64
_TYPES: dict[str, StepType] = {"task": "task", "tool": "tool", "ask_user": "ask_user"}
DEFAULT_OPTIONS = ("Yes", "No")
_ALL_TOOLS = "all"
# Every plan ends with an answer; a step that only answers would repeat it.
_ANSWERS = (
    r"(?i)\bfinal (answer|response|reply)\b|^(answer|reply to|respond to|inform|tell) the (user|request|question)\b"
    r"|\b(report|present|return|give|send)\b.*\bto the user\b"
)
_FILE = r"(?i)\bfiles?\b|\b[\w-]+\.[a-z]\w{0,5}\b"


class StepBuilder:
    """Builds steps from raw objects one at a time, as they stream in."""

    def __init__(self, request: str, capabilities: Capabilities | None = None) -> None:
        self._request = request
        self._capabilities = capabilities or Capabilities()
        self._count = 0
        self._ids = {LEAD}

    def build(self, raw: Mapping[str, object]) -> PlanStep:
        """Return the step, with defaults for missing or malformed fields and without unknown names."""
        self._count = number = self._count + 1
        step_id = self._unique_id(_id(raw.get("id")) or f"step{number}")
        step_type = self._type(raw)
        instruction = _text(raw.get("instruction")) or _text(raw.get("description")) or self._default_instruction(raw)
        step = PlanStep(
            id=step_id,
            title=_title(raw.get("title")) or short_title(instruction) or f"Step {number}",
            instruction=instruction,
            type=step_type,
            depends_on=tuple(dict.fromkeys(dep for dep in _ids(raw.get("depends_on")) if dep != step_id)),
            reads=_texts(raw.get("reads")),
            writes=_texts(raw.get("writes")),
            profile=_if_known(self._capabilities.profiles, raw.get("profile")) or "default",
            verify=_text(raw.get("verify")),
            verify_by="model" if _text(raw.get("verify")) else "user",
            timeout_s=_seconds(raw.get("timeout_s")),
        )
        match step_type:
            case "task":
                return self._task(step, raw)
            case "tool":
                return self._call(step, raw)
            case "ask_user":
                return _question(step, raw)

    def _type(self, raw: Mapping[str, object]) -> StepType:
        """Return the declared or implied type; an unknown type or an invalid call becomes a task."""
        declared = _text(raw.get("type") or raw.get("step_type"))
        implied = "tool" if raw.get("tool") else "ask_user" if raw.get("ask_question") else "task"
        step_type = _TYPES.get(declared or implied, "task")
        return "task" if step_type == "tool" and not self._can_call(raw) else step_type

    def _can_call(self, raw: Mapping[str, object]) -> bool:
        tool, args = _text(raw.get("tool")), _args(raw)
        return (
            tool in self._capabilities.tools
            and _is_encodable(args)
            and self._capabilities.problem_with_call(tool, args) is None
        )

    def _default_instruction(self, raw: Mapping[str, object]) -> str:
        """Return the instruction for a step without one."""
        tool = _text(raw.get("tool"))
        return f"Do this: {tool} {json.dumps(_args(raw), ensure_ascii=False)}" if tool else self._request

    def _task(self, step: PlanStep, raw: Mapping[str, object]) -> PlanStep:
        model, tools = _if_known(self._capabilities.models, raw.get("model")), self._tools(raw)
        expect = _text(raw.get("expect"))
        if not model and not expect and tools is None:
            return step
        return replace(step, allowed_tools=tools, model=model, expect=expect)

    def _tools(self, raw: Mapping[str, object]) -> tuple[str, ...] | None:
        """Return the tools that the step names; a list without a known one means none, never all."""
        if raw.get("allowed_tools") is None:
            return None
        named = _texts(raw["allowed_tools"])
        if [name.casefold() for name in named] == [_ALL_TOOLS]:
            return None
        return tuple(name for name in named if name in self._capabilities.tools)

    def _call(self, step: PlanStep, raw: Mapping[str, object]) -> PlanStep:
        tool, args = _text(raw.get("tool")), _args(raw)
        return replace(step, tool=tool, args=args, writes=step.writes or self._capabilities.written_paths(tool, args))

    def _unique_id(self, wanted: str) -> str:
        step_id, suffix = wanted, 2
        while step_id in self._ids:
            step_id, suffix = f"{wanted}-{suffix}", suffix + 1
        self._ids.add(step_id)
        return step_id


def is_answer_only(step: PlanStep) -> bool:
    """Whether a step only reports the results of others, which the final answer does anyway."""
    if step.type != "task" or step.writes or step.verify or not step.depends_on:
        return False
    return bool(re.search(_ANSWERS, step.title)) and not re.search(_FILE, f"{step.title} {step.instruction}")


def fallback_step(request: str) -> PlanStep:
    """Return the single step for a request that could not be planned."""
    return PlanStep(id="step1", title=short_title(request) or "Do the task", instruction=request)


def _question(step: PlanStep, raw: Mapping[str, object]) -> PlanStep:
    options = _texts(raw.get("ask_options") or raw.get("options"))
    return replace(
        step,
        ask_question=_text(raw.get("ask_question")) or step.instruction,
        ask_options=options if len(options) > 1 else DEFAULT_OPTIONS,
    )


def _args(raw: Mapping[str, object]) -> Mapping[str, object]:
    args = raw.get("args", raw.get("arguments"))
    return {str(name): value for name, value in args.items()} if isinstance(args, Mapping) else {}


def _is_encodable(args: Mapping[str, object]) -> bool:
    """Whether arguments are valid JSON and UTF-8: no lone surrogates, no NaN or infinity."""
    try:
        json.dumps(args, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _id(value: object) -> str:
    """Return an id that is safe in file names, answers and command lines."""
    return re.sub(r"[^\w.-]+", "-", _text(value))[:_ID_CHARS].strip("-")


def _title(value: object) -> str:
    return " ".join(_text(value).split())[:_LONGEST_TITLE]


def _ids(value: object) -> Iterable[str]:
    return (step_id for text in _texts(value) if (step_id := _id(text)))


def _if_known(known: Sequence[str], value: object) -> str:
    return text if (text := _text(value)) in known else ""


def _seconds(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if 0 < value < float("inf") else None


def _text(value: object) -> str:
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return ""
    text = str(value)
    # Lone surrogates can be neither sent nor stored.
    return text.strip() if text.isascii() else text.encode("utf-8", "replace").decode().strip()


def _texts(value: object) -> tuple[str, ...]:
    # A planner may write a single item without brackets.
    items: Iterable[object] = value if isinstance(value, list) else (value,)
    return tuple(text for item in items if (text := _text(item)))


def short_title(text: str) -> str:
    """Return the first line of a text, shortened to a title."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
