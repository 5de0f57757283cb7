"""Folders are small and layered, and no module is too small to stand alone."""

import statistics
from pathlib import Path

from tests.house.folder_rules import MAX_MODULES, SMALL_MODULES, crowded_folders, folder_cycles, small_modules
from tests.house.source_tree import ROOT, module, modules

HABIT_LINES = 300


def line_counts(root: Path = ROOT) -> dict[str, int]:
    names = [source.name for source in modules() if not source.is_package]
    return {name: len((root / f"{name.replace('.', '/')}.py").read_text().splitlines()) for name in names}


def test_no_folder_is_crowded() -> None:
    assert list(crowded_folders(modules())) == []


def test_no_folder_of_tests_or_benches_is_crowded() -> None:
    folders = {path.parent for name in ("tests", "bench") for path in (ROOT / name).rglob("*.py")}
    counts = {folder: len([path for path in folder.glob("*.py") if path.stem != "__init__"]) for folder in folders}
    # A folder of tests has helpers besides its tests.
    limits = {folder: MAX_MODULES if folder.is_relative_to(ROOT / "bench") else 25 for folder in folders}
    assert {str(folder): count for folder, count in counts.items() if count > limits[folder]} == {}


def test_the_children_of_a_folder_do_not_import_each_other_in_a_circle() -> None:
    assert list(folder_cycles(modules())) == []


def test_no_module_is_too_small_to_stand_alone() -> None:
    assert list(small_modules(modules(), line_counts())) == []


def test_the_exceptions_still_exist() -> None:
    assert SMALL_MODULES.keys() <= line_counts().keys()


def test_most_files_are_short() -> None:
    assert statistics.quantiles(line_counts().values(), n=20)[-1] <= HABIT_LINES


def test_the_crowded_folder_rule_can_fail() -> None:
    many = [module(f"agent.x.m{number}", "") for number in range(21)]
    assert list(crowded_folders(many)) == ["agent.x has 21 modules"]
    assert list(crowded_folders(many[:20])) == []


def test_the_folder_cycle_rule_can_fail() -> None:
    circle = [
        module("agent.a.x", "from agent.b.y import f"),
        module("agent.b.y", "from agent.c import g"),
        module("agent.c", "from agent.a.z import h"),
        module("agent.a.z", ""),
    ]
    assert [cycle.split()[1] for cycle in folder_cycles(circle)] == ["a", "b", "c"]
    lazy = [module("agent.a.x", "from agent.b.y import f"), module("agent.b.y", "def g():\n    import agent.a.x")]
    assert list(folder_cycles(lazy)) == []


def test_the_small_module_rule_can_fail() -> None:
    pair = [module("agent.a", "from agent.b import f"), module("agent.b", "")]
    assert list(small_modules(pair, {"agent.a": 100, "agent.b": 59})) == ["agent.b (59 lines) belongs into agent.a"]
    assert list(small_modules(pair, {"agent.a": 100, "agent.b": 60})) == []
