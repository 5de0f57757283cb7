"""The tool memory: read, append to or clear the memory that persists across runs."""

from typing import Literal

from tooling.contract.action import Action, Effect
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.memory import Memory
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec

EMPTY_MEMORY = "(memory is empty)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParams:
    """Arguments of memory."""

    action: Literal["read", "append", "clear"]
    content: str = ""


class MemoryTool(Tool[MemoryParams]):
    """Reads the memory; the user decides about appending and clearing."""

    params = MemoryParams
    spec = ToolSpec(
        name="memory",
        description="Notes about this user, kept across runs. Append or clear only when the user asks for it.",
        parameters=schema_of(MemoryParams),
        effect="note",
    )

    def action(self, params: MemoryParams, ctx: ExecCtx) -> Action:
        """Return the action; appending a text that the user asked to remember is marked as requested."""
        is_requested = False
        effect: Effect = "note"
        if params.action == "append":
            self._memory.check(params.content)
            effect, is_requested = "remember", self._memory.is_requested(params.content)
        elif params.action == "clear":
            effect = "forget"
        subject = " ".join([params.action, *params.content.split()])
        return Action(
            tool=self.spec.name, effect=effect, subject=subject, cwd=ctx.working_dir, is_requested=is_requested
        )

    async def run(self, params: MemoryParams, ctx: ExecCtx) -> ToolResult:
        """Read the memory, append a line, or clear it."""
        match params.action:
            case "read":
                return ToolResult(await self._memory.read() or EMPTY_MEMORY)
            case "append":
                return ToolResult(await self._memory.append(params.content, ctx))
            case "clear":
                count = await self._memory.clear(ctx)
                return ToolResult(f"Deleted {count} {'line' if count == 1 else 'lines'} from memory.")

    @property
    def _memory(self) -> Memory:
        if self._services.memory is None:
            raise ToolError("This run has no memory.")
        return self._services.memory
