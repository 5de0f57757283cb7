"""The table of providers, and resolving a model name to an endpoint."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from agent.config.environment import key_variables
from agent.config.settings import Settings
from agent.model.faults import ModelFault
from tooling.contract.fast_dataclass import dataclass

Wire: TypeAlias = Literal["openai", "anthropic", "litellm"]
# The form in which a server takes the amount of reasoning; `effort` is OpenAI's `reasoning_effort`.
ReasoningOption: TypeAlias = Literal["effort", "effort_object", "thinking", "on_or_off", "template"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider: base URL, wire format, names, and its deviations from the others."""

    name: str
    base_url: str
    wire: Wire = "openai"
    aliases: tuple[str, ...] = ()
    model_prefixes: tuple[str, ...] = ()
    # Mistral rejects `stream_options` and always sends usage.
    has_usage_option: bool = True
    # OpenAI routes requests with the same `prompt_cache_key` to the same cache.
    has_cache_key: bool = False
    reasoning_option: ReasoningOption = "effort"
    # DeepSeek rejects a history whose tool-calling turns lack their reasoning.
    should_resend_reasoning: bool = False

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables for the API key, the preferred one first."""
        return key_variables(self.name)

    @property
    def needs_key(self) -> bool:
        return bool(self.key_variables)

    @property
    def is_local(self) -> bool:
        """Whether this is a server on the user's machine, which may have any address."""
        return "127.0.0.1" in self.base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The endpoint of a model: wire format, base URL, key, and the server's name for the model."""

    provider: str
    wire: Wire
    base_url: str
    key: str = field(repr=False)
    model: str


PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        base_url="https://api.openai.com/v1",
        model_prefixes=("gpt-", "chatgpt-", "o1", "o3", "o4", "codex-"),
        has_cache_key=True,
    ),
    Provider(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        wire="anthropic",
        model_prefixes=("claude-",),
    ),
    Provider(name="openrouter", base_url="https://openrouter.ai/api/v1", reasoning_option="effort_object"),
    Provider(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        model_prefixes=("deepseek-chat", "deepseek-reasoner"),
        reasoning_option="thinking",
        should_resend_reasoning=True,
    ),
    Provider(name="groq", base_url="https://api.groq.com/openai/v1"),
    Provider(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        has_usage_option=False,
        reasoning_option="on_or_off",
    ),
    Provider(
        name="together",
        base_url="https://api.together.xyz/v1",
        aliases=("together_ai",),
    ),
    Provider(name="ollama", base_url="http://127.0.0.1:11434/v1", aliases=("ollama_chat",)),
    Provider(name="lm-studio", base_url="http://127.0.0.1:1234/v1", aliases=("lm_studio", "lmstudio")),
    Provider(name="vllm", base_url="http://127.0.0.1:8000/v1", aliases=("hosted_vllm",), reasoning_option="template"),
    Provider(
        name="llamacpp",
        base_url="http://127.0.0.1:8080/v1",
        aliases=("llama.cpp", "llama-cpp", "llama_cpp"),
        reasoning_option="template",
    ),
)

GENERIC = Provider(name="api_base", base_url="")

_BY_NAME: dict[str, Provider] = {
    name: provider for provider in PROVIDERS for name in (provider.name, *provider.aliases)
}


_OPENAI = _BY_NAME["openai"]


def get_provider(name: str) -> Provider:
    """Return a provider by name or alias, GENERIC if it is not in the table."""
    return _BY_NAME.get(name, GENERIC)


def resolve(model: str, settings: Settings) -> Endpoint:
    """Return the endpoint for `model`, or raise ModelFault if its key is missing."""
    prefix, slash, rest = model.partition("/")
    named = _BY_NAME.get(prefix) if slash and rest else None
    name = rest if named else model
    provider = named or _find_by_model_prefix(model)
    if provider is None and not slash and settings.api_bases.get(_OPENAI.name):
        provider = _OPENAI
    if provider and (own_base := _find_for(provider, settings.api_bases)):
        key = _find_for(provider, settings.keys) or settings.api_key
        return _build_endpoint(provider, base_url=_own_base_url(provider, own_base), key=key, model=name)
    if settings.api_base and (named is None or named.is_local or named.name in ("openai", "anthropic")):
        return _resolve_at_api_base(name, named, settings)
    if provider is None:
        key = settings.keys.get(prefix, "") or settings.api_key
        base_url = settings.api_bases.get(prefix, "")
        return Endpoint(provider=prefix if slash else "", wire="litellm", base_url=base_url, key=key, model=model)
    key = _find_for(provider, settings.keys) or settings.api_key
    if provider.needs_key and not key:
        raise ModelFault("missing", f"set {provider.key_variables[0]} to use {model}")
    return _build_endpoint(provider, base_url=provider.base_url, key=key, model=name)


def key_names(models: Iterable[str], settings: Settings) -> tuple[str, ...]:
    """Return the names of the keys that are sent to the providers of these models."""
    names: dict[str, None] = {}
    for model in models:
        try:
            endpoint = resolve(model, settings)
        except ModelFault:
            # The request itself reports the error.
            continue
        if endpoint.key:
            names[next(iter(key_variables(endpoint.provider)), "api_key")] = None
    return tuple(names)


def _resolve_at_api_base(model: str, named: Provider | None, settings: Settings) -> Endpoint:
    # A model name without prefix does not determine the wire format: `api_base` is OpenAI-compatible unless the prefix
    # is `anthropic/`, and takes OpenAI's key like all programs that know OPENAI_BASE_URL. Keys of other providers must
    # not be sent there.
    provider = named or GENERIC
    key = settings.api_key or _find_for(named or _OPENAI, settings.keys)
    return _build_endpoint(provider, base_url=_normalize_base_url(settings.api_base), key=key, model=model)


def _own_base_url(provider: Provider, api_base: str) -> str:
    base = _normalize_base_url(api_base)
    # Anthropic's clients take a base URL without the version, regardless of its path.
    return base if provider.wire != "anthropic" or base.endswith("/v1") else f"{base}/v1"


def _normalize_base_url(api_base: str) -> str:
    """Remove the trailing slash; add `/v1`, which all servers use, to a URL without a path."""
    try:
        parts = urlsplit(api_base)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ModelFault("connect", f"api_base {api_base!r} is not a URL such as http://127.0.0.1:8080/v1")
    base = api_base.rstrip("/")
    return base if parts.path.strip("/") else f"{base}/v1"


def _build_endpoint(provider: Provider, *, base_url: str, key: str, model: str) -> Endpoint:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ModelFault(
            "auth", f"the key for {provider.name} contains invalid characters; check that you pasted it correctly"
        )
    return Endpoint(provider=provider.name, wire=provider.wire, base_url=base_url, key=key, model=model)


def _find_by_model_prefix(model: str) -> Provider | None:
    return next(
        (provider for provider in PROVIDERS if provider.model_prefixes and model.startswith(provider.model_prefixes)),
        None,
    )


def _find_for(provider: Provider, values: Mapping[str, str]) -> str:
    """Return the value for a provider in a table; empty if it has none."""
    return next((values[name] for name in (provider.name, *provider.aliases) if values.get(name)), "")
