"""Loading settings: layers, origins and errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from agent.config.environment import key_variables
from agent.config.load import LoadedSettings, load_settings
from agent.config.origin import Origin
from agent.config.settings import ModelSettings, ProfileSettings, Settings
from agent.config.values import NOT_A_URL
from agent.vocabulary.errors import ConfigError, UsageError


class ConfigFolder:
    """A settings folder for a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "config.toml"

    def write(self, text: str) -> None:
        self.file.write_text(text)
        self.file.chmod(0o600)

    def load(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        flags: Mapping[str, object] | None = None,
        assignments: Sequence[str] = (),
        profile: str | None = None,
        strict: bool = False,
        bare: bool = False,
    ) -> LoadedSettings:
        return load_settings(
            environ=environ or {},
            flags=flags or {},
            assignments=assignments,
            profile=profile,
            config_dir=self.folder,
            strict=strict,
            bare=bare,
        )

    def load_error(self, environ: Mapping[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(environ)
        assert caught.value.exit_code == 52
        return caught.value.message.replace(str(self.folder), "")


@pytest.fixture
def home(tmp_path: Path) -> ConfigFolder:
    return ConfigFolder(tmp_path)


def test_without_input_all_settings_are_defaults(home: ConfigFolder) -> None:
    loaded = home.load()
    assert loaded.settings == Settings()
    assert {origin.layer for origin in loaded.origins.values()} == {"default"}
    assert (loaded.warnings, loaded.secrets) == ((), ())


def test_each_layer_overrides_the_one_below_and_is_named_as_origin(home: ConfigFolder) -> None:
    home.write('concurrency = 2\nmodel = "file"\n\n[profile.work]\nmodel = "profile"\n')
    environ = {"AGENT_MODEL": "environment"}
    seen = [
        home.load(bare=True),
        home.load(),
        home.load(profile="work"),
        home.load(environ, profile="work"),
        home.load(environ, profile="work", assignments=["model=assigned"]),
        home.load(environ, profile="work", assignments=["model=assigned"], flags={"model": "flag"}),
    ]
    assert [(loaded.settings.model, str(loaded.origins["model"])) for loaded in seen] == [
        ("", "default"),
        ("file", "config.toml:2"),
        ("profile", "profile work (config.toml:5)"),
        ("environment", "environment AGENT_MODEL"),
        ("assigned", "flag --set"),
        ("flag", "flag --model"),
    ]
    assert [loaded.settings.concurrency for loaded in seen] == [32, 2, 2, 2, 2, 2]


def test_a_profile_can_be_selected_by_the_environment(home: ConfigFolder) -> None:
    home.write('[profile.work]\nmodel = "m"\n')
    assert home.load({"AGENT_PROFILE": "work"}).settings.model == "m"


def test_an_unknown_profile_suggests_the_nearest_name(home: ConfigFolder) -> None:
    home.write('[profile.work]\nmodel = "m"\n')
    with pytest.raises(UsageError, match=r"--profile: unknown profile wrok, did you mean work\?"):
        home.load(profile="wrok")
    with pytest.raises(ConfigError, match=r"AGENT_PROFILE: unknown profile wrok, did you mean work\?"):
        home.load({"AGENT_PROFILE": "wrok"})


def test_bare_ignores_the_file_and_rejects_a_profile(home: ConfigFolder) -> None:
    home.write("this is not TOML")
    bare = home.load({"AGENT_PROFILE": "work"}, bare=True)
    assert bare.settings == Settings(memory=False, project_notes=False, mcp="never")
    assert str(bare.origins["memory"]) == "flag --bare"
    assert home.load(bare=True, assignments=("memory=true",)).settings == Settings(project_notes=False, mcp="never")
    with pytest.raises(UsageError):
        home.load(profile="work", bare=True)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("model", "openai/x", "openai/x"),
        ("concurrency", "3", 3),
        ("max_budget_usd", "1.5", 1.5),
        ("max_tokens", "none", None),
        ("allow", "ls, git status", ("ls", "git status")),
        ("deny", '["rm -rf, really"]', ("rm -rf, really",)),
        ("keys", '{"openai": "k"}', {"openai": "k"}),
        ("step_profiles", '{"fast": {"timeout_s": 5}}', {"fast": ProfileSettings(timeout_s=5.0)}),
    ],
)
def test_every_kind_of_setting_can_be_given_as_text(home: ConfigFolder, name: str, text: str, value: object) -> None:
    assert getattr(home.load({f"AGENT_{name.upper()}": text}).settings, name) == value
    assert getattr(home.load(assignments=[f"{name}={text}"]).settings, name) == value


def test_a_flag_for_reasoning_applies_to_all_models(home: ConfigFolder) -> None:
    home.write('reasoning = "low"\n[models."openai/gpt-5.2"]\nreasoning = "high"\n')
    settings = home.load().settings
    assert settings.reasoning == "low"
    assert settings.models == {"openai/gpt-5.2": ModelSettings(reasoning="high")}
    assert home.load({"AGENT_REASONING": "off"}).settings.models == settings.models
    flagged = home.load(flags={"reasoning": "off"}).settings
    assert (flagged.reasoning, flagged.models) == ("off", {})


def test_tables_of_several_layers_are_merged_by_entry(home: ConfigFolder) -> None:
    home.write('[keys]\nopenai = "file-key-1"\ngroq = "file-key-2"\n[step_profiles.fast]\ntimeout_s = 5\n')
    loaded = home.load({"OPENAI_API_KEY": "env-key-1"}, assignments=["step_profiles.fast.max_retries=0"])
    assert loaded.settings.keys == {"openai": "env-key-1", "groq": "file-key-2"}
    assert loaded.settings.step_profiles == {"fast": ProfileSettings(timeout_s=5.0, max_retries=0)}
    assert loaded.origins["keys.openai"] == Origin(layer="environment", where="OPENAI_API_KEY")
    assert loaded.origins["keys.groq"] == Origin(layer="file", where="config.toml:3")


def test_rules_given_as_flags_are_added_to_those_of_the_file(home: ConfigFolder) -> None:
    home.write('deny = ["rm"]\nallow = ["ls"]\n')
    settings = home.load(flags={"deny": ["mv"], "allow": []}).settings
    assert (settings.deny, settings.allow) == (("rm", "mv"), ("ls",))


def test_an_empty_variable_counts_as_unset(home: ConfigFolder) -> None:
    assert home.load({"AGENT_CONCURRENCY": "", "OPENAI_API_KEY": ""}).settings == Settings()


def test_provider_variables_are_read(home: ConfigFolder) -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_MODEL": "weak", "TOGETHERAI_API_KEY": "t"}
    settings = home.load(environ).settings
    assert (settings.api_base, settings.model, settings.keys) == ("http://127.0.0.1:1", "weak", {"together": "t"})
    assert home.load({**environ, "AGENT_MODEL": "strong"}).settings.model == "strong"


def test_the_preferred_variable_of_a_provider_wins(home: ConfigFolder) -> None:
    first, second = key_variables("together")
    assert home.load({second: "old-name", first: "new-name"}).settings.keys == {"together": "new-name"}
    assert key_variables("ollama") == ()


def test_the_openai_base_url_is_not_used_for_another_providers_model(home: ConfigFolder) -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1", "AGENT_MODEL": "anthropic/claude"}
    loaded = home.load(environ)
    assert (loaded.settings.api_base, loaded.origins["api_base"].layer) == ("", "default")


def test_the_openai_base_url_stays_with_openai_models_if_another_model_is_of_another_provider(
    home: ConfigFolder,
) -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1", "AGENT_MODEL": "gpt-5"}
    settings = home.load({**environ, "AGENT_PLANNER_MODEL": "anthropic/claude"}).settings
    assert (settings.api_base, settings.api_bases) == ("", {"openai": "http://127.0.0.1:1"})


def test_the_variables_of_anthropic_choose_its_server_and_model(home: ConfigFolder) -> None:
    environ = {
        "ANTHROPIC_API_KEY": "sk-ant-0123456789",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:2",
        "ANTHROPIC_MODEL": "claude-x",
        "OPENAI_BASE_URL": "http://127.0.0.1:1",
    }
    loaded = home.load(environ)
    assert (loaded.settings.model, str(loaded.origins["model"])) == ("claude-x", "environment ANTHROPIC_MODEL")
    assert loaded.settings.api_bases == {"anthropic": "http://127.0.0.1:2", "openai": "http://127.0.0.1:1"}
    assert home.load({"ANTHROPIC_MODEL": "my-proxy-model"}).settings.model == "anthropic/my-proxy-model"
    assert home.load({**environ, "OPENAI_MODEL": "gpt-x"}).settings.model == "gpt-x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\nmodle = "x"\n', "/config.toml:2: unknown setting modle, did you mean model?"),
        ('[profiles.w]\nmodl = "x"\n', "/config.toml:2: unknown setting modl, did you mean model?"),
        ('[profile.w]\nmodl = "x"\n', "/config.toml:2: unknown setting modl, did you mean model?"),
        (
            "[step_profiles.f]\ntimout_s = 1\n",
            "/config.toml:2: unknown setting step_profiles.f.timout_s, did you mean timeout_s?",
        ),
        ("model = 3\n", "/config.toml:1: model: expected text, got number 3"),
        ('concurrency = "8"\n', "/config.toml:1: concurrency: expected a whole number, got text '8'"),
        ("concurrency = -1\n", "/config.toml:1: concurrency: expected at least 1, got -1"),
        ("chunk_timeout_s = 0\n", "/config.toml:1: chunk_timeout_s: expected more than 0, got 0"),
        ("timeout_s = inf\n", "/config.toml:1: timeout_s: expected more than 0, got inf"),
        (
            "[step_profiles.f]\nmax_retries = -1\n",
            "/config.toml:2: step_profiles.f.max_retries: expected at least 0, got -1",
        ),
        (
            'approval_mode = "askk"\n',
            "/config.toml:1: approval_mode: expected one of ask, auto-edit, never, yolo, plan, review, got 'askk'",
        ),
        (
            'api_base = "localhost"\n',
            f"/config.toml:1: api_base: {NOT_A_URL}",
        ),
        ('[api_bases]\nopenai = "localhost"\n', f"/config.toml:2: api_bases.openai: {NOT_A_URL}"),
        ('model = "what is this?"\n', "/config.toml:1: model: expected provider/name, got 'what is this?'"),
        ("profile = 3\n", "/config.toml: profile: expected tables such as [profiles.work]"),
        ("[model]\n", "/config.toml:1: model: expected text, got object {}"),
    ],
)
def test_an_invalid_file_is_rejected_with_place_and_expectation(home: ConfigFolder, text: str, message: str) -> None:
    home.write(text)
    assert home.load_error() == message


def test_invalid_toml_is_reported_with_file_and_line(home: ConfigFolder) -> None:
    home.write('model = "x"\nconcurrency = = 2\n')
    assert "/config.toml: not valid TOML" in (message := home.load_error()) and "line 2" in message


def test_an_unreadable_file_is_an_error(home: ConfigFolder) -> None:
    home.file.mkdir()
    assert home.load_error().startswith("cannot read /config.toml")
    home.file.rmdir()
    home.file.write_bytes(b"model = '\xff'")
    assert home.load_error() == "cannot read /config.toml: it is not UTF-8 text"


def test_invalid_values_are_reported_with_variable_or_flag(home: ConfigFolder) -> None:
    assert home.load_error({"AGENT_CONCURRENCY": "many"}) == (
        "environment AGENT_CONCURRENCY: concurrency: expected a whole number, got text 'many'"
    )
    assert home.load_error({"AGENT_STEP_PROFILES": '{"f": {"timeout_s": -1}}'}) == (
        "environment AGENT_STEP_PROFILES: step_profiles.f.timeout_s: expected more than 0, got -1"
    )
    assert (
        home.load_error({"AGENT_KEYS": "{broken"}) == "environment AGENT_KEYS: keys: expected a table written as JSON"
    )
    with pytest.raises(UsageError, match=r"--set: unknown setting modle, did you mean model\?"):
        home.load(assignments=["modle=x"])
    with pytest.raises(UsageError, match="expected key=value"):
        home.load(assignments=["model"])


def test_unknown_agent_variables_warn_once_and_fail_in_strict_mode(home: ConfigFolder) -> None:
    environ = {"AGENT_MODLE": "x", "AGENT_OS": "y"}
    assert home.load(environ).warnings == (
        "environment: unknown settings AGENT_MODLE, did you mean AGENT_MODEL?; AGENT_OS (ignored)",
    )
    with pytest.raises(ConfigError, match="AGENT_MODLE"):
        home.load(environ, strict=True)


def test_variables_for_folders_are_known(home: ConfigFolder) -> None:
    assert home.load({"AGENT_SANDBOX": "/x", "AGENT_CONFIG_DIR": "/y"}, strict=True).warnings == ()


def test_nothing_is_read_from_the_workspace(
    home: ConfigFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    for name in (
        "config.toml",
        ".env",
        ".agent.toml",
        "agent/config.toml",
        ".config/agent/config.toml",
        ".agent/config.toml",
    ):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text('model = "evil"\nAGENT_MODEL="evil"\n')
    monkeypatch.chdir(workspace)
    user = tmp_path / "user"
    for environ in (
        {"HOME": str(user)},
        {"HOME": str(user), "XDG_CONFIG_HOME": ".config"},
        {"HOME": str(user), "XDG_CONFIG_HOME": ""},
    ):
        assert load_settings(environ=environ).settings == Settings()
