"""The picture in the README shows what `agent demo` shows today."""

import html
import re
import runpy

import pytest

from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
SCRIPT = ROOT / "docs" / "make_screenshot.py"
_ELAPSED = re.compile(r"\d+\.\d\ss")


def lines(svg: str) -> list[str]:
    """Return the lines of a picture, sorted: steps side by side may end in either order."""
    rows: dict[float, str] = {}
    for y, text in re.findall(r'<text[^>]*y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        rows[float(y)] = rows.get(float(y), "") + html.unescape(text)
    return sorted(_ELAPSED.sub("0.0 s", row) for row in rows.values())


def test_the_picture_is_up_to_date() -> None:
    script = runpy.run_path(str(SCRIPT))
    assert lines(script["TARGET"].read_text()) == lines(script["picture"](script["recorded"]())), f"run: {SCRIPT.name}"


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    svg = (ROOT / "docs" / "demo.svg").read_text()
    assert not re.search(r"url\(['\"]?http|href=['\"]http|@font-face|<script", svg)
