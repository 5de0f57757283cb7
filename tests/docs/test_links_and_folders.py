"""Links lead somewhere, and the map shows every room."""

import re
from pathlib import Path

import pytest

from tests.docs.console_blocks import PAGES
from tests.house.source_tree import LAYERS, ROOT

ALL = (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"`((?:agent|cli|tooling|tests|patterns|docs|examples)/[\w./-]+)`")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as code forges make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text()):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    missing = [path for path in _PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert missing == []


def test_the_map_shows_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.parent.name for layer in LAYERS for path in (ROOT / layer).glob("*/__init__.py")}
    assert [room for room in sorted(rooms) if f"{room}/" not in text] == []
