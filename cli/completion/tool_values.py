"""Completes tool names and tool arguments."""

from collections.abc import Iterable, Mapping

from agent.config.load import load_settings
from agent.plugins.find import load_full_catalog
from cli.completion.candidates import CompletionItem, CompletionRequest, CompletionSource, FileKind
from tooling.contract.tool import ToolSpec


def _tools(request: CompletionRequest) -> Iterable[CompletionItem]:
    return (CompletionItem(word=spec.name, description=spec.description) for spec in _specs(request))


def _specs(request: CompletionRequest) -> Iterable[ToolSpec]:
    return load_full_catalog(request.environ, load_settings(environ=request.environ).settings).specs


def _arguments(request: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    """Return the arguments of the given tool that are still missing; only paths have candidate values."""
    spec = next((spec for spec in _specs(request) if spec.name == request.first("name")), None)
    given = {word.partition("=")[0].removesuffix(":") for word in request.given.get(request.parameter.name, ())}
    if spec is None or "=" in request.word:
        return "files" if request.word.startswith("path=") else ()
    return [
        CompletionItem(word=f"{name}=", description=str(schema.get("description", schema.get("type", ""))))
        for name, schema in _properties(spec).items()
        if name not in given
    ]


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, object]]:
    properties = spec.parameters.get("properties")
    items = properties.items() if isinstance(properties, Mapping) else ()
    return {str(name): schema for name, schema in items if isinstance(schema, Mapping)}


VALUES: Mapping[str, CompletionSource] = {
    "allow": _tools,
    "deny": _tools,
    "name": _tools,
    "tools call words": _arguments,
}
