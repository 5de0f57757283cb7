"""The pictures in docs/screenshots; `python -m tests.docs.screenshots` (`make screenshots`) updates them."""

import html
import re
import sys
import tempfile
from pathlib import Path

from tests.docs.screenshot_scenes import SCENES, Scene
from tests.house.source_tree import ROOT

FOLDER = ROOT / "docs" / "screenshots"
_CELLS = re.compile(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
# Text that differs between two runs of the same scene.
_VOLATILE = re.compile(r"\b\d+(?:\.\d+)?s\b|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|\b[0-9a-f]{7}\b")


def path_of(scene: Scene) -> Path:
    """Return the file of a scene's picture."""
    return FOLDER / f"{scene.name}.svg"


def render_scene(scene: Scene) -> str:
    """Play a scene and return its picture."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve() / "home"
        home.mkdir()
        return scene.svg(home)


def text_lines(svg: str) -> list[str]:
    """Return the stable text of a picture, sorted because parallel steps may end in either order."""
    rows: dict[float, str] = {}
    for _, y, text in _CELLS.findall(svg):
        rows[float(y)] = f"{rows.get(float(y), '')} {html.unescape(text)}"
    return sorted(" ".join(_VOLATILE.sub("~", row).split()) for row in rows.values())


def main() -> None:
    """Write the pictures that changed."""
    FOLDER.mkdir(exist_ok=True)
    for scene in SCENES:
        path, svg = path_of(scene), render_scene(scene)
        if not path.exists() or text_lines(path.read_text()) != text_lines(svg) or "--all" in sys.argv:
            path.write_text(svg)


if __name__ == "__main__":
    main()
