"""Serialises a plan as a plan file, in editable TOML or in JSON; parsing it yields the same plan."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from agent.vocabulary.plan import PlanStep

_SHORT = 80
_DEFAULTS = PlanStep(id="", title="", instruction="")
# The order of fields in the file.
_FIELDS = (
    "id",
    "title",
    "type",
    "depends_on",
    "instruction",
    "expect",
    "tool",
    "ask_question",
    "ask_options",
    "verify",
    "reads",
    "writes",
    "allowed_tools",
    "profile",
    "model",
    "timeout_s",
    "args",
)
_REDUNDANT_FIELDS = {"task": "", "tool": "instruction", "ask_user": "instruction"}


def json_text(request: str, steps: Sequence[PlanStep]) -> str:
    document = {"request": request, "steps": [_fields(step, steps) for step in steps]}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def toml_text(request: str, steps: Sequence[PlanStep], *, head: Sequence[str] = ()) -> str:
    """Return the plan as TOML, with `head` as leading comments."""
    lines = [f"# {line}".rstrip() for line in head]
    if request:
        lines += [f"request = {toml_value(request)}", ""]
    for step in steps:
        lines += ["[[steps]]", *_toml_step(_fields(step, steps)), ""]
    return "\n".join(lines)


def plan_hash(steps: Sequence[PlanStep]) -> str:
    """Return a hash of the contents of a plan file: the same for a plan, its file, and the plan read from it."""
    return f"sha256:{hashlib.sha256(json_text('', steps).encode('utf-8', 'surrogatepass')).hexdigest()}"


def _fields(step: PlanStep, steps: Sequence[PlanStep]) -> dict[str, object]:
    """Return the fields of a step, without defaults and without dependencies on unknown steps."""
    ids = {other.id for other in steps}
    found: dict[str, object] = {}
    for name in _FIELDS:
        value = getattr(step, name)
        if name == "depends_on":
            value = tuple(dep for dep in value if dep in ids)
        is_needed = name not in ("type", _REDUNDANT_FIELDS[step.type]) and value != getattr(_DEFAULTS, name)
        if is_needed:
            found[name] = _without_nulls(value)
    return found


def _without_nulls(value: object) -> object:
    """Return a value without nulls, which TOML cannot represent and no tool needs."""
    if isinstance(value, Mapping):
        return {str(name): _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _toml_step(fields: Mapping[str, object]) -> list[str]:
    args = fields.get("args")
    lines = [f"{name} = {toml_value(value)}" for name, value in fields.items() if name != "args"]
    if not isinstance(args, Mapping):
        return lines
    inline = f"args = {_inline(args)}"
    if len(inline) <= _SHORT:
        return [*lines, inline]
    return [*lines, "[steps.args]", *(f"{_key(name)} = {toml_value(item)}" for name, item in args.items())]


def toml_value(value: object) -> str:
    """Return a value as TOML; a text of several lines becomes a block."""
    return _block(value) if isinstance(value, str) and "\n" in value else _inline(value)


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(str(name))} = {_inline(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_inline, value))}]"
    if isinstance(value, str):
        return _escape(json.dumps(value, ensure_ascii=False))
    return json.dumps(value)


def _block(text: str) -> str:
    """Return a multi-line text as a TOML multi-line string."""
    lines = (_escape(json.dumps(line, ensure_ascii=False)[1:-1]) for line in text.split("\n"))
    return '"""\n' + "\n".join(lines) + '"""'


def _escape(text: str) -> str:
    return text.replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if is_bare else _escape(json.dumps(name, ensure_ascii=False))
