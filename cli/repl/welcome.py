"""The first minute: which models could be used from here, and one question to keep the choice."""

from collections.abc import Awaitable, Callable, Mapping

from agent.config.edit import set_value
from agent.config.user_dirs import config_file
from agent.model.local_server import find_local_server
from agent.model.providers import PROVIDERS
from tooling.contract.fast_dataclass import dataclass

# A good first model of each provider whose key may already be there.
_FIRST_MODELS = {
    "openai": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "deepseek": "deepseek-chat",
    "mistral": "mistral-medium-latest",
    "groq": "llama-3.3-70b-versatile",
}
LATER = "Later"
NOTHING_FOUND = """\
No model is set, and no key and no local server was found. Either will do:
  a key, such as OPENAI_API_KEY, in the environment, and /model provider/name
  a server on this machine: ollama, llama.cpp or LM Studio, found by itself
/demo shows a whole run without any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that could be used, and why we think so."""

    model: str
    why: str

    def __str__(self) -> str:
        return f"{self.model} ({self.why})"


async def detect_models(environ: Mapping[str, str]) -> list[Offer]:
    """Return the models for which there is a key in the environment, or a server on this machine."""
    found = [
        Offer(model=f"{provider.name}/{_FIRST_MODELS[provider.name]}", why=f"{name} is set")
        for provider in PROVIDERS
        if provider.name in _FIRST_MODELS and (name := next(filter(environ.get, provider.key_variables), None))
    ]
    if server := await find_local_server():
        found.append(Offer(model=server.model, why=f"{server.provider} runs on this machine"))
    return found


async def welcome(
    environ: Mapping[str, str],
    *,
    ask: Callable[[str, tuple[str, ...]], Awaitable[str]],
    say: Callable[[str], None],
) -> None:
    """Offer the models that could be used from here, and keep the one that is chosen."""
    found = await detect_models(environ)
    if not found:
        say(NOTHING_FOUND)
        return
    options = (*map(str, found), LATER)
    answer = await ask("No model is set. Which one shall be kept in your settings?", options)
    chosen = next((offer.model for offer in found if str(offer) == answer), "" if answer == LATER else answer)
    if chosen:
        set_value(config_file(environ), "model", chosen)
        say(f"{chosen} is kept in {config_file(environ)}")
