"""What a shell knows while it reads on: variables, functions, the current directory, what the text itself made."""

import os.path
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.safety.shell.command import UNKNOWN, is_unknown
from tooling.safety.shell.constant_output import Output

if TYPE_CHECKING:
    from tree_sitter import Node

# Every value a variable may have at this point.
Values: TypeAlias = tuple[str, ...]
_MAX_DEPTH = 200

_MAX_VALUE_LENGTH = 16_384


def _is_dir(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        # Longer than the system takes: then it is none.
        return False


@dataclass(slots=True)
class SideEffects:
    """What the text itself makes: files with their content where it is known, and since which command what is there."""

    files: dict[str, str | None] = field(default_factory=dict)
    created_at: dict[str, int] = field(default_factory=dict)
    aliases: set[str] = field(default_factory=set)
    command_count: int = 0

    def add_path(self, path: str) -> None:
        """Take note of a path that was not there before."""
        if path not in self.created_at and not os.path.lexists(path):
            self.created_at[path] = self.command_count

    def existed_before(self, path: str, at: int) -> bool:
        """Say whether the text had made the path before a command."""
        return self.created_at.get(path, at) < at


class Scope:
    """One shell's knowledge; a subshell starts with its parent's and keeps its changes to itself."""

    __slots__ = (
        "_parent",
        "arrays",
        "cwd",
        "depth",
        "functions",
        "is_certain",
        "left",
        "made",
        "positional",
        "variables",
        "version",
    )

    def __init__(self, cwd: str, *, parent: "Scope | None" = None, made: SideEffects | None = None) -> None:
        self._parent = parent
        self.cwd = cwd
        self.left: tuple[str, ...] = parent.left if parent else ()
        self.is_certain: bool = parent.is_certain if parent else True
        self.made: SideEffects = parent.made if parent else made or SideEffects()
        self.positional: Values | None = parent.positional if parent else ()
        self.depth: int = parent.depth + 1 if parent else 0
        self.variables: dict[str, Values] = {}
        self.arrays: dict[str, Values] = {}
        self.functions: dict[str, Node] = {}
        self.version = 0

    @property
    def is_too_deep(self) -> bool:
        """Say whether shells are nested beyond what anybody writes."""
        return self.depth > _MAX_DEPTH

    def child(self) -> "Scope":
        """Return the scope of a subshell."""
        return Scope(self.cwd, parent=self)

    def value(self, name: str) -> Values | None:
        """Return what a variable may hold, or None when this text never set it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            if name in scope.arrays:
                return scope.arrays[name][:1] or ("",)
            scope = scope._parent
        return None

    def array(self, name: str) -> Values | None:
        """Return the elements of an array, or None when this text never set it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.arrays:
                return scope.arrays[name]
            if name in scope.variables:
                return scope.variables[name]
            scope = scope._parent
        return None

    def function(self, name: str) -> "Node | None":
        """Return the body of a function that the text defined."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope._parent
        return None

    def is_defined(self, name: str) -> bool:
        """Say whether the text defined a command of that name, as a function or an alias."""
        return name in self.made.aliases or self.function(name) is not None

    def assign(self, name: str, values: Sequence[str], *, may_keep: bool) -> None:
        """Set a variable; where the assignment may not happen, the old values stay possible."""
        # A text that doubles itself grows beyond all bounds; what is too long to follow is unknown.
        new = tuple(dict.fromkeys(value if len(value) <= _MAX_VALUE_LENGTH else UNKNOWN for value in values))
        old = self.value(name)
        if old is not None and may_keep:
            new = tuple(dict.fromkeys((*old, *new)))
        if old is not None and new != old:
            self.version += 1
        self.variables[name] = new
        self.arrays.pop(name, None)

    def set_array(self, name: str, elements: Values) -> None:
        """Set a variable to a list."""
        self.variables.pop(name, None)
        self.arrays[name] = elements
        self.version += 1

    def set_unknown(self, name: str) -> None:
        """Take note that a variable now holds something unknown."""
        self.assign(name, (UNKNOWN,), may_keep=False)

    def change_dir(self, target: str) -> None:
        """Change the directory, as `cd` does."""
        self.left = (*self.left[-20:], self.cwd)
        self.cwd = join_path(self.cwd, target)
        is_there = is_unknown(self.cwd) or self.cwd in self.made.created_at or _is_dir(self.cwd)
        self.is_certain = self.is_certain and is_there

    def change_back(self) -> None:
        """Return to the directory before, as `cd -` and `popd` do."""
        self.cwd = self.left[-1] if self.left else UNKNOWN
        self.left = self.left[:-1]


@lru_cache(maxsize=4096)
def join_path(cwd: str, path: str) -> str:
    """Return a path seen from a directory, without dots; home stays `~`, the unknown stays unknown."""
    if path.startswith(("/", "~")):
        whole = path
    elif path.startswith(UNKNOWN) or cwd == UNKNOWN:
        return UNKNOWN
    else:
        whole = f"{cwd}/{path}"
    if whole.startswith("~"):
        head, _, rest = whole.partition("/")
        inside = os.path.normpath(rest) if rest else "."
        # Above home there is nothing of ours.
        return "/" if inside.startswith("..") else head if inside == "." else f"{head}/{inside}"
    normal = os.path.normpath(whole)
    return normal[1:] if normal.startswith("//") else normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a statement stands: its shell, what it reads, who reads what it prints."""

    scope: Scope
    stdin: str | None = None
    piped_input: Output | None = None
    has_piped_stdin: bool = False
    output: Output | None = None
    may_skip: bool = False
    is_parallel: bool = False

    @property
    def input(self) -> str | None:
        """Return the text that comes in, where it is known."""
        return self.piped_input.text if self.piped_input is not None else self.stdin
