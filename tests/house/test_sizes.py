"""Limits for the size of files and functions, and a docstring in every file."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source_tree import LAYERS, ROOT, statements

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
FILES = tuple(path for folder in (*LAYERS, "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py")))


def too_large(name: str, source: str) -> Iterator[str]:
    if (lines := len(source.splitlines())) > MAX_FILE_LINES:
        yield f"{name} has {lines} lines"
    if lines <= MAX_FUNCTION_LINES:
        return
    for node in statements(ast.parse(source, filename=name)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{name}:{node.lineno} {node.name}() has {length} lines"


def missing_docstring(name: str, source: str) -> Iterator[str]:
    # If the file starts with a docstring, only the docstring needs to be parsed.
    head = source[: source.find('"""', 3) + 3] if source.startswith('"""') else source
    docstring = ast.get_docstring(ast.parse(head, filename=name)) or ""
    first = docstring.partition("\n")[0]
    if len(first) < 10:
        yield f"{name} has no docstring of at least 10 characters"


def violations(rule: object) -> list[str]:
    assert callable(rule)
    return [violation for path in FILES for violation in rule(str(path.relative_to(ROOT)), path.read_text())]


def test_no_file_or_function_is_too_large() -> None:
    assert violations(too_large) == []


def test_every_file_has_a_docstring() -> None:
    assert violations(missing_docstring) == []


def test_all_sources_are_checked() -> None:
    assert len(FILES) > 50
    assert Path(__file__).resolve() in FILES


@pytest.mark.parametrize(
    "source",
    ["x = 1\n" * 401, "def f():\n" + "    x = 1\n" * 60, "class A:\n    async def f(self):\n" + "        x = 1\n" * 60],
)
def test_the_size_rule_can_fail(source: str) -> None:
    assert len(list(too_large("x", source))) == 1


def test_the_size_rule_allows_the_limit() -> None:
    assert list(too_large("x", "x = 1\n" * 400)) == []
    assert list(too_large("x", "def f():\n" + "    x = 1\n" * 59)) == []


@pytest.mark.parametrize("source", ["", "x = 1", "# a comment", '"""Doc"""'])
def test_the_docstring_rule_can_fail(source: str) -> None:
    assert list(missing_docstring("x", source))
