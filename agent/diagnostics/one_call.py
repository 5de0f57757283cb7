"""One tool call exactly as a model would make it: for users and scripts, without a model or a session."""

from collections.abc import Mapping
from dataclasses import replace

from agent.plugins.find import find_plugins, open_plugins
from agent.tool_setup import ToolEnvironment, build_tools
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CallStatus, ToolResult

# Users read the complete output; the cap of the runner still applies.
FULL_OUTPUT_CHARS = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The output and exit code of a command, or the reason why it was not run."""

    status: CallStatus
    exit_code: int
    text: str
    output_path: str | None = None
    total_bytes: int = 0


async def call_tool(tool: str, arguments: Mapping[str, object], env: ToolEnvironment) -> ToolResult:
    """Call one tool with the same checks, approvals and sandbox as in a run."""
    loaded = find_plugins(env.environ, env.settings)
    plugins = await open_plugins(loaded, env.settings, env.scope, env.questions)
    tools = build_tools(replace(env, plugins=plugins))
    for warning in tools.warnings:
        env.warn(warning)
    try:
        return await tools.executor.call_tool(tool, arguments, env.scope.ctx_of("exec"))
    finally:
        await tools.close()


async def run_command(command: str, env: ToolEnvironment) -> CommandResult:
    """Run one shell command."""
    result = await call_tool("run_command", {"command": command}, env)
    return CommandResult(
        status=result.meta.status,
        exit_code=result.exit_code,
        text=result.content if result.display is None else result.display,
        output_path=result.meta.output_path,
        total_bytes=result.meta.total_bytes or 0,
    )
