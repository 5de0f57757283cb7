"""First start without a model: finds usable models and offers to save one as the default."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from agent.config.edit import set_value
from agent.config.user_dirs import config_file
from agent.model.local_server import find_local_server
from agent.model.providers import PROVIDERS
from tooling.contract.fast_dataclass import dataclass

# A good first model of each provider for which a key may already be set.
_FIRST_MODELS = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-medium-latest",
    "groq": "llama-3.3-70b-versatile",
}
NOT_NOW = "Not now"
CHOOSE_MODEL = "No model is set. Which model should be the default?"
NOTHING_FOUND = """\
No model is set, and no API key or local model server was found. Either of these will do:
  an API key such as OPENAI_API_KEY in the environment, then /model provider/name
  a server on this machine: ollama, llama.cpp or LM Studio (detected automatically)
/demo shows a complete run without either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that is probably usable, and why."""

    model: str
    why: str

    def __str__(self) -> str:
        return f"{self.model} ({self.why})"


async def detect_models(environ: Mapping[str, str]) -> list[Offer]:
    """Return models with an API key in the environment or a server on this machine."""
    offers = [
        Offer(model=f"{provider.name}/{_FIRST_MODELS[provider.name]}", why=f"{name} is set")
        for provider in PROVIDERS
        if provider.name in _FIRST_MODELS and (name := next(filter(environ.get, provider.key_variables), None))
    ]
    if server := await find_local_server():
        offers.append(Offer(model=server.model, why=f"{server.provider} is running on this machine"))
    return offers


async def welcome(
    environ: Mapping[str, str],
    *,
    ask: Callable[[str, tuple[str, ...]], Awaitable[str]],
    report: Callable[[str], None],
) -> None:
    """Offer the detected models and save the chosen one; any other answer is taken as a model name."""
    offers = await detect_models(environ)
    if not offers:
        report(NOTHING_FOUND)
        return
    options = (*map(str, offers), NOT_NOW)
    answer = await ask(CHOOSE_MODEL, options)
    chosen = next((offer.model for offer in offers if str(offer) == answer), "" if answer == NOT_NOW else answer)
    if chosen:
        set_value(config_file(environ), "model", chosen)
        report(saved_model(chosen, config_file(environ)))


def saved_model(model: str, path: Path) -> str:
    """Return the confirmation that a model is now the default."""
    return f"Saved {model} to {path}"
