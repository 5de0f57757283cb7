"""Every imported library is a declared dependency."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

from tests.house.source_tree import LAYERS, ROOT, Module, imports, module, modules

# Dependencies of a declared library that are part of its interface.
TRANSITIVE = {"openai": "litellm", "httpcore": "httpx", "charset_normalizer": "trafilatura"}
TRANSITIVE |= {"starlette": "fastapi", "markupsafe": "jinja2"}
TRANSITIVE |= {"anyio": "mcp", "httpx2": "mcp", "mcp_types": "mcp", "pydantic": "mcp"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def declared_dependencies() -> frozenset[str]:
    extras = [line for name, lines in PROJECT["optional-dependencies"].items() if name != "dev" for line in lines]
    return frozenset(_distribution(line) for line in (*PROJECT["dependencies"], *extras))


@cache
def declared_libraries() -> frozenset[str]:
    """Return what the declared dependencies install, and their own names, for those that are not installed here."""
    found = {name.replace("-", "_") for name in declared_dependencies()}
    for name in declared_dependencies():
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            continue
        found |= {file.parts[0].removesuffix(".py") for file in files}
    return frozenset(found)


def undeclared_imports(sources: Iterable[Module]) -> Iterator[str]:
    for source in sources:
        for imported in imports(source):
            library = imported.target.partition(".")[0]
            library = TRANSITIVE.get(library, library)
            if library not in (*LAYERS, *sys.stdlib_module_names) and library not in declared_libraries():
                yield f"{source.name}:{imported.line} imports {library}, which pyproject.toml does not declare"


def _distribution(requirement: str) -> str:
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_imported_library_is_declared() -> None:
    assert list(undeclared_imports(modules())) == []


def test_the_rule_can_fail() -> None:
    assert list(undeclared_imports([module("agent.x", "def f():\n    import pytest")]))
    assert not list(undeclared_imports([module("agent.x", "import httpx, json\nfrom agent.y import z")]))
