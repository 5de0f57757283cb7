"""Settings in the real program."""

from pathlib import Path

import pytest

from tests.house.program import run_agent

pytestmark = pytest.mark.slow

KEY = "sk-SENTINEL-0123456789"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / ".config" / "agent" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_an_invalid_setting_exits_with_code_52_and_one_sentence(tmp_path: Path, file: Path) -> None:
    file.write_text('\nmodle = "x"\n')
    finished = run_agent(tmp_path, "config", "show")
    assert (finished.exit_code, finished.stdout) == (52, "")
    assert finished.stderr.strip() == f"error: {file}:2: unknown setting modle, did you mean model?"


def test_a_key_is_stored_private_and_shown_masked(tmp_path: Path, file: Path) -> None:
    assert run_agent(tmp_path, "config", "set", "keys.openai", KEY).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    for words in (["show"], ["show", "--json"], ["get", "keys.openai"]):
        shown = run_agent(tmp_path, "config", *words)
        assert "****6789" in shown.stdout
        assert "SENTINEL" not in shown.stdout + shown.stderr
