"""The finder of our own modules finds what the standard library finds, and leaves everything else to it."""

import importlib.util
import os
import sys
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

import agent
from cli.own_modules import OwnModules, install

ROOT = Path(agent.__file__).parents[1]


def _names() -> list[str]:
    files = (path for package in ("agent", "cli", "tooling") for path in (ROOT / package).rglob("*.py"))
    parts = (path.relative_to(ROOT).with_suffix("").parts for path in files)
    return sorted({".".join(words[:-1] if words[-1] == "__init__" else words) for words in parts})


def _facts(spec: ModuleSpec | None) -> tuple[object, ...]:
    assert spec
    folders = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    return spec.name, spec.origin, spec.cached, spec.parent, spec.has_location, folders


def test_every_module_is_found_where_the_standard_library_finds_it() -> None:
    names = [name for name in _names() if "." in name]
    folders = {name: [str(ROOT / name.rpartition(".")[0].replace(".", "/"))] for name in names}
    found = {name: _facts(OwnModules.find_spec(name, folders[name])) for name in names}
    assert len(found) > 500
    assert found == {name: _facts(PathFinder.find_spec(name, folders[name])) for name in names}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("agent", None),
        ("json.decoder", [str(ROOT / "agent")]),
        ("agent.no_such_module", [str(ROOT / "agent")]),
        ("agent.app", ["/no/such/folder"]),
        ("agent.app", [str(ROOT / "pyproject.toml")]),
    ],
)
def test_everything_else_is_left_to_the_other_finders(name: str, path: list[str] | None) -> None:
    assert OwnModules.find_spec(name, path) is None


def _load(folder: Path) -> ModuleType:
    spec = OwnModules.find_spec("cli.example", [str(folder)])
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_is_cached_until_its_source_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    source = tmp_path / "example.py"
    source.write_text("VALUE = 1\n")
    os.utime(source, (1, 1))
    first = _load(tmp_path)
    assert (first.VALUE, first.__file__) == (1, str(source))
    assert first.__cached__
    assert Path(first.__cached__).is_file()
    # A source of the same size and time is not compiled again.
    source.write_text("VALUE = 2\n")
    os.utime(source, (1, 1))
    assert _load(tmp_path).VALUE == 1
    os.utime(source, (2, 2))
    assert _load(tmp_path).VALUE == 2


def test_the_finder_is_installed_once_and_before_the_standard_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [finder for finder in sys.meta_path if finder is not OwnModules]
    monkeypatch.setattr(sys, "meta_path", list(others))
    install()
    install()
    place = others.index(BuiltinImporter)
    assert sys.meta_path == [*others[:place], OwnModules, *others[place:]]
