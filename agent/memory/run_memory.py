"""The memory of a run: its excerpt for prompts, and access for the tool `memory`."""

import asyncio
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from agent.config.settings import Settings
from agent.memory.entries import format_entry
from agent.memory.excerpt import excerpt
from agent.memory.memory_file import MemoryFile
from agent.model.metered_client import MeteredModel
from agent.protocol.channel import Channel
from agent.protocol.events import MemoryChanged
from agent.vocabulary.errors import InputError
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.output import sanitize_output
from tooling.safety.secrets.redact import Redactor

if TYPE_CHECKING:
    from agent.memory.after_run import MemoryUpdater

_KB = 1024
_NOT_PERSISTENT = "This run saves nothing to disk (--ephemeral), so the memory cannot change."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMemory:
    """Implements the Memory port of the tools; `request` is the user's request in this run."""

    file: MemoryFile
    redactor: Redactor
    channel: Channel
    request: str
    is_persistent: bool = True
    settings: Settings = field(default_factory=Settings)

    def recall(self) -> str:
        """Return the excerpt of the memory for prompts, or raise OSError."""
        return excerpt(self._clean(self.file.read()))

    def has_work(self) -> bool:
        """Return whether this run may have something to remember, or the memory is too large."""
        from agent.memory.triggers import has_memory_trigger

        return self.is_persistent and (has_memory_trigger(self.request) or self.is_too_large)

    @property
    def is_too_large(self) -> bool:
        """Return whether the memory must be compacted."""
        return self.file.size() > self.settings.memory_max_kb * _KB

    def build_updater(self, client: MeteredModel, model: str) -> "MemoryUpdater":
        """Return the updater that decides, with this model, what to remember from the run."""
        from agent.memory.after_run import MemoryUpdater

        return MemoryUpdater(
            memory=self,
            client=client,
            model=model,
            max_output_tokens=self.settings.max_output_tokens,
            timeout_s=self.settings.memory_timeout_s,
            target_kb=min(self.settings.memory_compact_target_kb, self.settings.memory_max_kb),
        )

    async def read(self) -> str:
        """Return the complete memory."""
        return self._clean(await asyncio.to_thread(self.file.read)).strip()

    def check(self, text: str) -> None:
        """Raise ToolError if this text must not be remembered."""
        # Imported late: a run that remembers nothing does not need these patterns.
        from agent.memory.privacy import find_personal_data, find_secret

        if not self.is_persistent:
            raise ToolError(_NOT_PERSISTENT)
        if problem := find_secret(text, self.redactor) or find_personal_data(text):
            raise ToolError(f"This is not remembered: {problem}.")
        try:
            format_entry(text, tag=None, now=datetime.now().astimezone())
        except InputError as error:
            raise ToolError(f"This is not remembered: {error.message}.") from error

    def is_requested(self, text: str) -> bool:
        """Return whether the user explicitly asked to remember this."""
        from agent.memory.triggers import asks_to_remember
        from agent.memory.what_to_keep import is_grounded

        return asks_to_remember(self.request) and is_grounded(text, self.request, answer="")

    async def append(self, text: str, ctx: ExecCtx) -> str:
        """Remember a text; return a message with its line, or that it is already remembered."""
        self.check(text)
        line = await asyncio.to_thread(self.file.append, text)
        if line is None:
            return "This is already remembered."
        self._emit(MemoryChanged(action="added", entry=line), ctx)
        return f"Remembered: {line}"

    async def clear(self, ctx: ExecCtx) -> int:
        """Clear the memory, with a backup, and return the number of lines."""
        if not self.is_persistent:
            raise ToolError(_NOT_PERSISTENT)
        count = await asyncio.to_thread(lambda: self.file.clear(has_backup=True))
        self._emit(MemoryChanged(action="cleared"), ctx)
        return count

    def _emit(self, event: MemoryChanged, ctx: ExecCtx) -> None:
        self.channel.emit(event, step_id=ctx.step_id or None, attempt=ctx.attempt)

    def _clean(self, text: str) -> str:
        return self.redactor.redact(sanitize_output(text))
