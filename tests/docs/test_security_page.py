"""The security page lists what each sandbox reports about itself, and its figures are up to date."""

import pytest

from agent.backends.docker import container_sandbox
from agent.backends.sandbox import seatbelt
from agent.backends.sandbox.bubblewrap import bubblewrap_sandbox
from agent.backends.sandbox.landlock import landlock_sandbox
from tests.docs import security_figures
from tests.house.source_tree import ROOT
from tests.sandbox.probes import ESCAPES

PAGE = security_figures.PAGE.read_text()


@pytest.mark.slow
def test_the_figures_are_up_to_date() -> None:
    assert security_figures.update_table(PAGE) == PAGE, "run: python -m tests.docs.security_figures"


@pytest.mark.parametrize(
    "sandbox",
    [bubblewrap_sandbox, landlock_sandbox, seatbelt, container_sandbox],
    ids=lambda sandbox: str(sandbox.__name__),
)
def test_every_gap_a_sandbox_reports_is_on_the_page(sandbox: object) -> None:
    gaps = [*vars(sandbox)["_NOT_COVERED"], bubblewrap_sandbox.NO_CGROUPS]
    assert [gap for gap in gaps if gap not in PAGE.replace("\n  ", " ")] == []


def test_the_readme_has_the_number_of_escapes() -> None:
    assert f"{len(ESCAPES)} escape attempts" in (ROOT / "README.md").read_text()
