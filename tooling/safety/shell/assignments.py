"""Read assignments: plain, `+=`, arrays, and those of `export`, `declare` and similar builtins."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tooling.safety.shell.command import HIDDEN, UNKNOWN
from tooling.safety.shell.state import Scope
from tooling.safety.shell.words import WordReader, node_text

if TYPE_CHECKING:
    from tree_sitter import Node


class AssignmentReader:
    """Reads assignment nodes and appends each to `assigned` as NAME=value."""

    def __init__(self, words: WordReader, assigned: list[str]) -> None:
        self._words = words
        self._assigned = assigned

    def values(self, node: "Node", scope: Scope) -> Iterator[tuple[str, list[str]]]:
        """Yield the variable an assignment sets, with its possible values."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None:
            return
        variable = node_text(name).partition("[")[0]
        if name.type == "subscript":
            self._words.visit(name, scope)
        if value is None:
            values = [""]
        elif value.type == "array":
            values = [field for child in value.named_children for field in self._words.fields((child,), scope)]
        else:
            values = self._words.texts(value, scope)
        self._assigned += [f"{variable}={text}" for text in values]
        yield variable, values

    def assign(self, node: "Node", scope: Scope, *, may_skip: bool) -> None:
        """Perform an assignment; if it may be skipped, the old values stay possible."""
        value = node.child_by_field_name("value")
        is_added = any(child.type == "+=" for child in node.children)
        for name, values in self.values(node, scope):
            old = scope.array(name)
            if value is not None and value.type == "array":
                scope.set_array(name, (*(old or () if is_added or may_skip else ()), *values))
            elif "[" in node_text(node).partition("=")[0]:
                scope.set_array(name, (*(old or ()), *values))
            elif is_added and old is not None:
                scope.assign(name, [f"{head}{tail}" for head in old for tail in values], keep_old=may_skip)
            else:
                scope.assign(name, values, keep_old=may_skip)

    def declare(self, node: "Node", scope: Scope, *, may_skip: bool) -> tuple[str, ...]:
        """Perform `export`, `declare` or `unset`, and return its words."""
        words: list[str] = []
        is_nameref = False
        for child in node.children:
            if child.type == "variable_assignment":
                self.assign(child, scope, may_skip=may_skip)
                name = node_text(child).partition("=")[0]
                words.append(f"{name}={UNKNOWN}")
                if is_nameref:
                    # With `declare -n` the name refers to another variable, which any assignment to it changes.
                    self._assigned += [f"{target}={HIDDEN}" for target in scope.value(name) or ()]
                    scope.assign(name, (HIDDEN,), keep_old=False)
            elif not child.type.endswith("redirect"):
                fields = self._words.fields((child,), scope)
                words += fields
                # A quoted assignment is a plain word to the grammar.
                self._assigned += [field for field in fields if "=" in field and not field.startswith("-")]
                is_nameref = is_nameref or (words[-1:] != [] and words[-1].startswith("-") and "n" in words[-1])
        if words[:1] == ["unset"]:
            for name in words[1:]:
                scope.set_unknown(name)
        return tuple(words)
