"""Compact the memory with a model if there is one, else by priority; the user's own lines always stay."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from agent.memory.entries import TAGS
from agent.memory.memory_file import MemoryFile
from agent.memory.shorten import apply_reply, byte_size, drop_by_priority, entry_room, parse_entries
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest
from agent.prompts.load import load_prompt
from agent.vocabulary.message import Message
from tooling.contract.fast_dataclass import dataclass
from tooling.safety.secrets.redact import Redactor

KB = 1024
Ask: TypeAlias = Callable[[ModelRequest], Awaitable[ModelReply]]
REPLY_TRUNCATED = "the reply was truncated"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """The outcome of a compaction: bytes before and after, the method, and why the model was not used."""

    before: int
    after: int
    by: Literal["model", "priority", "nobody"]
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionModel:
    """The model that shortens entries."""

    ask: Ask
    model: str
    max_output_tokens: int
    timeout_s: float | None = None


async def compact(
    file: MemoryFile, target_kb: int, *, redactor: Redactor, shortener: CompactionModel | None = None
) -> CompactionResult:
    """Shrink the file to the target size, as far as its entries allow, and back up the old text."""
    before, target = await asyncio.to_thread(file.read), target_kb * KB
    size = len(before.encode("utf-8", "surrogateescape"))
    if byte_size(parse_entries(before)) <= entry_room(before, target):
        return CompactionResult(before=size, after=size, by="nobody")
    shorter, problem = before, ""
    if shortener:
        shorter, problem = await _compact_with_model(before, target, redactor, shortener)

    def edit(now: str) -> str:
        # Entries appended meanwhile are kept at the end; if the text changed otherwise, the model's version is dropped.
        text = shorter + now[len(before) :] if now.startswith(before) else now
        return drop_by_priority(text, target)

    await asyncio.to_thread(file.change, edit, has_backup=True)
    by: Literal["model", "priority"] = "priority" if shorter == before else "model"
    return CompactionResult(before=size, after=file.size(), by=by, problem=problem)


async def _compact_with_model(
    before: str, target: int, redactor: Redactor, shortener: CompactionModel
) -> tuple[str, str]:
    """Return the text as shortened by the model, or unchanged with the reason."""
    system = load_prompt("compact_memory", tags=", ".join(TAGS), room=entry_room(before, target))
    entries = redactor.redact("\n".join(line.raw.strip() for line in parse_entries(before)))
    request = ModelRequest(
        model=shortener.model,
        purpose="memory",
        messages=(
            Message(role="system", content=system),
            Message(role="user", content=f"<memory>\n{entries}\n</memory>"),
        ),
        max_output_tokens=shortener.max_output_tokens,
    )
    try:
        async with asyncio.timeout(shortener.timeout_s):
            reply = await shortener.ask(request)
    except (ModelFault, BudgetExhausted) as problem:
        return before, str(problem)
    except TimeoutError:
        return before, f"no reply within {shortener.timeout_s:g} s"
    if reply.is_incomplete:
        return before, REPLY_TRUNCATED
    return apply_reply(before, _strip_fence(reply.message.content), redactor)


def _strip_fence(text: str) -> str:
    found = re.fullmatch(r"\s*```\w*\n(.*?)\n?```\s*", text, re.DOTALL)
    return found[1] if found else text
