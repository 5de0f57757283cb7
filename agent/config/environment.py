"""The environment as a layer: AGENT_* for every setting, and the providers' own names."""

from collections.abc import Iterator, Mapping

from agent.config.origin import KeyPath, Origin, SettingValue
from agent.config.values import setting_specs, validate_and_split
from agent.vocabulary.errors import ConfigError
from tooling.contract.json_codec import did_you_mean

_PREFIX = "AGENT_"
# Read by other parts of the program, not settings.
_RESERVED_VARIABLES = ("AGENT_CONFIG_DIR", "AGENT_SANDBOX", "AGENT_PROFILE")

# Weakest first: a later name overrides an earlier one for the same setting.
PROVIDER_VARIABLES: Mapping[str, KeyPath] = {
    "OPENAI_API_BASE": ("api_base",),
    "OPENAI_BASE_URL": ("api_base",),
    "OPENAI_MODEL": ("model",),
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
    "TAVILY_API_KEY": ("keys", "tavily"),
    "JINA_API_KEY": ("keys", "jina"),
    "ZAI_API_KEY": ("keys", "zai"),
    "BRAVE_API_KEY": ("keys", "brave"),
    "PROXY_URL": ("search_urls", "proxy"),
    "SEARXNG_URL": ("search_urls", "searxng"),
}


def read_environment(environ: Mapping[str, str]) -> tuple[SettingValue, ...]:
    """Return the settings the environment gives; an empty variable counts as not set."""
    return tuple(
        leaf for name, path in _known_variables() if environ.get(name) for leaf in _read_variable(name, path, environ)
    )


def check_unknown_variables(environ: Mapping[str, str], *, strict: bool) -> tuple[str, ...]:
    """Return a warning about AGENT_* names that mean nothing here, or raise ConfigError when strict."""
    # Build servers set AGENT_* names of their own, so all of them share one line and none stops a run by default.
    known = [name for name, _ in _known_variables() if name.startswith(_PREFIX)] + list(_RESERVED_VARIABLES)
    strange = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
    if not strange:
        return ()
    listed = "; ".join(_with_suggestion(name, known) for name in strange)
    message = f"environment: unknown {'setting' if len(strange) == 1 else 'settings'} {listed}"
    if strict:
        raise ConfigError(message, "unset them, or leave out --strict-config")
    return (f"{message} (ignored)",)


def _with_suggestion(name: str, known: list[str]) -> str:
    # Compared without the prefix all of them share, which would make any two names look alike.
    bare = {other.removeprefix(_PREFIX): other for other in known}
    hint = did_you_mean(name.removeprefix(_PREFIX), bare)
    return name + hint.replace("did you mean ", f"did you mean {_PREFIX}")


def _known_variables() -> Iterator[tuple[str, KeyPath]]:
    yield from PROVIDER_VARIABLES.items()
    for setting in setting_specs():
        yield f"{_PREFIX}{setting.upper()}", (setting,)


def _read_variable(name: str, path: KeyPath, environ: Mapping[str, str]) -> tuple[SettingValue, ...]:
    origin = Origin(layer="environment", where=name)
    return validate_and_split(
        SettingValue(path=path, value=environ[name], origin=origin, source=f"environment {name}", is_text=True)
    )
