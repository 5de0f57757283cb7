"""One call of a tool exactly as the model's would be made: for people and scripts, without a model or a session."""

from collections.abc import Mapping

from agent.toolbox import ToolEnvironment, ToolSetup
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CallStatus, ToolResult

# A person reads it all; the cap of the runner still holds.
FULL_OUTPUT_CHARS = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How the command ended: its own output and exit code, or why it was not run."""

    status: CallStatus
    exit_code: int
    text: str
    output_path: str | None = None
    total_bytes: int = 0


async def call_tool(tool: str, arguments: Mapping[str, object], around: ToolEnvironment) -> ToolResult:
    """Call one tool through the one road."""
    toolbox = ToolSetup(around)
    for warning in toolbox.warnings:
        around.warn(warning)
    try:
        return await toolbox.executor.call_tool(tool, arguments, around.scope.ctx_of("exec"))
    finally:
        await toolbox.close()


async def run_command(command: str, around: ToolEnvironment) -> CommandResult:
    """Run one shell line through the one road."""
    result = await call_tool("run_command", {"command": command}, around)
    return CommandResult(
        status=result.meta.status,
        exit_code=result.exit_code,
        text=result.content if result.display is None else result.display,
        output_path=result.meta.output_path,
        total_bytes=result.meta.total_bytes or 0,
    )
