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


KEY = "sk-SENTINEL-0123456789"
FROM_ENVIRONMENT = {
    "OPENAI_API_KEY": ("keys.openai", KEY),
    "OPENAI_MODEL": ("model", "gpt-x"),
    "OPENAI_BASE_URL": ("api_base", "http://127.0.0.1:1/v1"),
    "ANTHROPIC_API_KEY": ("keys.anthropic", KEY),
    "ANTHROPIC_MODEL": ("model", "claude-x"),
    "ANTHROPIC_BASE_URL": ("api_bases.anthropic", "http://127.0.0.1:2"),
    "PROXY_URL": ("search_urls.proxy", "http://127.0.0.1:3"),
    "ZAI_API_KEY": ("keys.zai", KEY),
    "TAVILY_API_KEY": ("keys.tavily", KEY),
    "JINA_API_KEY": ("keys.jina", KEY),
}


@pytest.mark.parametrize("variable", FROM_ENVIRONMENT)
def test_the_environment_overrides_the_file_and_is_shown_as_origin_with_keys_masked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    name, value = FROM_ENVIRONMENT[variable]
    run("set", name, "http://in-the-file")
    environ = {"AGENT_CONFIG_DIR": str(folder), variable: value}
    monkeypatch.setattr("cli.commands.config.os_environ", lambda: environ)
    shown = "****6789" if value == KEY else value
    output = run("show", "--json")[0]
    assert json.loads(output)["settings"][name] == {"value": shown, "layer": "environment", "where": variable}
    assert KEY not in output


@pytest.mark.parametrize("variable", ["AGENT_SANDBOX", "AGENT_SANDBOX_ROOT"])
def test_the_data_folder_is_shown_with_its_origin(folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    environ = {"AGENT_CONFIG_DIR": str(folder), variable: str(folder / "data")}
    monkeypatch.setattr("cli.commands.config.os_environ", lambda: environ)
    document = json.loads(run("show", "--json")[0])
    assert document["data"] == {"value": f"{folder}/data", "layer": "environment", "where": variable}
    assert document["warnings"] == []
