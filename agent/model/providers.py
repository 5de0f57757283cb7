"""Who serves which model: the table of providers, and the road from a model's name to an address and a key."""

from dataclasses import field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from agent.config.settings import Settings
from agent.model.faults import ModelFault
from tooling.contract.fast_dataclass import dataclass

Wire: TypeAlias = Literal["openai", "anthropic", "litellm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row: how a provider is reached, which key it wants, and where it differs from the others."""

    name: str
    base_url: str
    wire: Wire = "openai"
    aliases: tuple[str, ...] = ()
    model_prefixes: tuple[str, ...] = ()
    # Mistral refuses `stream_options` and sends usage unasked.
    has_usage_option: bool = True
    # DeepSeek refuses a history whose tool-calling turns have lost their thinking.
    should_resend_reasoning: bool = False

    @property
    def needs_key(self) -> bool:
        """Say whether a request without a key is pointless."""
        return bool(self.key_variables)

    @property
    def is_local(self) -> bool:
        """Say whether this is a server on the user's own machine, which may live at any address."""
        return "127.0.0.1" in self.base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one model is asked: wire form, address, key, and the name the server knows it by."""

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
    ),
    Provider(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        wire="anthropic",
        model_prefixes=("claude-",),
    ),
    Provider(name="openrouter", base_url="https://openrouter.ai/api/v1"),
    Provider(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        model_prefixes=("deepseek-chat", "deepseek-reasoner"),
        should_resend_reasoning=True,
    ),
    Provider(name="groq", base_url="https://api.groq.com/openai/v1"),
    Provider(
        name="mistral", base_url="https://api.mistral.ai/v1", has_usage_option=False
    ),
    Provider(
        name="together",
        base_url="https://api.together.xyz/v1",
        aliases=("together_ai",),
    ),
    Provider(name="ollama", base_url="http://127.0.0.1:11434/v1", aliases=("ollama_chat",)),
    Provider(name="lm-studio", base_url="http://127.0.0.1:1234/v1", aliases=("lm_studio", "lmstudio")),
    Provider(name="vllm", base_url="http://127.0.0.1:8000/v1", aliases=("hosted_vllm",)),
    Provider(name="llamacpp", base_url="http://127.0.0.1:8080/v1", aliases=("llama.cpp", "llama-cpp", "llama_cpp")),
)

GENERIC = Provider(name="api_base", base_url="")

_BY_NAME: dict[str, Provider] = {name: row for row in PROVIDERS for name in (row.name, *row.aliases)}


def get_provider(name: str) -> Provider:
    """Return the row of a provider; the generic one for a name that has no row."""
    return _BY_NAME.get(name, GENERIC)


def resolve(model: str, settings: Settings) -> Endpoint:
    """Return where `model` is asked, or raise ModelFault when its key is missing."""
    prefix, slash, rest = model.partition("/")
    named = _BY_NAME.get(prefix) if slash and rest else None
    if settings.api_base and (named is None or named.is_local or named.name in ("openai", "anthropic")):
        return _resolve_at_api_base(model if named is None else rest, named, settings)
    row = named or _find_by_bare_name(model)
    if row is None:
        key = settings.keys.get(prefix, "") or settings.api_key
        return Endpoint(provider=prefix if slash else "", wire="litellm", base_url="", key=key, model=model)
    key = _find_key(row, settings) or settings.api_key
    if row.needs_key and not key:
        raise ModelFault("missing", f"set {row.key_variables[0]} to use {model}")
    return _build_endpoint(row, base_url=row.base_url, key=key, model=rest if named else model)


def _resolve_at_api_base(model: str, named: Provider | None, settings: Settings) -> Endpoint:
    # A bare name says nothing about the wire: `api_base` is an OpenAI-compatible server unless `anthropic/` is written,
    # and no other provider's key may go there.
    row = named or GENERIC
    key = settings.api_key or _find_key(row, settings)
    return _build_endpoint(row, base_url=_normalize_base_url(settings.api_base), key=key, model=model)


def _normalize_base_url(api_base: str) -> str:
    """Return the address without its last slash; a bare host gets the `/v1` all servers use."""
    try:
        parts = urlsplit(api_base)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ModelFault("connect", f"api_base {api_base!r} is not an address such as http://127.0.0.1:8080/v1")
    base = api_base.rstrip("/")
    return base if parts.path.strip("/") else f"{base}/v1"


def _build_endpoint(row: Provider, *, base_url: str, key: str, model: str) -> Endpoint:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ModelFault("auth", f"the key for {row.name} holds characters no key has; was it pasted whole?")
    return Endpoint(provider=row.name, wire=row.wire, base_url=base_url, key=key, model=model)


def _find_by_bare_name(model: str) -> Provider | None:
    return next((row for row in PROVIDERS if row.model_prefixes and model.startswith(row.model_prefixes)), None)


def _find_key(row: Provider, settings: Settings) -> str:
    return next((settings.keys[name] for name in (row.name, *row.aliases) if settings.keys.get(name)), "")
