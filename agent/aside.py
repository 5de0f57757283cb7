"""An aside: a question about a session, answered without tools and without becoming part of its conversation."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from agent.assembly import UNKNOWN_CONTEXT_TOKENS
from agent.config.load import LoadedSettings
from agent.config.settings import Settings
from agent.execution.step.compact import CHARS_PER_TOKEN, ContextSize, format_turns
from agent.model.budget import Budget, BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.local_server import find_local_server, raise_no_model
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelRequest
from agent.model.prices import PriceTable
from agent.model.router import ModelRouter
from agent.prompts.load import load_prompt
from agent.protocol.channel import Channel
from agent.sessions.resume.conversation import read_conversation
from agent.vocabulary.errors import AgentError
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from agent.workspace.request_context import wrap_in_tag
from tooling.safety.secrets.redact import Redactor

NO_ANSWER = "the model gave no answer"
# A very long conversation would be too expensive: the newest part is enough.
_MAX_CONTEXT_CHARS = 150_000
_PART_CHARS = 8000


async def ask_aside(
    question: str,
    *,
    loaded: LoadedSettings,
    log: Path | None,
    progress: str = "",
    on_spent: Callable[[Usage], None] = lambda usage: None,
) -> str:
    """Answer a question about the session with this log, which is only read.

    Raises AgentError if there is no answer; `on_spent` receives the cost in any case.
    """
    prices, budget = PriceTable(), _budget_of(loaded.settings)
    settings = await _with_model(loaded.settings)
    redact = Redactor(loaded.secrets).redact
    client = ModelRouter(replace(settings, planner_model="", reviewer_model=""), prices=prices, redact=redact)
    try:
        # No subscriber: its cost is reported at the end.
        metered = MeteredModel(
            client=client,
            budget=budget,
            channel=Channel(session_id="", run_id="", log=None),
            price=client.cost,
        )
        context = await asyncio.to_thread(_read_context, log, progress, settings, prices)
        request = _build_request(redact(f"{context}\n\n{question}".strip()), settings)
        answer = (await metered.ask(request)).message.content.strip()
    except (ModelFault, BudgetExhausted) as problem:
        raise AgentError(str(problem)) from problem
    finally:
        on_spent(budget.total)
        await client.close()
    if not answer:
        raise AgentError(NO_ANSWER)
    return redact(answer)


def _budget_of(settings: Settings) -> Budget:
    return Budget(max_tokens=settings.max_tokens, max_budget_usd=settings.max_budget_usd)


async def _with_model(settings: Settings) -> Settings:
    if settings.model:
        return settings
    found = await find_local_server()
    return replace(settings, model=found.model if found else raise_no_model())


def _read_context(log: Path | None, progress: str, settings: Settings, prices: PriceTable) -> str:
    """Return the conversation and the state of the plan as text: a request without tools may not contain calls."""
    messages = read_conversation(log, lambda tool: None) if log else ()
    window = prices.context_size(settings.model) or UNKNOWN_CONTEXT_TOKENS
    room = ContextSize.of_window(window, settings.max_output_tokens).limit * CHARS_PER_TOKEN
    turns = format_turns(messages, min(room * 3 // 4, _MAX_CONTEXT_CHARS), part_chars=_PART_CHARS)
    parts = {"conversation": turns, "progress": progress}
    return "\n\n".join(wrap_in_tag(name, text) for name, text in parts.items() if text)


def _build_request(content: str, settings: Settings) -> ModelRequest:
    return ModelRequest(
        model=settings.model,
        purpose="aside",
        messages=(
            Message(role="system", content=load_prompt("aside")),
            Message(role="user", content=content),
        ),
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
    )
