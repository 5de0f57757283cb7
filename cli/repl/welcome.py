"""First start without a model: finds usable models and offers to save one as the default."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.edit import set_value
from agent.config.load import LoadedSettings
from agent.config.user_dirs import config_file
from agent.model.local_server import find_local_server
from agent.model.providers import PROVIDERS, get_provider
from agent.vocabulary.errors import AgentError
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from cli.repl.repl import Repl

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
NOT_SAVED = "Not saved: {problem}"
KEPT = "Your request is kept until a model is chosen: {request}"
NOT_SENT = "Your request was not sent: {request}"
NOTHING_FOUND = """\
No model is set, and no API key or local model server was found. Do one of these:
  1. quit, set an API key such as OPENAI_API_KEY, and start again
  2. quit, and save a key: agent config set keys.openai -
  3. start ollama, llama.cpp or LM Studio on this machine, then try /model
/demo shows a complete run without any of them."""
# Lines for the REPL itself: commands, shell commands, notes.
_COMMAND_SIGNS = ("/", "!", "#")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that is probably usable, and why."""

    model: str
    why: str

    def __str__(self) -> str:
        return f"{self.model} ({self.why})"


async def detect_models(loaded: LoadedSettings) -> list[Offer]:
    """Return models whose key is set, and one of a server on this machine."""
    offers = [
        Offer(model=f"{provider.name}/{_FIRST_MODELS[provider.name]}", why=_key_origin(provider.name, loaded))
        for provider in PROVIDERS
        if provider.name in _FIRST_MODELS and loaded.settings.keys.get(provider.name)
    ]
    if server := await find_local_server():
        offers.append(Offer(model=server.model, why=f"{server.provider} is running on this machine"))
    return offers


async def welcome(repl: "Repl") -> None:
    """Ask which of the detected models, or which other one, is the default, check it and save it.

    A request typed instead is sent when a model is chosen, and put back into the prompt otherwise.
    """
    kept: list[str] = []
    try:
        model = await _choose(repl, kept)
        if model:
            path = config_file(repl.state.environ)
            set_value(path, "model", model)
            repl.print_line(saved_model(model, path), "quiet")
    except AgentError:
        _put_back(repl, kept)
        raise
    if repl.state.read_settings().settings.model:
        for request in kept:
            repl.accept(request)
    else:
        _put_back(repl, kept)


async def _choose(repl: "Repl", kept: list[str]) -> str:
    """Return a model that was offered or found to work; empty if the user declines, or has set one meanwhile."""
    loaded = repl.state.read_settings()
    offers = {str(offer): offer.model for offer in await detect_models(loaded)}
    if not offers:
        repl.print_line(NOTHING_FOUND, "quiet")
        return ""
    while not repl.state.read_settings().settings.model:
        answer = (await repl.ui.ask(CHOOSE_MODEL, (*offers, NOT_NOW))).strip()
        if answer == NOT_NOW:
            break
        if answer.startswith(_COMMAND_SIGNS):
            repl.accept(answer)
        elif answer not in offers and is_request(answer):
            kept.append(answer)
            repl.print_line(KEPT.format(request=answer), "quiet")
        elif not (problem := await _problem_with(offers.get(answer, answer), repl)):
            return offers.get(answer, answer)
        else:
            repl.print_line(NOT_SAVED.format(problem=problem), "warn")
    return ""


async def _problem_with(model: str, repl: "Repl") -> str:
    from agent.model.name_check import find_problem

    return await find_problem(model, repl.state.read_settings().settings, repl.state.cwd)


def is_request(text: str) -> bool:
    """Whether a text is a request rather than the name of a model."""
    if len(text.split()) > 1 and not text.startswith("script:"):
        return True
    has_mark = any(char in "/:-._" or char.isdigit() for char in text)
    return text.endswith("?") or not (has_mark or get_provider(text).base_url)


def _put_back(repl: "Repl", kept: list[str]) -> None:
    text = "\n".join(kept)
    if text and not repl.ui.set_text(text):
        repl.print_line(NOT_SENT.format(request=text), "quiet")


def _key_origin(provider: str, loaded: LoadedSettings) -> str:
    origin = loaded.origins[f"keys.{provider}"]
    return f"{origin.where} is set" if origin.layer in ("environment", ".env") else "its key is in your settings"


def saved_model(model: str, path: Path) -> str:
    """Return the confirmation that a model is now the default."""
    return f"Saved {model} to {path}"
