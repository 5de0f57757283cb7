"""Programs that tests need: a test without one is skipped, except in CI, where it fails."""

import os
import shutil
from pathlib import Path

import pytest

# Program: Debian package. `.ci/programs` installs them.
PACKAGES = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "curl": "curl",
    "docker": "docker.io",
    "dockerd": "docker.io",
    "fish": "fish",
    "gcc": "gcc",
    "git": "git",
    "ip": "iproute2",
    "make": "make",
    "mount": "mount",
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "pgrep": "procps",
    "rg": "ripgrep",
    "tmux": "tmux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "zsh": "zsh",
}
# A compiler without the headers of the C library builds nothing.
HEADERS = Path("/usr/include/stdio.h")
# Names programs, separated by spaces, that a run in CI does without on purpose.
WITHOUT = "WINDLASS_TEST_WITHOUT"
# In CI a missing program is a failure.
IS_STRICT = bool(os.environ.get("CI"))
# Debian puts the server's programs in a folder for each version, which is not in PATH.
_POSTGRES = Path("/usr/lib/postgresql")


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark a test that cannot run without these programs; the check is made when the test is set up."""
    unknown = set(names) - PACKAGES.keys()
    assert not unknown, f"no package is known for {unknown}"
    return pytest.mark.needs(*names)


def require(*names: str) -> None:
    """Skip the running test if a program is missing; in CI, fail it unless the run does without it on purpose."""
    missing = [name for name in names if shutil.which(name) is None]
    if "gcc" in names and not HEADERS.exists():
        missing.append("libc6-dev")
    if not missing:
        return
    packages = " ".join(PACKAGES.get(name, name) for name in missing)
    reason = f"needs {packages}: apt-get install {packages}"
    if IS_STRICT and not set(missing) <= set(os.environ.get(WITHOUT, "").split()):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def postgres_folder() -> Path | None:
    """Return the folder with the programs of the newest PostgreSQL server, if there is one."""
    found = sorted(_POSTGRES.glob("*/bin/initdb"), key=lambda path: float(path.parent.parent.name))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    return Path(program).resolve().parent if program else None
