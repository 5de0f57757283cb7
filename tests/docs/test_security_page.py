"""The security page says what the boxes say of themselves, and its figures are those of today."""

import pytest

from agent.backends.sandbox import seatbelt
from agent.backends.sandbox.bubblewrap import bubblewrap_sandbox
from agent.backends.sandbox.landlock import landlock_sandbox
from tests.docs import security_figures
from tests.house.source_tree import ROOT
from tests.sandbox.probes import ESCAPES

PAGE = security_figures.PAGE.read_text()


def test_the_figures_are_up_to_date() -> None:
    assert security_figures.update_table(PAGE) == PAGE, "run: python -m tests.docs.security_figures"


@pytest.mark.parametrize("box", [bubblewrap_sandbox, landlock_sandbox, seatbelt], ids=lambda box: str(box.__name__))
def test_every_gap_that_a_box_tells_of_is_on_the_page(box: object) -> None:
    gaps = [*vars(box)["_NOT_COVERED"], bubblewrap_sandbox.NO_CGROUPS]
    assert [gap for gap in gaps if gap not in PAGE.replace("\n  ", " ")] == []


def test_the_readme_counts_the_escapes_right() -> None:
    assert f"{len(ESCAPES)} real escapes" in (ROOT / "README.md").read_text()
