"""Tools as candidates: their names, what they take, and rules that name them."""

from collections.abc import Iterable, Mapping

from cli.completion.values import CompletionItem, CompletionRequest, CompletionSource, FileKind
from tooling.contract.tool import ToolSpec
from tooling.tool_catalog import load_catalog


def _tools(asked: CompletionRequest) -> Iterable[CompletionItem]:
    return (CompletionItem(word=spec.name, description=spec.description) for spec in load_catalog().specs)


def _arguments(asked: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    """Return the arguments of the tool that was named, those that are given left out; their values are the person's."""
    spec = next((spec for spec in load_catalog().specs if spec.name == asked.first("name")), None)
    given = {word.partition("=")[0].removesuffix(":") for word in asked.given.get(asked.parameter.name, ())}
    if spec is None or "=" in asked.word:
        return "files" if asked.word.startswith("path=") else ()
    return [
        CompletionItem(word=f"{name}=", description=str(schema.get("description", schema.get("type", ""))))
        for name, schema in _properties(spec).items()
        if name not in given
    ]


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, object]]:
    properties = spec.parameters.get("properties")
    named = properties.items() if isinstance(properties, Mapping) else ()
    return {str(name): schema for name, schema in named if isinstance(schema, Mapping)}


VALUES: Mapping[str, CompletionSource] = {
    "allow": _tools,
    "deny": _tools,
    "name": _tools,
    "tools call words": _arguments,
}
