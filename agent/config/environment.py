"""Environment variables as a settings layer: AGENT_* for every setting, and the names providers document."""

from collections.abc import Iterator, Mapping
from typing import Literal

from agent.config.origin import KeyPath, Origin, SettingValue
from agent.config.user_dirs import FOLDER_VARIABLES
from agent.config.values import setting_names, validate_and_split
from agent.vocabulary.errors import ConfigError
from tooling.contract.json_codec import did_you_mean
from tooling.web.settings import SEARCH_VARIABLES

_PREFIX = "AGENT_"
# Known, but not settings.
_RESERVED_VARIABLES = ("AGENT_PROFILE", *FOLDER_VARIABLES)

OPENAI_MODEL, ANTHROPIC_MODEL = "OPENAI_MODEL", "ANTHROPIC_MODEL"
# Every provider variable and the setting it fills. Weakest first: for the same setting, the later name wins.
PROVIDER_VARIABLES: Mapping[str, KeyPath] = {
    "ANTHROPIC_BASE_URL": ("api_bases", "anthropic"),
    ANTHROPIC_MODEL: ("model",),
    "OPENAI_API_BASE": ("api_base",),
    "OPENAI_BASE_URL": ("api_base",),
    OPENAI_MODEL: ("model",),
    "OPENAI_API_KEY": ("keys", "openai"),
    "ANTHROPIC_API_KEY": ("keys", "anthropic"),
    "OPENROUTER_API_KEY": ("keys", "openrouter"),
    "DEEPSEEK_API_KEY": ("keys", "deepseek"),
    "GROQ_API_KEY": ("keys", "groq"),
    "MISTRAL_API_KEY": ("keys", "mistral"),
    "TOGETHERAI_API_KEY": ("keys", "together"),
    "TOGETHER_API_KEY": ("keys", "together"),
    "GOOGLE_API_KEY": ("keys", "gemini"),
    "GEMINI_API_KEY": ("keys", "gemini"),
    "XAI_API_KEY": ("keys", "xai"),
    "COHERE_API_KEY": ("keys", "cohere"),
    "FIREWORKS_API_KEY": ("keys", "fireworks_ai"),
    "PERPLEXITY_API_KEY": ("keys", "perplexity"),
    "CEREBRAS_API_KEY": ("keys", "cerebras"),
    **SEARCH_VARIABLES,
}

# Variables that many programs use; unknown values are ignored. DEBUG has lower precedence.
_LOG_LEVELS: Mapping[str, Mapping[str, str]] = {
    "DEBUG": dict.fromkeys(("1", "true", "yes", "on"), "debug"),
    "LOG_LEVEL": {
        "trace": "debug",
        "debug": "debug",
        "info": "info",
        "warn": "warning",
        "warning": "warning",
        "error": "error",
        "critical": "error",
        "fatal": "error",
        "off": "off",
    },
}


def is_shared_place(setting: str, environ: Mapping[str, str]) -> bool:
    """Return whether the machine is shared: according to the setting, or because this is CI."""
    if setting != "auto":
        return setting == "yes"
    return environ.get("CI", "").lower() not in ("", "0", "false", "no")


def key_variables(provider: str) -> tuple[str, ...]:
    """Return the variables that hold a provider's API key, the preferred one first."""
    return tuple(name for name, path in PROVIDER_VARIABLES.items() if path == ("keys", provider))[::-1]


def read_environment(
    environ: Mapping[str, str], layer: Literal["environment", ".env"] = "environment"
) -> tuple[SettingValue, ...]:
    """Return the settings given by variables; an empty variable counts as unset."""
    own = (
        value
        for name, path in _known_variables()
        if environ.get(name)
        for value in _read_variable(name, path, environ[name].strip(), layer)
    )
    return (*_read_log_level(environ, layer), *own)


def _read_log_level(environ: Mapping[str, str], layer: Literal["environment", ".env"]) -> Iterator[SettingValue]:
    for name, levels in _LOG_LEVELS.items():
        if level := levels.get(environ.get(name, "").strip().lower()):
            origin = Origin(layer=layer, where=name)
            yield SettingValue(path=("log_level",), value=level, origin=origin, source=f"{layer} {name}", is_text=True)


def check_unknown_variables(
    environ: Mapping[str, str], *, strict: bool, source: str = "environment"
) -> tuple[str, ...]:
    """Return a warning about unknown AGENT_* variables, or raise ConfigError if `strict`."""
    # CI servers set other AGENT_* variables: they share one line and do not stop a run by default.
    known = [name for name, _ in _known_variables() if name.startswith(_PREFIX)] + list(_RESERVED_VARIABLES)
    unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
    if unknown:
        of_service = _service_variables()
        unknown = [name for name in unknown if name not in of_service]
    if not unknown:
        return ()
    names = "; ".join(_with_suggestion(name, known) for name in unknown)
    message = f"{source}: unknown {'setting' if len(unknown) == 1 else 'settings'} {names}"
    if strict:
        raise ConfigError(message, "unset them, or omit --strict-config")
    return (f"{message} (ignored)",)


def _service_variables() -> list[str]:
    from agent.config.service_settings import ServiceSettings

    return [f"{_PREFIX}{name.upper()}" for name in setting_names(ServiceSettings)]


def _with_suggestion(name: str, known: list[str]) -> str:
    # Without the shared prefix, which would make any two names look similar.
    bare = {other.removeprefix(_PREFIX): other for other in known}
    hint = did_you_mean(name.removeprefix(_PREFIX), bare)
    return name + hint.replace("did you mean ", f"did you mean {_PREFIX}")


def _known_variables() -> Iterator[tuple[str, KeyPath]]:
    yield from PROVIDER_VARIABLES.items()
    for setting in setting_names():
        yield f"{_PREFIX}{setting.upper()}", (setting,)


def _read_variable(
    name: str, path: KeyPath, value: str, layer: Literal["environment", ".env"]
) -> tuple[SettingValue, ...]:
    if name == ANTHROPIC_MODEL and not value.startswith(("claude-", "anthropic/")):
        # Any other name does not identify the provider.
        value = f"anthropic/{value}"
    origin = Origin(layer=layer, where=name)
    return validate_and_split(
        SettingValue(path=path, value=value, origin=origin, source=f"{layer} {name}", is_text=True)
    )
