"""The pictures are up to date, self-contained and used."""

import re

import pytest

from tests.agent.api.page_screenshots import PICTURES
from tests.docs.console_blocks import PAGES
from tests.docs.screenshot_scenes import SCENES, Scene
from tests.docs.screenshots import FOLDER, path_of, render_scene, text_lines
from tests.programs import needs

NAMES = [scene.name for scene in SCENES]


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES, ids=NAMES)
@needs("bwrap")
def test_a_picture_is_up_to_date(scene: Scene) -> None:
    assert text_lines(path_of(scene).read_text()) == text_lines(render_scene(scene)), (
        "run: make screenshots, and look at them"
    )


@pytest.mark.parametrize("scene", SCENES, ids=NAMES)
def test_a_picture_loads_no_external_resource(scene: Scene) -> None:
    svg = path_of(scene).read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\(|href=|@font-face|@import|<script", svg)


def test_every_picture_belongs_to_a_scene_and_a_page() -> None:
    names = [f"{name}.svg" for name in NAMES] + list(PICTURES)
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(names)
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in names if f"screenshots/{name}" not in text] == []
