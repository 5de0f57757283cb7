"""A full disk: the run reports it, the log stays intact, and the run can be resumed when there is space again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source_tree import ROOT
from tests.programs import needs

pytestmark = pytest.mark.slow
UNSHARE_ARGV = ("unshare", "--user", "--map-root-user", "--mount")


def can_mount() -> bool:
    try:
        return subprocess.run([*UNSHARE_ARGV, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@needs("mount", "unshare")
@pytest.mark.skipif(not can_mount(), reason="needs a user namespace to mount a small disk")
def test_runs_on_a_full_disk_can_be_resumed_when_there_is_space(tmp_path: Path, kills: int) -> None:
    argv = [*UNSHARE_ARGV, sys.executable, "-m", "tests.crash.full_disk", str(tmp_path), str(max(2, kills // 5))]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=600 + 20 * kills, check=False)
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (0, ["done"]), ended.stderr[-3000:]
