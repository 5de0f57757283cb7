"""Keys are masked, redacted, and never part of an error."""

from pathlib import Path

import pytest

from agent.config.load import load_settings
from agent.config.secrets import mask
from agent.config.show import find_row, setting_rows
from agent.vocabulary.errors import ConfigError

KEY = "sk-SENTINEL-0123456789"


@pytest.mark.parametrize(("value", "shown"), [("", ""), ("short", "****"), ("elevenchars", "****"), (KEY, "****6789")])
def test_a_key_shows_at_most_its_last_four_characters(value: str, shown: str) -> None:
    assert mask(value) == shown


def test_rows_never_contain_a_key(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'api_key = "{KEY}"\n[keys]\ngroq = "{KEY}"\n')
    loaded = load_settings(environ={"OPENAI_API_KEY": KEY}, config_dir=tmp_path)
    assert KEY not in "".join(row.text for row in setting_rows(loaded, {}))
    assert find_row(loaded, "keys", {}).value == {"groq": "****6789", "openai": "****6789"}
    assert find_row(loaded, "keys.mistral", {}).text == ""


def test_secrets_are_configured_keys_and_secret_variables_longest_first(tmp_path: Path) -> None:
    environ = {"AGENT_API_KEY": KEY, "GITHUB_TOKEN": "ghp_secret", "OPENAI_API_KEY": "lm-studio", "HOME": "/home/me"}
    assert load_settings(environ=environ, config_dir=tmp_path).secrets == (KEY, "ghp_secret")


def test_a_trailing_newline_is_removed_from_a_key(tmp_path: Path) -> None:
    loaded = load_settings(environ={"OPENAI_API_KEY": f"{KEY}\n"}, config_dir=tmp_path)
    assert (loaded.settings.keys, loaded.secrets) == ({"openai": KEY}, (KEY,))


def test_an_error_about_a_key_does_not_show_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[keys]\nopenai = ["{KEY}"]\n')
    with pytest.raises(ConfigError) as caught:
        load_settings(environ={}, config_dir=tmp_path)
    assert "keys.openai: expected text" in caught.value.message
    assert "SENTINEL" not in caught.value.message


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_file_with_keys_readable_by_others_causes_a_warning(tmp_path: Path, mode: int, warns: bool) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'[profile.work.keys]\nopenai = "{KEY}"\n')
    path.chmod(mode)
    warnings = load_settings(environ={}, config_dir=tmp_path).warnings
    assert bool(warnings) is warns
    assert KEY not in "".join(warnings)


def test_a_file_without_keys_may_be_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('model = "x"\n')
    path.chmod(0o644)
    assert load_settings(environ={}, config_dir=tmp_path).warnings == ()
