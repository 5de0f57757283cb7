"""Loads what every run needs after its first reply, while the model thinks."""

import asyncio
import importlib

from tooling.contract.lazy_pattern import compile_patterns

# In the order in which they are needed. A module that is needed earlier loads then.
AFTER_FIRST_REPLY = (
    "agent.model.http.response_parser",
    "agent.model.reply.textual_calls",
    "agent.model.reply.call_arguments",
    "agent.execution.step.described_change",
    "agent.execution.step.stalls",
    "agent.memory.after_run",
    "agent.memory.triggers",
    "agent.sessions.log.log_index",
)


async def warm_up() -> None:
    """Import the modules one by one and compile their patterns; a reply that arrives meanwhile does not wait."""
    for name in AFTER_FIRST_REPLY:
        compile_patterns(importlib.import_module(name))
        await asyncio.sleep(0)
