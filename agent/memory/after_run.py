"""After a run: ask a model what to remember, save it, and compact the memory. Failures become warnings."""

import asyncio

from agent.memory.compaction import CompactionModel, compact
from agent.memory.privacy import find_personal_data, find_secret
from agent.memory.run_memory import RunMemory
from agent.memory.triggers import has_memory_trigger
from agent.memory.what_to_keep import MemoryCandidate, build_decision_request, is_grounded, parse_decision
from agent.model.budget import BudgetExhausted
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.protocol.events import MemoryChanged, WarningRaised
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

_COMPACTION_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdater:
    """Updates the memory after a run with the help of a model."""

    memory: RunMemory
    client: MeteredModel
    model: str
    max_output_tokens: int
    timeout_s: float
    target_kb: int

    async def update(self, answer: str) -> None:
        """Save what is worth remembering, if anything; no failure affects the answer."""
        try:
            if has_memory_trigger(self.memory.request) and (candidate := await self._decide(answer)):
                await self._store(candidate)
            if self.memory.is_too_large:
                await self._compact()
        except OSError as error:
            await self._warn(f"could not update the memory: {error.strerror}")

    async def _decide(self, answer: str) -> MemoryCandidate | None:
        request = build_decision_request(self.memory.request, answer, self.model)
        try:
            async with asyncio.timeout(self.timeout_s):
                reply = await self.client.ask(request)
        except TimeoutError:
            await self._warn(
                f"nothing was remembered: deciding took longer than {self.timeout_s:g} s (memory_timeout_s)"
            )
            return None
        except (ModelFault, BudgetExhausted) as problem:
            await self._warn(f"nothing was remembered: {problem}")
            return None
        candidate = parse_decision(reply.message.content)
        return candidate if candidate and is_grounded(candidate.content, self.memory.request, answer) else None

    async def _store(self, candidate: MemoryCandidate) -> None:
        if problem := find_secret(candidate.content, self.memory.redactor) or find_personal_data(candidate.content):
            await self._warn(f"not remembered: {problem}")
            return
        try:
            line = await asyncio.to_thread(self.memory.file.append, candidate.content, tag=candidate.tag)
        except InputError as error:
            await self._warn(f"nothing was remembered: {error.message}")
            return
        if line:
            await self.memory.channel.publish(MemoryChanged(action="added", entry=line))

    async def _compact(self) -> None:
        shortener = CompactionModel(
            ask=self.client.ask, model=self.model, max_output_tokens=self.max_output_tokens, timeout_s=_COMPACTION_S
        )
        result = await compact(self.memory.file, self.target_kb, redactor=self.memory.redactor, shortener=shortener)
        if result.by != "nobody":
            await self.memory.channel.publish(MemoryChanged(action="compacted"))
        if result.problem:
            await self._warn(f"the memory was compacted without the model: {result.problem}")

    async def _warn(self, message: str) -> None:
        await self.memory.channel.publish(WarningRaised(message=message))
