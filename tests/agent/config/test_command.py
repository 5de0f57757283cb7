"""The `agent config` commands."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.vocabulary.errors import ConfigError
from cli.commands.config import app


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("cli.commands.config.os_environ", lambda: {"AGENT_CONFIG_DIR": str(tmp_path)})
    return tmp_path


def run(*words: str, stdin: str = "") -> tuple[str, str]:
    result = CliRunner().invoke(app, list(words), input=stdin, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout, result.stderr


def test_a_setting_is_shown_with_its_origin(folder: Path) -> None:
    run("set", "model", "openai/gpt-5")
    run("set", "keys.openai", "-", stdin="sk-SENTINEL-0123456789\n")
    lines = run("show")[0].splitlines()
    assert [line.split() for line in lines if "config.toml" in line] == [
        ["model", "openai/gpt-5", "config.toml:1"],
        ["keys.openai", "****6789", "config.toml:4"],
    ]
    assert len({line.index(line.split()[1]) for line in lines}) == 1
    assert run("get", "model") == ("openai/gpt-5\n", "from: config.toml:1\n")
    assert run("path")[0] == f"{folder}/config.toml\n"


def test_the_json_listing_has_value_layer_and_place(folder: Path) -> None:
    run("set", "keys.groq", "sk-SENTINEL-0123456789")
    document = json.loads(run("show", "--json")[0])
    assert document["path"] == f"{folder}/config.toml"
    assert document["settings"]["keys.groq"] == {"value": "****6789", "layer": "file", "where": "config.toml:2"}
    assert document["settings"]["max_steps"] == {"value": 50, "layer": "default", "where": ""}
    assert json.loads(run("get", "max_steps", "--json")[0])["value"] == 50


def test_a_profile_overrides_the_file() -> None:
    run("set", "profile.work.concurrency", "3")
    assert run("get", "concurrency", "--profile", "work")[0] == "3\n"


def test_an_unknown_setting_suggests_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting modle, did you mean model\?"):
        run("get", "modle")
