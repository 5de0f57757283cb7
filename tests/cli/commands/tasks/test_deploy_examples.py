"""The files in examples/deploy are accepted by the programs that they are for."""

import contextlib
import os
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
    # Without this folder it does not get as far as the unit, and finds nothing.
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    try:
        verify = ["systemd-analyze", "verify", "--user", str(unit)]
        done = subprocess.run(verify, capture_output=True, text=True, env=environ)
    except FileNotFoundError:
        pytest.skip("there is no systemd here")
    assert (done.returncode, [line for line in done.stderr.splitlines() if "windlass-worker" in line]) == (0, [])


def test_the_unit_starts_a_worker_and_gives_it_time_to_finish() -> None:
    lines = (DEPLOY / "windlass-worker.service").read_text().splitlines()
    assert "ExecStart=/usr/bin/env agent worker --quiet" in lines
    assert "TimeoutStopSec=1h" in lines


def test_the_compose_file_has_a_database_and_workers_without_a_password_in_it() -> None:
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(document["services"]) == {"database", "worker"}
    worker = document["services"]["worker"]
    assert worker["command"][0] == "worker"
    # Without it no sandbox starts in the container: /proc is masked there, and bubblewrap cannot mount its own.
    assert "systempaths=unconfined" in worker["security_opt"]
    assert "${POSTGRES_PASSWORD}" in worker["environment"]["DATABASE_URL"]
    assert set(document["volumes"]) == {"database", "data"}
    with contextlib.suppress(FileNotFoundError):
        command = ["docker-compose", "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
        read = {key: value for key, value in os.environ.items() if key != "POSTGRES_PASSWORD"}
        assert "set POSTGRES_PASSWORD" in subprocess.run(command, env=read, capture_output=True, text=True).stderr
        subprocess.run(command, env={**read, "POSTGRES_PASSWORD": "secret"}, check=True)
