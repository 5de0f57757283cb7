"""The recipes of CONTRIBUTING.md name the files a change really touches."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.source_tree import LAYERS, ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
NUMBERS = ("Zero", "One", "Two", "Three", "Four", "Five")
# What to look for in the source, where that is not the example itself.
SPELLINGS = {"/cost": 'name="cost"'}
_RECIPE = re.compile(r"^### (Add .+)\n\n(\w+) source files?; (.+)\.\n\n((?:.+\n)+)", re.MULTILINE)
_ITEM = re.compile(r"^\d+\. `([\w./]+)`( \(new\))?: ((?:.|\n(?!\d))+)", re.MULTILINE)
_TABLE = re.compile(r"the (tuple|table|union|class) `(\w+)`")


@dataclass(frozen=True, kw_only=True)
class Item:
    """One file of a recipe, and the table in it that gets a new entry."""

    path: str
    is_new: bool
    table: tuple[str, str] | None

    @property
    def file(self) -> Path:
        return ROOT / self.path


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One recipe: the number of files it claims, its example, and its files."""

    title: str
    claim: str
    example: str | None
    items: tuple[Item, ...]


def recipes(page: str) -> list[Recipe]:
    """Return the recipes of the page."""
    return [
        Recipe(
            title=title,
            claim=claim,
            example=quoted[1] if (quoted := re.search(r"`(.+)`", about)) else None,
            items=tuple(_item(*match) for match in _ITEM.findall(listing)),
        )
        for title, claim, about, listing in _RECIPE.findall(page)
    ]


def _item(path: str, new: str, text: str) -> Item:
    table = _TABLE.search(text)
    return Item(path=path, is_new=bool(new), table=(table[1], table[2]) if table else None)


def kind_of(source: str, name: str) -> str | None:
    """Return what a module-level name is: tuple, table, union, class, or None."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=defined) if defined == name:
                return "class"
            case ast.AnnAssign(target=ast.Name(id=defined), value=value) if defined == name:
                pass
            case ast.Assign(targets=[ast.Name(id=defined)], value=value) if defined == name:
                pass
            case _:
                continue
        kinds = {ast.Tuple: "tuple", ast.Dict: "table", ast.BinOp: "union"}
        return kinds.get(type(value))
    return None


def mentions(text: str) -> set[str]:
    """Return the source files that contain a text as a whole word."""
    pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    files = (path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
    return {str(path.relative_to(ROOT)) for path in files if pattern.search(path.read_text())}


RECIPES = recipes(PAGE)


def test_every_recipe_is_found() -> None:
    titles = [recipe.title for recipe in RECIPES]
    assert titles == re.findall(r"^### (Add .+)$", PAGE, re.MULTILINE)
    assert len(titles) == 6


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_the_number_of_files_is_right(recipe: Recipe) -> None:
    assert NUMBERS.index(recipe.claim) == len(recipe.items)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_place_of_registration_is_named(recipe: Recipe) -> None:
    assert [item for item in recipe.items if item.table]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_the_files_exist_and_hold_the_table(recipe: Recipe) -> None:
    for item in recipe.items:
        assert (item.file.parent if item.is_new else item.file).exists(), item.path
        if item.table:
            kind, name = item.table
            assert kind_of(item.file.read_text(), name) == kind, item.path


@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe.example], ids=lambda recipe: recipe.title)
def test_no_other_file_mentions_the_example(recipe: Recipe) -> None:
    example = recipe.example or ""
    assert mentions(SPELLINGS.get(example, example)) == {item.path for item in recipe.items}


def test_a_wrong_recipe_is_noticed() -> None:
    head = "### Add a thing\n\nThree source files; the example is `FindFiles`.\n\n"
    text = f"{head}1. `tooling/registry.py`: the table `TOOLS`.\n"
    (recipe,) = recipes(text)
    assert NUMBERS.index(recipe.claim) != len(recipe.items)
    assert recipe.items[0].table == ("table", "TOOLS")
    assert kind_of(recipe.items[0].file.read_text(), "TOOLS") == "tuple"
    assert mentions("FindFiles") != {"tooling/registry.py"}
