"""Variables in the settings file, and the `.env` beside it."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.config.edit import set_value
from agent.config.load import LoadedSettings, load_settings
from agent.config.show import find_row
from agent.vocabulary.errors import ConfigError

KEY = "sk-SENTINEL-0123456789"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def load(folder: Path, environ: Mapping[str, str] | None = None, **options: object) -> LoadedSettings:
    return load_settings(environ=environ or {}, config_dir=folder, **options)  # type: ignore[arg-type]


def write(folder: Path, *, settings: str = "", env: str = "", mode: int = 0o600) -> None:
    for name, text in (("config.toml", settings), (".env", env)):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)


def test_a_variable_in_the_file_is_replaced_from_the_environment_then_from_the_env_file(folder: Path) -> None:
    write(folder, settings='model = "${PROVIDER}/gpt-${N}"\n', env="PROVIDER=openai\nN=4\n")
    assert load(folder).settings.model == "openai/gpt-4"
    loaded = load(folder, {"N": "5"})
    assert (loaded.settings.model, str(loaded.origins["model"])) == ("openai/gpt-5", "config.toml:1")


def test_variables_are_replaced_in_tables_lists_and_numbers(folder: Path) -> None:
    text = (
        'concurrency = "${N}"\nallow_net = ["${HOST}", "example.org"]\nmemory = "${YES}"\n'
        '[keys]\nopenai = "${KEY}"\n[profile.work]\napi_base = "${BASE}/v1"\n'
    )
    write(folder, settings=text, env=f"N=3\nHOST=example.com\nYES=false\nKEY={KEY}\n")
    settings = load(folder).settings
    assert (settings.concurrency, settings.allow_net, settings.memory) == (3, ("example.com", "example.org"), False)
    assert settings.keys == {"openai": KEY}
    assert load(folder, {"BASE": "http://127.0.0.1:1"}, profile="work").settings.api_base == "http://127.0.0.1:1/v1"


def test_a_literal_is_written_with_two_dollar_signs_and_a_value_is_not_expanded_again(folder: Path) -> None:
    write(folder, settings='model = "$${A}-${A}-$B-$$"\n')
    assert load(folder, {"A": "${B}"}).settings.model == "${A}-${B}-$B-$$"


def test_rules_are_commands_in_which_variables_are_the_shells(folder: Path) -> None:
    write(folder, settings='deny = ["rm -rf ${HOME}"]\n[projects."/x"]\nallow = ["echo ${USER}"]\n')
    settings = load(folder, {"HOME": "/root"}).settings
    assert (settings.deny, settings.projects["/x"].allow) == (("rm -rf ${HOME}",), ("echo ${USER}",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\nmodel = "${NOPE}"\n', ":2: model: the variable NOPE is not set"),
        ('[keys]\nopenai = "x${NOPE}"\n', ":2: keys.openai: the variable NOPE is not set"),
        ('model = "${NOPE"\n', ":1: model: ${ is not followed by a variable and }"),
        ('model = "${a b}"\n', ":1: model: ${ is not followed by a variable and }"),
        ('concurrency = "${MANY}"\n', ":1: concurrency: expected a whole number, got text 'many'"),
        ('modle = "${MANY}"\n', ":1: unknown setting modle, did you mean model?"),
    ],
)
def test_a_variable_that_cannot_be_replaced_is_an_error_with_setting_and_variable(
    folder: Path, text: str, message: str
) -> None:
    write(folder, settings=text)
    with pytest.raises(ConfigError) as caught:
        load(folder, {"MANY": "many"})
    assert caught.value.message == f"{folder}/config.toml{message}"
    assert caught.value.exit_code == 52


def test_an_unset_variable_matters_only_where_it_is_used(folder: Path) -> None:
    write(folder, settings='model = "m"\n[profile.work]\nmodel = "${NOPE}"\n')
    assert load(folder).settings.model == "m"
    assert load(folder, bare=True).settings.model == ""
    with pytest.raises(ConfigError, match="NOPE is not set"):
        load(folder, profile="work")
    set_value(folder / "config.toml", "concurrency", "3")
    set_value(folder / "config.toml", "api_base", "${BASE}/v1")
    assert load(folder, {"BASE": "http://h"}).settings.api_base == "http://h/v1"


def test_the_env_file_sets_what_the_environment_does_not(folder: Path) -> None:
    write(folder, settings='model = "file"\n', env=f"OPENAI_API_KEY={KEY}\nAGENT_MODEL=env-file\nAGENT_PROFILE=\n")
    loaded = load(folder)
    assert (loaded.settings.model, str(loaded.origins["model"])) == ("env-file", ".env AGENT_MODEL")
    assert (loaded.settings.keys, str(loaded.origins["keys.openai"])) == ({"openai": KEY}, ".env OPENAI_API_KEY")
    loaded = load(folder, {"AGENT_MODEL": "environment", "OPENAI_API_KEY": ""})
    assert (loaded.settings.model, loaded.settings.keys) == ("environment", {})
    assert load(folder, bare=True).settings.model == ""


def test_the_env_file_may_be_written_like_a_shell_script(folder: Path) -> None:
    lines = (
        "# a comment",
        "",
        "export AGENT_MODEL = one # the first",
        "  AGENT_WEB_READER_URL='http://two # $x' # the second",
        r'AGENT_COMPOSER_MODEL="three\"3\"\$\\" ',
        "AGENT_API_KEY=a#b",
        "AGENT_THEME=#nothing",
    )
    write(folder, env="\r\n".join(lines))
    settings = load(folder).settings
    assert (settings.model, settings.composer_model, settings.web_reader_url, settings.api_key, settings.theme) == (
        "one",
        'three"3"$\\',
        "http://two # $x",
        "a#b",
        "auto",
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (KEY, ":2: expected NAME=value"),
        (f"{KEY}=", ":2: expected NAME=value"),
        (f'OPENAI_API_KEY="{KEY}', ":2: OPENAI_API_KEY: the quote is not closed on this line"),
    ],
)
def test_a_line_that_cannot_be_read_is_reported_without_showing_it(folder: Path, line: str, message: str) -> None:
    write(folder, env=f"A=1\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert caught.value.message == f"{folder}/.env{message}"


def test_keys_of_the_env_file_are_secrets_wherever_they_end_up(folder: Path) -> None:
    write(folder, settings='web_reader_url = "https://r.example/${READER_TOKEN}/"\n', env=f"READER_TOKEN={KEY}\n")
    loaded = load(folder)
    assert loaded.secrets == (KEY,)
    assert find_row(loaded, "web_reader_url", {}).value == "https://r.example/****6789/"


@pytest.mark.parametrize(
    ("env", "mode", "warns"), [("X_API_KEY=1", 0o644, True), ("X=1", 0o644, False), ("X_TOKEN=1", 0o600, False)]
)
def test_an_env_file_with_keys_readable_by_others_causes_a_warning(
    folder: Path, env: str, mode: int, warns: bool
) -> None:
    write(folder, settings='[keys]\nopenai = "${HOME}"\n', env=env, mode=mode)
    warning = f"{folder}/.env contains API keys and is readable by other users; run: chmod 600 {folder}/.env"
    assert load(folder, {"HOME": "/x"}).warnings == ((warning,) if warns else ())


def test_variables_without_effect_in_the_env_file_are_reported(folder: Path) -> None:
    write(folder, env="AGENT_SANDBOX=/x\nAGENT_MODLE=y\n")
    assert load(folder).warnings == (
        f"{folder}/.env: AGENT_SANDBOX must be set in the environment (ignored)",
        f"{folder}/.env: unknown setting AGENT_MODLE, did you mean AGENT_MODEL? (ignored)",
    )


def test_a_named_pipe_in_place_of_a_file_does_not_hang(folder: Path) -> None:
    os.mkfifo(folder / ".env")
    with pytest.raises(ConfigError, match=r"\.env: not a regular file"):
        load(folder)
