"""Processes that a command has left behind are killed, and counted once."""

import subprocess

import pytest

from agent.backends.process import orphans


def test_a_process_that_is_still_dying_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        scans = [[process.pid], [process.pid], []]
        monkeypatch.setattr(orphans, "_stop_matching", lambda *_, **__: scans.pop(0))
        assert orphans.kill_orphans(session=process.pid, marker="none") == 1
