"""Imports point downwards, and each kind of work has its place."""

import pytest

from tests.house import layer_rules
from tests.house.source_tree import Module, module, modules


def violations(rule: str, sources: tuple[Module, ...]) -> list[str]:
    return [violation for source in sources for violation in getattr(layer_rules, rule)(source)]


RULES = (
    "upward_imports",
    "misplaced_libraries",
    "undeclared_lazy_imports",
    "prints",
    "loop_starts",
    "environment_uses",
    "code_in_package_files",
)


@pytest.mark.parametrize("rule", RULES)
def test_no_module_breaks_the_rule(rule: str) -> None:
    assert violations(rule, modules()) == []


def test_every_layer_is_checked() -> None:
    assert {source.layer for source in modules()} == {"cli", "agent", "tooling", "patterns"}


def test_every_import_names_a_module_by_its_full_path() -> None:
    known = frozenset(source.name for source in modules())
    assert [violation for source in modules() for violation in layer_rules.indirect_imports(source, known)] == []


def test_there_are_no_import_cycles() -> None:
    assert layer_rules.cycles(modules()) == []


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    [
        ("upward_imports", "tooling.x", "from agent.model.port import ModelClient"),
        ("upward_imports", "agent.x", "def f():\n    import cli.main"),
        ("upward_imports", "agent.x", "if TYPE_CHECKING:\n    import cli.main"),
        ("upward_imports", "cli.x", "from tests.house import layers"),
        ("misplaced_libraries", "agent.x", "import litellm.utils"),
        ("misplaced_libraries", "agent.x", "from rich.console import Console"),
        ("misplaced_libraries", "cli.x", "def f():\n    import litellm"),
        ("undeclared_lazy_imports", "agent.x", "async def f():\n    if True:\n        import numpy"),
        ("undeclared_lazy_imports", "agent.x", "class A:\n    def f(self):\n        from agent.engine import B"),
        ("prints", "agent.x", "print('x')"),
        ("prints", "tooling.x", "import sys as s\ns.stdout.write('x')"),
        ("prints", "tooling.x", "from sys import stderr"),
        ("loop_starts", "agent.x", "import asyncio\nasyncio.run(f())"),
        ("loop_starts", "agent.x", "from asyncio import run"),
        ("environment_uses", "cli.x", "import os\nos.environ['A']"),
        ("environment_uses", "tooling.x", "from os import getenv"),
        ("environment_uses", "agent.model.litellm_client", "import os\nx = os.environ.get('A')"),
    ],
)
def test_the_rule_can_fail(rule: str, name: str, source: str) -> None:
    assert len(violations(rule, (module(name, source),))) == 1


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    [
        ("upward_imports", "cli.x", "from agent.engine import A\nfrom tooling.invoke import B"),
        ("misplaced_libraries", "agent.model.x", "def f():\n    import litellm"),
        ("undeclared_lazy_imports", "cli.x", "def f():\n    from agent.engine import A"),
        ("prints", "cli.x", "print('x')"),
        ("loop_starts", "cli.x", "import asyncio\nasyncio.run(f())"),
        ("environment_uses", "agent.config.x", "import os\nos.environ"),
        ("environment_uses", "agent.model.litellm_client", "import os\nos.environ.setdefault('A', 'b')"),
        ("environment_uses", "agent.model.litellm_client", "import os\nos.environ['A'] = 'b'"),
    ],
)
def test_the_rule_allows_legitimate_code(rule: str, name: str, source: str) -> None:
    assert violations(rule, (module(name, source),)) == []


@pytest.mark.parametrize(
    "source", ["from . import y", "from agent.y import *", "from agent import Gone", "import agent.gone"]
)
def test_the_full_path_rule_can_fail(source: str) -> None:
    known = frozenset({"agent", "agent.x", "agent.y"})
    assert list(layer_rules.indirect_imports(module("agent.x", source), known))


def test_the_package_rule_can_fail() -> None:
    for source in ("", '"""Doc."""\nfrom agent.engine import A'):
        package = Module(name="agent.x", text=source, tree=module("", source).tree, is_package=True)
        assert violations("code_in_package_files", (package,))


def test_the_cycle_rule_can_fail() -> None:
    cycle = (
        module("agent.a", "from agent.b import x"),
        module("agent.b", "from agent import c"),
        module("agent.c", "import agent.a"),
    )
    assert layer_rules.cycles(cycle) == ["agent.a → agent.b → agent.c → agent.a"]
    lazy = (module("agent.a", "from agent.b import x"), module("agent.b", "def f():\n    from agent.a import y"))
    assert layer_rules.cycles(lazy) == []
