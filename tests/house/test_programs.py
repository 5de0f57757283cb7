"""A test whose program is missing is skipped with the install command, except in CI, where it fails."""

import re
import shutil

import pytest

from tests.house.source_tree import ROOT
from tests.programs import PACKAGES, WITHOUT, require

REASON = "needs bubblewrap: apt-get install bubblewrap"


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("tests.programs.IS_STRICT", False)
    monkeypatch.delenv(WITHOUT, raising=False)


def test_a_missing_program_skips_the_test() -> None:
    with pytest.raises(pytest.skip.Exception, match=REASON):
        require("bwrap")


def test_in_ci_a_missing_program_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.programs.IS_STRICT", True)
    with pytest.raises(pytest.fail.Exception, match=REASON):
        require("bwrap")


def test_in_ci_a_program_can_be_left_out_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.programs.IS_STRICT", True)
    monkeypatch.setenv(WITHOUT, "bwrap")
    with pytest.raises(pytest.skip.Exception, match=REASON):
        require("bwrap")
    with pytest.raises(pytest.fail.Exception, match="needs ripgrep: apt-get install ripgrep"):
        require("rg")


def test_make_installs_every_program_that_tests_need() -> None:
    script = (ROOT / ".ci" / "programs").read_text()
    (table,) = re.findall(r"needed=\((.*?)\)", script, re.DOTALL)
    assert dict(pair.split("=") for pair in table.split()) == PACKAGES


def test_no_test_looks_for_a_program_in_another_way() -> None:
    paths = [path for path in (ROOT / "tests").rglob("*.py") if "shutil.which" in path.read_text()]
    assert {str(path.relative_to(ROOT)) for path in paths} == {"tests/programs.py", "tests/house/test_programs.py"}
