"""What a parameter may be given: which module knows, and what is left to the shell."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from cli.completion.command_tree import Parameter

FileKind: TypeAlias = Literal["files", "folders", "plans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionItem:
    """One candidate and what it means."""

    word: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """A parameter whose value is being typed, with what was given before it."""

    path: tuple[str, ...]
    parameter: Parameter
    word: str
    given: Mapping[str, tuple[str, ...]]
    environ: Mapping[str, str]

    def first(self, name: str) -> str:
        """Return what another parameter was given, empty when it was not."""
        return next(iter(self.given.get(name, ())), "")


CompletionSource: TypeAlias = Callable[[CompletionRequest], Iterable[CompletionItem] | FileKind]

# Parameters by name, or by command and name where one name means several things. Each module holds VALUES by these
# names; only the one that is needed is loaded.
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


def values_for(asked: CompletionRequest) -> Iterable[CompletionItem] | FileKind:
    """Return the values of a parameter, or which files the shell shall offer."""
    parameter = asked.parameter
    if parameter.choices:
        return [CompletionItem(word=choice) for choice in parameter.choices]
    names = (" ".join((*asked.path, parameter.name)), parameter.name)
    for name in names:
        if name in FILES:
            return FILES[name]
        if name in SOURCES:
            sources: Mapping[str, CompletionSource] = importlib.import_module(f"cli.completion.{SOURCES[name]}").VALUES
            return sources[name](asked)
    return "files" if parameter.is_path else ()
