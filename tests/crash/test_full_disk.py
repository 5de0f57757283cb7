"""A disk that is full, really full: the run says so, the log stays whole, and with room again it goes on."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
UNSHARE_ARGV = ("unshare", "--user", "--map-root-user", "--mount")


def can_mount() -> bool:
    try:
        return subprocess.run([*UNSHARE_ARGV, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_mount(), reason="no namespace of its own in which a small disk could be mounted")
def test_runs_on_a_disk_that_fills_up_go_on_when_there_is_room(tmp_path: Path, kills: int) -> None:
    words = [*UNSHARE_ARGV, sys.executable, "-m", "tests.crash.full_disk", str(tmp_path), str(max(2, kills // 5))]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600 + 20 * kills, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr[-3000:]
