"""The settings of queue, workers and service: names, defaults, layers and checks."""

from pathlib import Path

import pytest

from agent.config.load import load_settings
from agent.config.secrets import is_secret
from agent.config.service_settings import PLACEHOLDER_TOKEN, ServiceSettings, load_service_settings
from agent.config.show import find_row, setting_rows
from agent.config.values import setting_names
from agent.vocabulary.errors import ConfigError, UsageError

# Name, default, another value as text, that value.
KEYS = (
    ("app_name", "Executor Manager", "Night shift", "Night shift"),
    ("app_version", "0.1.0", "2", "2"),
    ("host", "127.0.0.1", "0.0.0.0", "0.0.0.0"),
    ("port", 8001, "9000", 9000),
    ("debug", False, "true", True),
    ("backend_url", "http://localhost:8000", "http://b", "http://b"),
    ("executor_url", "http://localhost:8080", "http://e", "http://e"),
    ("callback_base_url", "http://localhost:8001", "http://c", "http://c"),
    ("max_concurrent_tasks", 5, "7", 7),
    ("task_timeout_seconds", 3600, "1", 1),
    ("retry_attempts", 3, "1", 1),
    ("retry_delay_seconds", 60, "0", 0),
    ("callback_token", PLACEHOLDER_TOKEN, "one two three", "one two three"),
    ("internal_api_token", PLACEHOLDER_TOKEN, "one two three", "one two three"),
    ("task_pull_enabled", True, "false", False),
    ("task_pull_interval_seconds", 2, "0.5", 0.5),
    ("task_claim_lease_seconds", 30, "5", 5),
    ("task_pull_immediate_enabled", True, "false", False),
    ("task_pull_immediate_interval_seconds", None, "2", 2),
    ("task_pull_scheduled_enabled", True, "false", False),
    ("task_pull_scheduled_interval_seconds", None, "2", 2),
    ("task_pull_nightly_enabled", True, "false", False),
    ("task_pull_nightly_poll_interval_seconds", 2, "9", 9),
    ("task_pull_nightly_timezone", "UTC", "Asia/Tokyo", "Asia/Tokyo"),
    ("task_pull_nightly_start_hour", 2, "23", 23),
    ("task_pull_nightly_start_minute", 0, "30", 30),
    ("task_pull_nightly_window_minutes", 360, "120", 120),
    ("anthropic_token", "", "token", "token"),
    ("anthropic_base_url", "https://api.anthropic.com", "http://a", "http://a"),
    ("default_model", "claude-sonnet-4-20250514", "m", "m"),
    ("max_executor_containers", 10, "2", 2),
    ("executor_image", "opencowork/executor:latest", "i", "i"),
    ("executor_warm_containers", 0, "2", 2),
    ("executor_max_tasks", 50, "1", 1),
    ("executor_memory_mb", None, "4096", 4096),
    ("executor_cpus", None, "2", 2),
    ("workspace_root", "", "/srv", "/srv"),
    ("workspace_cleanup_enabled", False, "true", True),
    ("workspace_cleanup_interval_hours", 24, "1", 1),
    ("workspace_max_age_hours", 24, "1", 1),
    ("workspace_archive_enabled", True, "false", False),
    ("workspace_archive_days", 7, "1", 1),
    ("workspace_ignore_dot_files", True, "false", False),
    ("s3_endpoint", None, "http://s", "http://s"),
    ("s3_access_key", None, "k", "k"),
    ("s3_secret_key", None, "k", "k"),
    ("s3_region", "us-east-1", "eu", "eu"),
    ("s3_bucket", None, "b", "b"),
    ("s3_force_path_style", True, "false", False),
)


def load(environ: dict[str, str] | None = None, *assignments: str, folder: Path | None = None) -> ServiceSettings:
    loaded = load_settings(environ=environ or {}, config_dir=folder, assignments=assignments, bare=folder is None)
    return load_service_settings(loaded, environ or {}, folder=folder).settings


@pytest.mark.parametrize(("name", "default", "text", "value"), KEYS)
def test_every_setting_has_its_default_and_is_set_by_file_and_variable(
    name: str, default: object, text: str, value: object, tmp_path: Path
) -> None:
    assert getattr(load(), name) == default
    assert getattr(load({name.upper(): text}), name) == value
    assert getattr(load({f"AGENT_{name.upper()}": text}), name) == value
    quoted = text if text in ("true", "false") or isinstance(value, (int, float)) else f'"{text}"'
    (tmp_path / "config.toml").write_text(f"[service]\n{name} = {quoted}\n")
    assert getattr(load(folder=tmp_path), name) == value


def test_a_flag_comes_before_a_variable_and_a_variable_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[service]\nport = 1\n")
    (tmp_path / ".env").write_text("PORT=2\n")
    assert load(folder=tmp_path).port == 2
    assert load({"PORT": "3"}, folder=tmp_path).port == 3
    assert load({"PORT": "3"}, "service.port=4", folder=tmp_path).port == 4


def test_the_key_of_executors_has_the_name_that_others_use() -> None:
    assert load({"ANTHROPIC_AUTH_TOKEN": "sk-9"}).anthropic_token == "sk-9"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_pull_nightly_start_hour", "25"),
        ("task_pull_nightly_start_hour", "-1"),
        ("task_pull_nightly_start_minute", "60"),
        ("task_pull_nightly_window_minutes", "0"),
        ("task_pull_nightly_timezone", "Mars/Base"),
        ("max_concurrent_tasks", "0"),
        ("max_concurrent_tasks", "many"),
        ("retry_delay_seconds", "-1"),
        ("port", "65536"),
        ("debug", "perhaps"),
    ],
)
def test_an_impossible_value_is_refused_with_its_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load({name.upper(): value})


def test_an_unknown_setting_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[service]\nports = 1\n")
    with pytest.raises(ConfigError, match="unknown setting ports, did you mean port"):
        load(folder=tmp_path)
    with pytest.raises(UsageError, match="expected at least 1"):
        load({}, "service.retry_attempts=0")


def test_all_are_shown_and_secrets_are_masked() -> None:
    environ = {"S3_SECRET_KEY": "a-very-long-secret", "DATABASE_URL": "postgresql://u:pass@h/d"}
    loaded = load_settings(environ=environ, bare=True)
    rows = {row.name: row for row in setting_rows(loaded, environ)}
    assert {f"service.{name}" for name in setting_names(ServiceSettings)} <= rows.keys()
    assert rows["service.s3_secret_key"].text == "****cret"
    assert "pass" not in rows["service.database_url"].text
    assert rows["service.internal_api_token"].text == PLACEHOLDER_TOKEN
    assert str(find_row(loaded, "service.s3_secret_key", environ).origin) == "environment S3_SECRET_KEY"
    assert is_secret(("service", "internal_api_token"))


def test_variables_of_the_service_are_known_everywhere() -> None:
    assert load_settings(environ={"AGENT_MAX_CONCURRENT_TASKS": "2"}, bare=True, strict=True)


@pytest.mark.parametrize("variables", [{"DEBUG": "true"}, {"LOG_LEVEL": "debug"}])
def test_debug_gives_a_detailed_log(variables: dict[str, str]) -> None:
    assert load_settings(environ=variables, bare=True).settings.log_level == "debug"
