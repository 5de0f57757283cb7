"""Shell state while a text is read: variables, functions, current folder, created files, and the result."""

import os.path
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.safety.shell.command import UNKNOWN, Command, Finding, is_unknown, join_path
from tooling.safety.shell.constant_output import Output

if TYPE_CHECKING:
    from tree_sitter import Node

# Every value a variable may have at this point.
Values: TypeAlias = tuple[str, ...]
_MAX_SUBSHELL_DEPTH = 200
_MAX_VALUE_LENGTH = 16_384
_MAX_DIR_STACK = 20
_MAX_FOLDER_LENGTH = 1024
_MAX_COMMANDS = 10_000
_LOOKUP_BUILTINS = frozenset({"source", ".", "hash", "enable"})


@dataclass(slots=True)
class SideEffects:
    """Side effects of the text: files with their content if known, other paths, and aliases.

    `created_at` maps a path to the number of commands read when it was created.
    """

    files: dict[str, str | None] = field(default_factory=dict)
    created_at: dict[str, int] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    command_count: int = 0

    def add_path(self, path: str) -> None:
        """Record a path as created, unless it exists already."""
        if path not in self.created_at and not os.path.lexists(path):
            self.created_at[path] = self.command_count

    def created_before(self, path: str, number: int) -> bool:
        """Return whether the text creates the path before its command of this number."""
        return self.created_at.get(path, number) < number


@dataclass(slots=True)
class ShellReading:
    """The result of reading a shell text, filled in while it is read.

    `assigned` lists all assignments as NAME=value; `depth` is the number of wrappers around the current command.
    """

    commands: list[Command] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    effects: SideEffects = field(default_factory=SideEffects)
    depth: int = 0

    @property
    def changes_lookup(self) -> bool:
        """Whether the text changes which program a name refers to."""
        has_path = any(assignment.startswith(("PATH=", "BASH_CMDS")) for assignment in self.assigned)
        return has_path or any(command.program in _LOOKUP_BUILTINS for command in self.commands)

    @property
    def is_full(self) -> bool:
        """Whether there are more commands than can be judged in bounded time."""
        return len(self.commands) >= _MAX_COMMANDS

    def add_command(self, command: Command) -> None:
        self.commands.append(command)
        self.effects.command_count = len(self.commands)


class Scope:
    """The state of one shell; a subshell inherits its parent's and keeps its own changes."""

    __slots__ = (
        "_parent",
        "arrays",
        "cwd",
        "depth",
        "effects",
        "functions",
        "is_cwd_certain",
        "positional",
        "previous_dirs",
        "variables",
        "version",
    )

    def __init__(self, cwd: str, *, parent: "Scope | None" = None, effects: SideEffects | None = None) -> None:
        self._parent = parent
        self.cwd = cwd
        self.previous_dirs: tuple[str, ...] = parent.previous_dirs if parent else ()
        self.is_cwd_certain: bool = parent.is_cwd_certain if parent else True
        self.effects: SideEffects = parent.effects if parent else effects or SideEffects()
        self.positional: Values | None = parent.positional if parent else ()
        self.depth: int = parent.depth + 1 if parent else 0
        self.variables: dict[str, Values] = {}
        self.arrays: dict[str, Values] = {}
        self.functions: dict[str, Node] = {}
        self.version = 0

    @property
    def is_too_deep(self) -> bool:
        return self.depth > _MAX_SUBSHELL_DEPTH

    def child(self) -> "Scope":
        """Return the scope of a subshell."""
        return Scope(self.cwd, parent=self)

    def value(self, name: str) -> Values | None:
        """Return the possible values of a variable, or None if the text never sets it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            if name in scope.arrays:
                return scope.arrays[name][:1] or ("",)
            scope = scope._parent
        return None

    def array(self, name: str) -> Values | None:
        """Return the elements of an array, or None if the text never sets it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.arrays:
                return scope.arrays[name]
            if name in scope.variables:
                return scope.variables[name]
            scope = scope._parent
        return None

    def function(self, name: str) -> "Node | None":
        """Return the body of a function that the text defines."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.functions:
                return scope.functions[name]
            scope = scope._parent
        return None

    def is_defined(self, name: str) -> bool:
        """Return whether the text defines a function or alias of this name."""
        return name in self.effects.aliases or self.function(name) is not None

    def assign(self, name: str, values: Sequence[str], *, keep_old: bool) -> None:
        """Set a variable; `keep_old` adds to its possible values, as the assignment may be skipped."""
        # `x=$x$x` in a loop grows without bound, so long values become unknown.
        new = tuple(dict.fromkeys(value if len(value) <= _MAX_VALUE_LENGTH else UNKNOWN for value in values))
        old = self.value(name)
        if old is not None and keep_old:
            new = tuple(dict.fromkeys((*old, *new)))
        if old is not None and new != old:
            self.version += 1
        self.variables[name] = new
        self.arrays.pop(name, None)

    def set_array(self, name: str, elements: Values) -> None:
        self.variables.pop(name, None)
        self.arrays[name] = elements
        self.version += 1

    def set_unknown(self, name: str) -> None:
        self.assign(name, (UNKNOWN,), keep_old=False)

    def change_dir(self, target: str) -> None:
        """Change the current folder like `cd`; it becomes uncertain if the target does not exist."""
        self.previous_dirs = (*self.previous_dirs[-_MAX_DIR_STACK:], self.cwd)
        self.cwd = join_path(self.cwd, target) if len(self.cwd) <= _MAX_FOLDER_LENGTH else UNKNOWN
        exists = is_unknown(self.cwd) or self.cwd in self.effects.created_at or _is_dir(self.cwd)
        self.is_cwd_certain = self.is_cwd_certain and exists

    def change_back(self) -> None:
        """Return to the previous folder like `cd -` and `popd`."""
        self.cwd = self.previous_dirs[-1] if self.previous_dirs else UNKNOWN
        self.previous_dirs = self.previous_dirs[:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The surroundings of a statement: its scope, its input, and the receiver of its output."""

    scope: Scope
    stdin: str | None = None
    piped_input: Output | None = None
    has_piped_stdin: bool = False
    output: Output | None = None
    may_skip: bool = False
    is_parallel: bool = False

    @property
    def input(self) -> str | None:
        """Return the text on standard input, if known."""
        return self.piped_input.text if self.piped_input is not None else self.stdin


def _is_dir(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        # The name is longer than the system allows.
        return False
