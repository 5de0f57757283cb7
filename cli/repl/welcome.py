"""The first minute: which models could be used from here, and one question to keep the choice."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.model.discovery import find_local_server
from agent.model.providers import PROVIDERS

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


async def offers(environ: Mapping[str, str]) -> list[Offer]:
    """Return the models for which there is a key in the environment, or a server on this machine."""
    found = [
        Offer(model=f"{provider.name}/{_FIRST_MODELS[provider.name]}", why=f"{name} is set")
        for provider in PROVIDERS
        if provider.name in _FIRST_MODELS and (name := next(filter(environ.get, provider.key_names), None))
    ]
    if server := await find_local_server():
        found.append(Offer(model=server.model, why=f"{server.provider} runs on this machine"))
    return found
