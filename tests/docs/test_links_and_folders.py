"""Links and file names in the documentation exist, and the tree of folders is complete."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.console_blocks import PAGES
from tests.house.source_tree import LAYERS, ROOT

ALL = (
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "AGENTS.md",
    ROOT / "examples" / "README.md",
    ROOT / "bench" / "README.md",
)
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
MAX_DESCRIPTION = 100
# Files that a recipe has you create.
# The last one is a branch.
PLACEHOLDERS = {"agent/backends/NAME.py", "agent/backends/table.py", "agent/NAME"}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:agent|cli|tooling|tests|patterns|docs|examples|bench)/[\w./-]+)`")
_BRANCH = re.compile(r"^( *)([\w.]+/?) +(\S.*)$")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code forges build them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def tree_entries(page: str) -> Iterator[tuple[str, str]]:
    """Yield path and description of every line of the tree in the section Folders."""
    block = page.partition("\n## Folders\n")[2].split("```")[1]
    parents: list[str] = []
    for line in block.strip("\n").splitlines():
        match = _BRANCH.match(line)
        assert match, line
        depth = len(match[1]) // 2
        parents[depth:] = [match[2]]
        yield "".join(parents), match[3]


def folders() -> set[str]:
    """Return every folder of the four layers."""
    inner = (path for layer in LAYERS for path in (ROOT / layer).rglob("*") if path.is_dir())
    paths = (*(ROOT / layer for layer in LAYERS), *inner)
    return {f"{path.relative_to(ROOT)}/" for path in paths if path.name != "__pycache__"}


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
    for link in _LINK.findall(page.read_text()):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_is_named_exists(page: Path) -> None:
    missing = {path for path in _PATH.findall(page.read_text()) if not (ROOT / path).exists()}
    assert missing <= PLACEHOLDERS


def test_the_tree_shows_every_folder_and_no_other() -> None:
    shown = [path for path, _ in tree_entries(ARCHITECTURE) if path.endswith("/")]
    assert len(shown) == len(set(shown))
    assert set(shown) == folders()


def test_every_file_in_the_tree_exists() -> None:
    shown = [path for path, _ in tree_entries(ARCHITECTURE) if not path.endswith("/")]
    assert [path for path in shown if not (ROOT / path).is_file()] == []


def test_every_line_of_the_tree_is_short() -> None:
    assert [path for path, text in tree_entries(ARCHITECTURE) if len(text) > MAX_DESCRIPTION] == []


def test_a_missing_folder_is_noticed() -> None:
    shorter = "\n".join(line for line in ARCHITECTURE.splitlines() if "  search/  " not in line)
    assert folders() - {path for path, _ in tree_entries(shorter)} == {"tooling/web/search/"}
