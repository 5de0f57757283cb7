"""Programs that tests need: a test without one is skipped, except in CI, where it fails."""

import os
import shutil

import pytest

# Program: Debian package. `.ci/programs` installs them.
PACKAGES = {
    "bwrap": "bubblewrap",
    "curl": "curl",
    "fish": "fish",
    "gcc": "gcc",
    "git": "git",
    "make": "make",
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "pgrep": "procps",
    "rg": "ripgrep",
    "tmux": "tmux",
    "zsh": "zsh",
}
# Names programs, separated by spaces, that a run in CI does without on purpose.
WITHOUT = "WINDLASS_TEST_WITHOUT"


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark a test that cannot run without these programs; the check is made when the test is set up."""
    unknown = set(names) - PACKAGES.keys()
    assert not unknown, f"no package is known for {unknown}"
    return pytest.mark.needs(*names)


def require(*names: str) -> None:
    """Skip the running test if a program is missing; in CI, fail it unless the run does without it on purpose."""
    missing = [name for name in names if shutil.which(name) is None]
    if not missing:
        return
    packages = " ".join(PACKAGES.get(name, name) for name in missing)
    reason = f"needs {packages}: apt-get install {packages}"
    if os.environ.get("CI") and not set(missing) <= set(os.environ.get(WITHOUT, "").split()):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
