"""memory: what is remembered from run to run."""

from typing import Literal

from tooling.contract.action import Action, Effect
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.memory import Memory
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec

EMPTY_MEMORY = "(memory is empty)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParams:
    """What to do, and what to remember."""

    action: Literal["read", "append", "clear"]
    content: str = ""


class MemoryTool(Tool[MemoryParams]):
    """Reads the memory; what it would add or forget is the user's to decide."""

    params = MemoryParams
    spec = ToolSpec(
        name="memory",
        description="What is remembered for this user from run to run. Append or clear only when the user asks for it.",
        parameters=schema_of(MemoryParams),
        effect="note",
    )

    @classmethod
    def is_offered(cls, services: ToolServices) -> bool:
        """Say whether this run has a memory."""
        return services.memory is not None

    def action(self, params: MemoryParams, ctx: ExecCtx) -> Action:
        """Return what is about to be read, remembered or forgotten."""
        is_asked_for = False
        effect: Effect = "note"
        if params.action == "append":
            self._memory.check(params.content)
            effect, is_asked_for = "remember", self._memory.is_requested(params.content)
        elif params.action == "clear":
            effect = "forget"
        subject = " ".join([params.action, *params.content.split()])
        return Action(
            tool=self.spec.name, effect=effect, subject=subject, cwd=ctx.working_dir, is_requested=is_asked_for
        )

    async def run(self, params: MemoryParams, ctx: ExecCtx) -> ToolResult:
        """Read, add a line, or forget everything."""
        match params.action:
            case "read":
                return ToolResult(await self._memory.read() or EMPTY_MEMORY)
            case "append":
                return ToolResult(await self._memory.append(params.content, ctx))
            case "clear":
                return ToolResult(f"Forgotten: {await self._memory.clear(ctx)} lines.")

    @property
    def _memory(self) -> Memory:
        if self._services.memory is None:
            raise ToolError("There is no memory in this run.")
        return self._services.memory
