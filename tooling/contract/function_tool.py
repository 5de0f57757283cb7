"""`@tool`: a typed async function becomes a tool, with its schema from the signature and the docstring."""

import copy
import dataclasses
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, ClassVar, ParamSpec, get_origin, get_type_hints, overload

from tooling.contract.action import Action, Effect
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import encode, schema_of
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.result import ToolResult
from tooling.contract.tool import AnyTool, Tool, ToolCommand, ToolSpec

P = ParamSpec("P")
# The parameter that the judge examines, by the effect of the call.
_SUBJECTS = {"read": ("path",), "write": ("path",), "execute": ("command",), "web": ("url", "query")}
_ARGUMENTS_HEADING = lazy_pattern(r"^\s*(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_ARGUMENT = lazy_pattern(r"^\s*(?::param\s+)?(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")


class NotATool(TypeError):
    """A function cannot become a tool; the message is the reason."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """Properties that a signature cannot express; without an effect every call needs approval."""

    name: str = ""
    effect: Effect | None = None
    subject: str = ""
    requires_approval: bool = False
    timeout_s: float = 120.0
    commands: tuple[ToolCommand, ...] = ()


@overload
def tool(function: Callable[P, Awaitable[object]], /) -> type[AnyTool]: ...


@overload
def tool(
    *,
    name: str = "",
    effect: Effect | None = None,
    subject: str = "",
    requires_approval: bool = False,
    timeout_s: float = 120.0,
    commands: tuple[ToolCommand, ...] = (),
) -> Callable[[Callable[..., Awaitable[object]]], type[AnyTool]]: ...


def tool(
    function: Callable[..., Awaitable[object]] | None = None,
    /,
    *,
    name: str = "",
    effect: Effect | None = None,
    subject: str = "",
    requires_approval: bool = False,
    timeout_s: float = 120.0,
    commands: tuple[ToolCommand, ...] = (),
) -> type[AnyTool] | Callable[[Callable[..., Awaitable[object]]], type[AnyTool]]:
    """Turn an async function into a tool.

    The parameters are the arguments, the docstring is the description. A parameter of the type ExecCtx gets the context
    of the call and is no argument. `effect` says what a call does; without one, every call needs approval. `subject`
    names the parameter that a call is about: a path, command or URL.
    """
    options = ToolOptions(
        name=name,
        effect=effect,
        subject=subject,
        requires_approval=requires_approval,
        timeout_s=timeout_s,
        commands=commands,
    )
    if function is None:
        return lambda decorated: tool_class(decorated, options)
    return tool_class(function, options)


def tool_class(function: Callable[..., Awaitable[object]], options: ToolOptions) -> type[AnyTool]:
    """Build the tool class of a function. Raises NotATool if its signature does not fit."""
    name = options.name or getattr(function, "__name__", "")
    if not inspect.iscoroutinefunction(function):
        raise NotATool(f"{name} is not an async function")
    hints = get_type_hints(function, include_extras=True)
    description, texts = _parse_docstring(inspect.getdoc(function) or "")
    if not description:
        raise NotATool(f"{name} has no docstring, which tells the model what it does")
    context_name = next((key for key, hint in hints.items() if hint is ExecCtx and key != "return"), "")
    fields = [
        _field(name, parameter, hints, texts)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != context_name
    ]
    params = dataclasses.make_dataclass(f"{name}_params", fields, frozen=True, kw_only=True)
    params.__module__ = function.__module__
    names = [field[0] for field in fields]
    subject = options.subject or next((key for key in _SUBJECTS.get(options.effect or "", ()) if key in names), "")
    if subject and subject not in names:
        raise NotATool(f"{name} has no parameter {subject!r}")
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=_schema(name, params),
        effect=options.effect or "note",
        requires_approval=options.requires_approval or options.effect is None,
        timeout_ms=int(options.timeout_s * 1000),
    )
    return _build_class(function, spec, params, subject, context_name, options.commands)


def _build_class(
    function: Callable[..., Awaitable[object]],
    spec: ToolSpec,
    params: type,
    subject: str,
    context_name: str,
    commands: tuple[ToolCommand, ...],
) -> type[AnyTool]:
    class FunctionTool(Tool[object]):
        """The tool of one function."""

        function: ClassVar[Callable[..., Awaitable[object]]]

        def action(self, given: object, ctx: ExecCtx) -> Action:
            name = self.spec.name
            about = str(getattr(given, subject)) if subject else _describe(name, given)
            return Action(tool=name, effect=spec.effect, subject=about, cwd=ctx.working_dir)

        async def run(self, given: object, ctx: ExecCtx) -> ToolResult:
            values = {field.name: getattr(given, field.name) for field in dataclasses.fields(params)}
            values |= {context_name: ctx} if context_name else {}
            return _as_result(await function(**values))

    FunctionTool.spec, FunctionTool.commands = spec, commands
    FunctionTool.params = params  # type: ignore[misc]
    FunctionTool.function = staticmethod(function)
    FunctionTool.__name__ = FunctionTool.__qualname__ = spec.name
    FunctionTool.__module__, FunctionTool.__doc__ = function.__module__, function.__doc__
    return FunctionTool


def _field(
    tool_name: str, parameter: inspect.Parameter, hints: Mapping[str, object], texts: Mapping[str, str]
) -> tuple[str, object, object]:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise NotATool(f"{tool_name}: the parameter {parameter.name} cannot be given by name")
    if parameter.name not in hints:
        raise NotATool(f"{tool_name}: the parameter {parameter.name} has no type")
    hint = hints[parameter.name]
    if parameter.name in texts and get_origin(hint) is not Annotated:
        hint = Annotated[hint, texts[parameter.name]]
    if parameter.default is parameter.empty:
        return parameter.name, hint, dataclasses.field()
    default = parameter.default
    is_mutable = isinstance(default, (list, dict, set))
    return (
        parameter.name,
        hint,
        dataclasses.field(default_factory=lambda: copy.copy(default))
        if is_mutable
        else dataclasses.field(default=default),
    )


def _schema(name: str, params: type) -> dict[str, object]:
    schema = schema_of(params)
    for key, value in dict(schema["properties"]).items():  # type: ignore[call-overload]
        if not value.keys() - {"description"}:
            raise NotATool(f"{name}: the type of the parameter {key} has no JSON form; use str, int, float, bool, …")
    return schema


def _parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description and the texts of the arguments, under `Args:` or after `:param`."""
    heading = _ARGUMENTS_HEADING.search(text)
    description = text[: heading.start()] if heading else text
    described = text[heading.end() :] if heading else ""
    lines = description.splitlines()
    marked = [line for line in lines if line.lstrip().startswith(":param")]
    description = "\n".join(line for line in lines if not line.lstrip().startswith((":param", ":return")))
    found = [match for line in (*described.splitlines(), *marked) if (match := _ARGUMENT.match(line))]
    return description.strip(), {match[1]: match[2].strip() for match in found}


def _describe(name: str, given: object) -> str:
    values = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}  # type: ignore[arg-type]
    return f"{name} {json.dumps(encode(values), ensure_ascii=False)}" if values else name


def _as_result(value: object) -> ToolResult:
    """Return a function's return value as a result: a text unchanged, other values as JSON."""
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult("Done.")
    return ToolResult(value if isinstance(value, str) else json.dumps(encode(value), ensure_ascii=False))
