"""Listings of servers, validated and shortened, because a server may claim anything."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.output import sanitize_output
from tooling.safety.hidden_characters import strip_invisible_characters

if TYPE_CHECKING:
    import mcp_types

MAX_TOOLS = 500
MAX_DESCRIPTION_CHARS = 1_500
_MAX_SCHEMA_BYTES = 16_000
_MAX_DEPTH = 12
_MAX_FULL_NAME = 64
# Parameter names that every provider accepts.
_PARAMETER = lazy_pattern(r"^[A-Za-z0-9_.-]{1,64}$")
_EMPTY_SCHEMA: JsonObject = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """One tool of a server; `digest` is a hash of the server's exact description of it."""

    name: str
    description: str
    parameters: JsonObject
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedPrompt:
    """A prompt of a server, which users call as a slash command."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedResource:
    """A resource of a server, by its URI."""

    uri: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """Everything that a server offers, with a problem for each omitted part."""

    tools: tuple[OfferedTool, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    resources: tuple[OfferedResource, ...] = ()
    problems: tuple[str, ...] = ()

    def tool(self, name: str) -> OfferedTool | None:
        """Return a tool by the server's name for it."""
        return next((tool for tool in self.tools if tool.name == name), None)


def full_name(server: str, tool: str) -> str:
    """Return the name of a tool for the model; a long or unusual one gets a hash to stay unique."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    name = f"mcp__{server}__{safe}"
    if safe == tool and len(name) <= _MAX_FULL_NAME:
        return name
    mark = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{name[: _MAX_FULL_NAME - 9]}_{mark}"


def check_tools(server: str, tools: "Iterable[mcp_types.Tool]") -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """Return the usable tools, and the problems of the others."""
    found: dict[str, OfferedTool] = {}
    problems: list[str] = []
    for number, tool in enumerate(tools):
        shown = clean_text(tool.name, 60)
        if number >= MAX_TOOLS:
            problems.append(f"only the first {MAX_TOOLS} tools are used")
            break
        if tool.name in found or not tool.name.strip():
            problems.append(f"the tool {shown!r} is left out: its name is empty or taken")
        elif problem := _schema_problem(tool.input_schema):
            problems.append(f"the tool {shown!r} is left out: {problem}")
        else:
            found[tool.name] = OfferedTool(
                name=tool.name,
                description=clean_text(tool.description or tool.title or shown, MAX_DESCRIPTION_CHARS),
                parameters=_usable_schema(tool.input_schema),
                digest=_digest(tool),
            )
    return tuple(found.values()), tuple(problems)


def check_prompts(prompts: "Sequence[mcp_types.Prompt]") -> tuple[OfferedPrompt, ...]:
    """Return the prompts that can become slash commands."""
    return tuple(
        OfferedPrompt(
            name=prompt.name,
            description=clean_text(prompt.description or prompt.title or "", 200),
            arguments=tuple(
                PromptArgument(name=clean_text(argument.name, 40), is_required=bool(argument.required))
                for argument in prompt.arguments or ()
            ),
        )
        for prompt in prompts[:MAX_TOOLS]
        if re.fullmatch(r"[\w.-]{1,60}", prompt.name)
    )


def check_resources(resources: "Sequence[mcp_types.Resource]") -> tuple[OfferedResource, ...]:
    """Return the resources in the form of a listing."""
    return tuple(
        OfferedResource(
            uri=clean_text(str(resource.uri), 300),
            name=clean_text(resource.name, 100),
            description=clean_text(resource.description or "", 200),
        )
        for resource in resources[:MAX_TOOLS]
    )


def clean_text(text: str, limit: int) -> str:
    """Return a text of a server without control and invisible characters, on one line if short, and not too long."""
    plain = _clean(text).strip()
    return plain if len(plain) <= limit else plain[: limit - 2].rstrip() + " …"


def _digest(tool: "mcp_types.Tool") -> str:
    said = [tool.name, tool.title, tool.description, tool.input_schema]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8", "replace")).hexdigest()


def _usable_schema(schema: Mapping[str, object]) -> JsonObject:
    kept = {key: _clean_value(value) for key, value in schema.items() if key not in ("$schema", "$id")}
    return {**_EMPTY_SCHEMA, **kept}


def _clean_value(value: object) -> object:
    """Return a part of a schema without characters that the user would not see; the model would read them."""
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_value(item) for item in value]
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    return strip_invisible_characters(sanitize_output(text))


def _schema_problem(schema: Mapping[str, object]) -> str:
    """Return why providers would reject a schema; one invalid schema would fail every request of a run."""
    # Imported late: when a server has answered, its SDK has already loaded it.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    if schema.get("type", "object") != "object":
        return "its parameters are not an object"
    if len(json.dumps(schema)) > _MAX_SCHEMA_BYTES:
        return f"its schema is longer than {_MAX_SCHEMA_BYTES:,} bytes"
    if _depth(schema) > _MAX_DEPTH:
        return "its schema is nested too deeply"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or not all(map(_PARAMETER.match, map(str, properties))):
        return "its parameters have names that models cannot use"
    if any(not str(reference).startswith("#") for reference in _references(schema)):
        return "its schema refers to another document"
    try:
        validator_for(dict(schema)).check_schema(dict(schema))
    except SchemaError as error:
        return f"its schema is invalid: {clean_text(error.message, 120)}"
    return ""


def _depth(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _references(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        yield from (item for key, item in value.items() if key in ("$ref", "$dynamicRef"))
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
