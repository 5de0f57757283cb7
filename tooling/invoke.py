"""The path of every tool call: arguments, interceptors, run, output. It never raises."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.json_codec import DecodeError, JsonObject, did_you_mean
from tooling.contract.result import (
    BAD_ARGUMENTS,
    CANCELLED,
    REFUSED,
    TIMED_OUT,
    TOOL_RAISED,
    UNKNOWN_TOOL,
    ToolError,
    ToolResult,
    error_result,
)
from tooling.contract.tool import AnyTool, ToolSpec
from tooling.files.workspace_files import WorkspaceFiles
from tooling.finish import OutputFinisher
from tooling.registry import ToolRegistry


class Invoker:
    """Runs tool calls: from a name and raw arguments to the result that the model reads."""

    def __init__(
        self, *, registry: ToolRegistry, interceptors: Sequence[Interceptor], finisher: OutputFinisher
    ) -> None:
        self._registry = registry
        self._interceptors = tuple(interceptors)
        self._finisher = finisher

    async def invoke(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call; every failure is a result, only cancellation is raised."""
        tool = self._registry.get(name)
        if tool is None:
            return error_result(self._unknown_tool(name, ctx), exit_code=UNKNOWN_TOOL)
        if not ctx.may_use(name):
            available = _list_available(ctx.allowed_tools)
            return error_result(f"The tool {name} is not available in this step. {available}", exit_code=REFUSED)
        result = await self._run_guarded(tool, args, replace(ctx, files=WorkspaceFiles(ctx)))
        return await self._finisher.finish(result, ctx, output_chars=tool.spec.output_chars)

    async def _run_guarded(self, tool: AnyTool, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Turn every failure into a result."""
        name = tool.spec.name
        try:
            params = tool.parse_arguments(_without_nulls(args, tool.spec))
            return await self._run(PendingCall(tool=tool, params=params, action=tool.action(params, ctx), ctx=ctx))
        except DecodeError as error:
            return error_result(
                f"Wrong arguments for {name}: {error}. {_describe_parameters(tool.spec)}", exit_code=BAD_ARGUMENTS
            )
        except ToolError as error:
            return error_result(error.for_model, exit_code=error.exit_code, status=error.status)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge: any exception of a tool becomes a result)
            return error_result(f"{name} failed: {type(error).__name__}: {error}", exit_code=TOOL_RAISED)

    async def _run(self, call: PendingCall) -> ToolResult:
        for interceptor in self._interceptors:
            refusal = await interceptor.before(call)
            if refusal is not None:
                return refusal
        ctx = call.ctx
        if ctx.cancel_check is not None and ctx.cancel_check():
            return error_result("Cancelled.", exit_code=CANCELLED, status="cancelled")
        if ctx.on_start is not None:
            await ctx.on_start(only_reads=call.verdict is not None and call.verdict.only_reads)
        result = await _run_tool(call)
        for interceptor in reversed(self._interceptors):
            result = await interceptor.after(call, result)
        return result

    def _unknown_tool(self, name: str, ctx: ExecCtx) -> str:
        names = [known for known in self._registry.names if ctx.may_use(known)]
        return f"There is no tool {name!r}{did_you_mean(name, names) or '.'} {_list_available(names)}"


async def _run_tool(call: PendingCall) -> ToolResult:
    """Run the tool; exceptions become results, so that interceptors see how every call ended."""
    try:
        return await _run_in_time(call)
    except ToolError as error:
        return error_result(error.for_model, exit_code=error.exit_code, status=error.status)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (the edge: any exception of a tool becomes a result)
        name = call.tool.spec.name
        return error_result(f"{name} failed: {type(error).__name__}: {error}", exit_code=TOOL_RAISED)


async def _run_in_time(call: PendingCall) -> ToolResult:
    spec = call.tool.spec
    # 0 means that the tool enforces its own timeout.
    limit_s = spec.timeout_ms / 1000 or None
    clock = asyncio.timeout(limit_s)
    try:
        async with clock:
            return await call.tool.run(call.params, call.ctx)
    except TimeoutError as error:
        if not clock.expired():
            raise
        raise ToolError(f"{spec.name} timed out after {limit_s:g} s.", exit_code=TIMED_OUT, status="timeout") from error


def _without_nulls(args: object, spec: ToolSpec) -> object:
    """Remove optional arguments that a model set to null."""
    required = spec.parameters.get("required")
    if not isinstance(args, Mapping) or not isinstance(required, (list, tuple)):
        return args
    return {key: value for key, value in args.items() if value is not None or key in required}


def _describe_parameters(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    required = spec.parameters.get("required")
    if not isinstance(properties, Mapping):
        return ""
    needed = required if isinstance(required, (list, tuple)) else ()
    fields = [f"{name}{'' if name in needed else '?'}: {_describe_type(schema)}" for name, schema in properties.items()]
    return f"Expected: {{{', '.join(fields)}}}"


def _describe_type(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return "value"
    choices = schema.get("enum")
    return "|".join(map(str, choices)) if isinstance(choices, (list, tuple)) else str(schema.get("type", "value"))


def _list_available(names: object) -> str:
    known = ", ".join(map(str, names)) if isinstance(names, (list, tuple)) else ""
    return f"Available: {known or 'none'}."
