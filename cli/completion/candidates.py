"""Finds the candidate values of a parameter: the module that provides them, or a completion by the shell."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cli.completion.command_tree import Parameter

FileKind: TypeAlias = Literal["files", "folders", "plans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionItem:
    """One candidate with its description."""

    word: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """A parameter whose value is being typed, and the values given before it."""

    path: tuple[str, ...]
    parameter: Parameter
    word: str
    given: Mapping[str, tuple[str, ...]]
    environ: Mapping[str, str]

    def first(self, name: str) -> str:
        """Return the first value of another parameter, or an empty string."""
        return next(iter(self.given.get(name, ())), "")


CompletionSource: TypeAlias = Callable[[CompletionRequest], Iterable[CompletionItem] | FileKind]

# Parameters by name, or by command and name where a name is ambiguous. Each module has a table VALUES with these keys;
# only the module that is needed is loaded.
SOURCES: Mapping[str, str] = {
    "session": "session_values",
    "sessions": "session_values",
    "resume": "session_values",
    "finish": "session_values",
    "run": "session_values",
    "step": "session_values",
    "steps": "session_values",
    "types": "session_values",
    "model": "model_values",
    "planner_model": "model_values",
    "profile": "setting_values",
    "assignments": "setting_values",
    "key": "setting_values",
    "value": "setting_values",
    "backend": "setting_values",
    "approval_mode": "setting_values",
    "mode": "setting_values",
    "reasoning": "setting_values",
    "replan": "setting_values",
    "on_approval": "setting_values",
    "rules rm words": "setting_values",
    "allow": "tool_values",
    "deny": "tool_values",
    "name": "tool_values",
    "tools call words": "tool_values",
}
FILES: Mapping[str, FileKind] = {
    "cwd": "folders",
    "add_dirs": "folders",
    "project": "folders",
    "plan": "plans",
    "save": "plans",
    "exec words": "files",
}


def values_for(request: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    """Return the candidates for a parameter, or the kind of files that the shell completes."""
    parameter = request.parameter
    if parameter.choices:
        return [CompletionItem(word=choice) for choice in parameter.choices]
    names = (" ".join((*request.path, parameter.name)), parameter.name)
    for name in names:
        if name in FILES:
            return FILES[name]
        if name in SOURCES:
            sources: Mapping[str, CompletionSource] = importlib.import_module(f"cli.completion.{SOURCES[name]}").VALUES
            return sources[name](request)
    return "files" if parameter.is_path else ()
