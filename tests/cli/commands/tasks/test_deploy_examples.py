"""The files in examples/deploy are accepted by the programs that they are for."""

import contextlib
import plistlib
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.house.source_tree import ROOT

DEPLOY = ROOT / "examples" / "deploy"


def test_the_launch_agent_is_a_property_list_that_starts_a_worker() -> None:
    document = plistlib.loads((DEPLOY / "dev.windlass.worker.plist").read_bytes())
    assert document["ProgramArguments"][1:] == ["agent", "worker", "--quiet"]
    assert document["KeepAlive"] is True
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(["plutil", "-lint", str(DEPLOY / "dev.windlass.worker.plist")], check=True)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "windlass-worker.service"
    unit.write_text((DEPLOY / "windlass-worker.service").read_text())
    try:
        done = subprocess.run(["systemd-analyze", "verify", "--user", str(unit)], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no systemd here")
    problems = [line for line in done.stderr.splitlines() if "windlass-worker" in line]
    assert problems == []


def test_the_unit_starts_a_worker_and_gives_it_time_to_finish() -> None:
    lines = (DEPLOY / "windlass-worker.service").read_text().splitlines()
    assert "ExecStart=/usr/bin/env agent worker --quiet" in lines
    assert "TimeoutStopSec=1h" in lines


def test_the_compose_file_has_a_database_and_workers_without_a_password_in_it() -> None:
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(document["services"]) == {"database", "worker"}
    worker = document["services"]["worker"]
    assert worker["command"][0] == "worker"
    assert "${POSTGRES_PASSWORD}" in worker["environment"]["DATABASE_URL"]
    assert set(document["volumes"]) == {"database", "data"}
