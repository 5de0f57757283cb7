"""Runs the sandbox as a user who is not root, from a copy of the sources that they can read."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def run_as_nobody(
    script: str, *, workspace: Path, environ: Mapping[str, str], copy: Path, sandbox: str = "auto"
) -> bytes:
    """Return the output of a script in the sandbox of user 65534."""
    for package in ("agent", "tooling", "patterns", "tests/sandbox"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "sample"))
    done = subprocess.run(
        [_interpreter(), "-m", "tests.sandbox.as_user"],
        cwd=copy,
        input=json.dumps({"workspace": str(workspace), "environ": dict(environ), "script": script, "sandbox": sandbox}),
        env={"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["exit_code"] == 0, result
    return str(result["output"]).encode()


def _interpreter() -> str:
    """Return a Python that other users can run: ours may be in a home folder."""
    system = Path("/usr/bin/python3")
    if system.exists():
        version = subprocess.run([system, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True)
        if version.stdout == b"True\n":
            return str(system)
    return sys.executable
