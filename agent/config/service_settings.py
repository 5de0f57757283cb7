"""The settings of queue, workers and service: the table `[service]` of the file, or environment variables.

They are a separate table, because `agent run` needs none of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from agent.config.env_file import ENV_FILE, read_env_file
from agent.config.load import LoadedSettings
from agent.config.origin import DEFAULT, LayerName, Origin, SettingValue
from agent.config.settings import Limits
from agent.config.user_dirs import config_dir
from agent.config.values import setting_names, validate
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode

TABLE = "service"
# The publicly known default of similar programs.
PLACEHOLDER_TOKEN = "change-this-token-in-production"
_PREFIX = "AGENT_"
_COUNT = Limits(ge=1)
_POSITIVE = Limits(gt=0)
_NOT_NEGATIVE = Limits(ge=0)
# Aliases of settings.
_ALIASES = {"anthropic_token": "ANTHROPIC_AUTH_TOKEN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """All settings of queue, workers and service; the names contain the units."""

    app_name: Annotated[str, "name in the API's description"] = "Executor Manager"
    app_version: Annotated[str, "version in the API's description"] = "0.1.0"
    host: Annotated[str, "address that `agent serve` listens on"] = "127.0.0.1"
    port: Annotated[int, "port that `agent serve` listens on; 0 chooses one", Limits(ge=0, le=65535)] = 8001
    allowed_hosts: Annotated[tuple[str, ...], "further host names under which `agent serve` is reached"] = ()
    allowed_origins: Annotated[tuple[str, ...], "origins of other pages that may call `agent serve` (CORS)"] = ()
    tls_cert: Annotated[str, "file with the TLS certificate of `agent serve`"] = ""
    tls_key: Annotated[str, "file with the key of that certificate"] = ""
    requests_per_second: Annotated[float, "requests that `agent serve` takes from one address", _POSITIVE] = 100.0
    max_request_kb: Annotated[int, "largest request that `agent serve` takes, in kilobytes", _COUNT] = 1000
    debug: Annotated[bool, "write a detailed log, like `log_level` debug"] = False
    backend_url: Annotated[str, "address of a front end that tasks belong to"] = "http://localhost:8000"
    executor_url: Annotated[str, "address of an executor that is not in a container"] = "http://localhost:8080"
    callback_base_url: Annotated[str, "address under which executors reach this service"] = "http://localhost:8001"
    database_url: Annotated[str, "PostgreSQL database of the queue; a file in the data folder if unset"] = ""
    max_concurrent_tasks: Annotated[int, "tasks that one worker runs at the same time", _COUNT] = 5
    task_timeout_seconds: Annotated[float, "time limit of a task, without waiting for answers", _POSITIVE] = 3600.0
    retry_attempts: Annotated[int, "how often a task is tried if it fails for a reason that may pass", _COUNT] = 3
    retry_delay_seconds: Annotated[float, "pause between two attempts", _NOT_NEGATIVE] = 60.0
    question_timeout_seconds: Annotated[
        float, "how long a question or approval of a task waits; then it counts as not answered", _POSITIVE
    ] = 3600.0
    task_retention_days: Annotated[float, "ended tasks are deleted after this time; their sessions stay", _POSITIVE] = (
        30.0
    )
    callback_token: Annotated[str, "bearer token that executors send with their callbacks"] = PLACEHOLDER_TOKEN
    internal_api_token: Annotated[str, "bearer token of the API; made at the first start if unset"] = PLACEHOLDER_TOKEN
    task_pull_enabled: Annotated[bool, "whether workers take tasks at all"] = True
    task_pull_interval_seconds: Annotated[
        float, "how often a worker asks the database for tasks; those created on its machine wake it", _POSITIVE
    ] = 2.0
    task_claim_lease_seconds: Annotated[float, "a worker that is silent for so long loses its tasks", Limits(ge=1)] = (
        30.0
    )
    task_pull_immediate_enabled: Annotated[bool, "whether workers take tasks that start at once"] = True
    task_pull_immediate_interval_seconds: Annotated[
        float | None, "like `task_pull_interval_seconds`, for these tasks", _POSITIVE
    ] = None
    task_pull_scheduled_enabled: Annotated[bool, "whether workers take tasks that have a time"] = True
    task_pull_scheduled_interval_seconds: Annotated[
        float | None, "like `task_pull_interval_seconds`, for these tasks", _POSITIVE
    ] = None
    task_pull_nightly_enabled: Annotated[bool, "whether workers take nightly tasks"] = True
    task_pull_nightly_poll_interval_seconds: Annotated[
        float, "like `task_pull_interval_seconds`, for these tasks", _POSITIVE
    ] = 2.0
    task_pull_nightly_timezone: Annotated[str, "time zone of the nightly window, such as Europe/Berlin"] = "UTC"
    task_pull_nightly_start_hour: Annotated[int, "hour at which the window opens", Limits(ge=0, le=23)] = 2
    task_pull_nightly_start_minute: Annotated[int, "minute at which the window opens", Limits(ge=0, le=59)] = 0
    task_pull_nightly_window_minutes: Annotated[
        int, "how long it is open; it may go past midnight", Limits(ge=1, le=1440)
    ] = 360
    anthropic_token: Annotated[str, "key for executors in containers"] = ""
    anthropic_base_url: Annotated[str, "address of the provider for executors in containers"] = (
        "https://api.anthropic.com"
    )
    default_model: Annotated[str, "model of executors in containers"] = "claude-sonnet-4-20250514"
    max_executor_containers: Annotated[int, "executors in containers at the same time", _COUNT] = 10
    executor_image: Annotated[str, "image of executors in containers"] = "opencowork/executor:latest"
    executor_warm_containers: Annotated[int, "containers that are kept ready for tasks", _NOT_NEGATIVE] = 0
    executor_max_tasks: Annotated[int, "a persistent container is replaced after this many tasks", _COUNT] = 50
    executor_memory_mb: Annotated[int | None, "memory of a container in MiB; no limit if unset", Limits(ge=64)] = None
    executor_cpus: Annotated[float | None, "CPUs of a container; no limit if unset", _POSITIVE] = None
    workspace_root: Annotated[str, "folder of workspaces; `workspaces` in the data folder if unset"] = ""
    workspace_cleanup_enabled: Annotated[bool, "whether old workspaces are removed"] = False
    workspace_cleanup_interval_hours: Annotated[float, "how often old workspaces are looked for", _POSITIVE] = 24.0
    workspace_max_age_hours: Annotated[float, "a workspace that was not used for so long is old", _POSITIVE] = 24.0
    workspace_archive_enabled: Annotated[bool, "whether a workspace is archived before it is removed"] = True
    workspace_archive_days: Annotated[float, "how long archives are kept", _POSITIVE] = 7.0
    workspace_ignore_dot_files: Annotated[bool, "whether listings leave out files that begin with a dot"] = True
    s3_endpoint: Annotated[str | None, "address of the object storage; Amazon's if unset"] = None
    s3_access_key: Annotated[str | None, "key of the object storage"] = None
    s3_secret_key: Annotated[str | None, "secret of that key"] = None
    s3_region: Annotated[str, "region of the object storage"] = "us-east-1"
    s3_bucket: Annotated[str | None, "bucket for archives and for sessions that change machines"] = None
    s3_force_path_style: Annotated[bool, "whether the bucket is part of the path instead of the host"] = True

    @property
    def has_own_token(self) -> bool:
        """Whether the user chose the token of the API."""
        return self.internal_api_token not in ("", PLACEHOLDER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedService:
    """The settings and their origins."""

    settings: ServiceSettings
    origins: Mapping[str, Origin]


def load_service_settings(
    loaded: LoadedSettings, environ: Mapping[str, str], *, folder: Path | None = None
) -> LoadedService:
    """Return the settings of the service: file < .env < environment < --set. Raises ConfigError naming the setting."""
    variables = read_env_file((folder or config_dir(environ)) / ENV_FILE).variables if not loaded.is_bare else {}
    layers: tuple[tuple[LayerName, Mapping[str, str]], ...] = ((".env", variables), ("environment", environ))
    values = dict(loaded.settings.service)
    origins = {name: loaded.origins.get(f"{TABLE}.{name}", DEFAULT) for name in setting_names(ServiceSettings)}
    for name in setting_names(ServiceSettings):
        for layer, given in layers:
            variable = next((key for key in _variables(name) if given.get(key, "").strip()), "")
            if not variable or origins[name].layer == "flag":
                continue
            origins[name] = Origin(layer=layer, where=variable)
            source = f"{layer} {variable}"
            text = given[variable].strip()
            found = SettingValue(path=(TABLE, name), value=text, origin=origins[name], source=source, is_text=True)
            values[name] = validate(found).value
    settings = decode(ServiceSettings, values)
    _check_zone(settings, origins)
    return LoadedService(settings=settings, origins=origins)


def _variables(name: str) -> tuple[str, ...]:
    upper = name.upper()
    return tuple(filter(None, (f"{_PREFIX}{upper}", upper, _ALIASES.get(name, ""))))


def _check_zone(settings: ServiceSettings, origins: Mapping[str, Origin]) -> None:
    name = "task_pull_nightly_timezone"
    if settings.task_pull_nightly_timezone == ServiceSettings().task_pull_nightly_timezone:
        # A small image may lack the time zone database.
        return
    try:
        ZoneInfo(settings.task_pull_nightly_timezone)
    except (ValueError, OSError, KeyError) as error:
        zone = settings.task_pull_nightly_timezone
        raise ConfigError(
            f"{origins[name]}: {name}: there is no time zone {zone!r}", "for example Europe/Berlin"
        ) from error
