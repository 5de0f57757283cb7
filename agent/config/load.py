"""Settings in layers: defaults < user file < profile < .env < environment < flags, each value with its origin."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path

from agent.config.env_file import ENV_FILE, EnvFile, expand, read_env_file
from agent.config.environment import (
    ANTHROPIC_MODEL,
    OPENAI_MODEL,
    PROVIDER_VARIABLES,
    check_unknown_variables,
    read_environment,
)
from agent.config.origin import DEFAULT, KeyPath, Origin, SettingValue
from agent.config.profiles import BUILTIN_PROFILES, builtin_values, step_profile_values
from agent.config.secrets import collect_secrets
from agent.config.settings import MODEL_SETTINGS, Settings
from agent.config.user_dirs import config_dir as user_config_dir
from agent.config.user_file import PROFILES, UserFile, read_user_file
from agent.config.values import unflatten, validate, validate_and_split
from agent.vocabulary.errors import ConfigError, UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode, did_you_mean

_IMAGE_FLAG = "--image"
_FLAG_NAMES = {"timeout_s": "--timeout", "command_timeout_s": "--timeout", "docker_image": _IMAGE_FLAG}
_ADDITIVE = ("allow", "deny", "allow_net", "deny_net")


def read_flags(
    flags: Mapping[str, object], assignments: Sequence[str], *, below: Mapping[KeyPath, SettingValue]
) -> tuple[SettingValue, ...]:
    """Return the settings given as flags; a dedicated flag overrides --set, None means not given."""
    values: list[SettingValue] = []
    for text in assignments:
        with _as_usage_error():
            values += _parse_assignment(text)
    for name, value in flags.items():
        if value is not None and not (name in _ADDITIVE and not value):
            values.append(_parse_flag(name, value, below, values))
    return tuple(values)


def _parse_assignment(text: str) -> tuple[SettingValue, ...]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {key}: expected key=value")
    path = tuple(part.strip() for part in key.split("."))
    origin = Origin(layer="flag", where="--set")
    return validate_and_split(SettingValue(path=path, value=value.strip(), origin=origin, source="--set", is_text=True))


def _parse_flag(
    name: str, value: object, below: Mapping[KeyPath, SettingValue], given: Sequence[SettingValue]
) -> SettingValue:
    flag = _FLAG_NAMES.get(name, "--" + name.replace("_", "-"))
    if name in _ADDITIVE and isinstance(value, (list, tuple)):
        # A flag must not silently lift a denial in the user's file, so rules accumulate.
        value = [*_existing_rules(name, below, given), *value]
    origin = Origin(layer="flag", where=flag)
    with _as_usage_error(f"{flag}: {name}: ", f"{flag}: "):
        return validate(SettingValue(path=(name,), value=value, origin=origin, source=flag, is_text=True))


@contextmanager
def _as_usage_error(prefix: str = "", shown: str = "") -> Iterator[None]:
    """Report a wrong value on the command line as wrong usage; `shown` replaces the `prefix` of its message."""
    try:
        yield
    except ConfigError as error:
        message = error.message.replace(prefix, shown, 1) if prefix else error.message
        raise UsageError(message, error.hint) from error


def _existing_rules(name: str, below: Mapping[KeyPath, SettingValue], given: Sequence[SettingValue]) -> list[object]:
    earlier = [below[(name,)]] if (name,) in below else []
    earlier += [value for value in given if value.path == (name,)]
    rules = earlier[-1].value if earlier else ()
    return list(rules) if isinstance(rules, (list, tuple)) else []


# A bare run ignores the files of users and projects, unless a flag says otherwise.
_BARE_OVERRIDES = tuple(
    SettingValue(path=(name,), value=value, origin=Origin(layer="flag", where="--bare"), source="flag --bare")
    for name, value in (("memory", False), ("project_notes", False), ("mcp", "never"))
)
_PROVIDERS = frozenset(path[1] for path in PROVIDER_VARIABLES.values() if path[0] == "keys")
_OPENAI_BASE = ("api_bases", "openai")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings of a run, the origin of each, warnings, and the texts to redact.

    `is_bare` means that the user's configuration was ignored.
    """

    settings: Settings
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...]
    secrets: tuple[str, ...]
    is_bare: bool = False


def load_settings(
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    assignments: Sequence[str] = (),
    profile: str | None = None,
    config_dir: Path | None = None,
    strict: bool = False,
    bare: bool = False,
) -> LoadedSettings:
    """Load the settings of a run, or raise ConfigError; `assignments` are the `key=value` texts of --set."""
    folder = config_dir or user_config_dir(environ)
    path = folder / "config.toml"
    file = UserFile(profiles={}) if bare else read_user_file(path)
    env_file = EnvFile(variables={}) if bare else read_env_file(folder / ENV_FILE)
    added = {name: value for name, value in env_file.variables.items() if name not in environ}
    variables = {**added, **environ}
    chosen = _profile_values(file, path, variables, profile, bare=bare)
    warnings = (
        *file.warnings,
        *env_file.warnings,
        *check_unknown_variables(environ, strict=strict),
        *check_unknown_variables(env_file.variables, strict=strict, source=str(folder / ENV_FILE)),
    )
    from_file = expand((*_step_profiles(file, variables), *file.values, *chosen), variables)
    merged = _by_path((*from_file, *read_environment(added, ".env"), *read_environment(environ)))
    if bare:
        merged |= _by_path(_BARE_OVERRIDES)
    merged |= _by_path(read_flags(flags or {}, assignments, below=merged))
    _assign_openai_base(merged)
    _drop_overridden_reasoning(merged)
    settings = decode(Settings, unflatten({path: given.value for path, given in merged.items()}))
    origins = _origins(merged)
    if origins["docker_image"].where == _IMAGE_FLAG and settings.backend != "docker":
        raise UsageError(f"--image has no effect with --backend {settings.backend}", "add --backend docker")
    return LoadedSettings(
        settings=settings,
        origins=origins,
        warnings=warnings,
        secrets=collect_secrets(settings, variables),
        is_bare=bare,
    )


def _profile_values(
    file: UserFile, path: Path, environ: Mapping[str, str], profile: str | None, *, bare: bool
) -> tuple[SettingValue, ...]:
    name = profile or ("" if bare else environ.get("AGENT_PROFILE"))
    if not name:
        return ()
    if name not in file.profiles and name in BUILTIN_PROFILES:
        return builtin_values(name)
    if bare:
        raise UsageError("--profile needs the settings file, which --bare ignores")
    if name not in file.profiles:
        source, wrong = ("--profile", UsageError) if profile else ("environment AGENT_PROFILE", ConfigError)
        known = [*file.profiles, *BUILTIN_PROFILES]
        raise wrong(
            f"{source}: unknown profile {name}{did_you_mean(name, known)}",
            f"known are {', '.join(dict.fromkeys(known))}; add one to {path} as a table [{PROFILES}.{name}]",
        )
    return file.profiles[name]


def _step_profiles(file: UserFile, variables: Mapping[str, str]) -> Iterator[SettingValue]:
    """Yield the profiles of the file as profiles of steps; one with an unset variable fails only when selected."""
    for value in step_profile_values(file.profiles):
        if not value.has_references:
            yield value
            continue
        with suppress(ConfigError):
            yield from expand((value,), variables)


def _by_path(values: Sequence[SettingValue]) -> dict[KeyPath, SettingValue]:
    return {value.path: value for value in values}


def _assign_openai_base(merged: dict[KeyPath, SettingValue]) -> None:
    """Keep a base URL set for OpenAI to OpenAI's models if another model belongs to another provider.

    Otherwise that provider's key would be sent to the wrong server.
    """
    base = merged.get(("api_base",))
    if base is None or base.origin.where not in PROVIDER_VARIABLES:
        return
    if any(map(_belongs_to_another_provider, filter(None, (merged.get((name,)) for name in MODEL_SETTINGS)))):
        del merged[("api_base",)]
        merged[_OPENAI_BASE] = replace(base, path=_OPENAI_BASE)


def _belongs_to_another_provider(model: SettingValue) -> bool:
    if model.origin.where in (OPENAI_MODEL, ANTHROPIC_MODEL):
        return model.origin.where == ANTHROPIC_MODEL
    return str(model.value).partition("/")[0] in _PROVIDERS - {"openai"}


def _drop_overridden_reasoning(merged: dict[KeyPath, SettingValue]) -> None:
    """Drop the settings for single models in the user's file if a flag sets the value for all models."""
    general = merged.get(("reasoning",))
    if general is None or general.origin.layer != "flag":
        return
    for path, given in tuple(merged.items()):
        if path[0] == "models" and path[-1] == "reasoning" and given.origin.layer != "flag":
            del merged[path]


def _origins(merged: Mapping[KeyPath, SettingValue]) -> dict[str, Origin]:
    origins = {field.name: DEFAULT for field in fields(Settings)}
    return origins | {given.name: given.origin for given in merged.values()}
