"""The one road of every tool call: arguments, rights, verdict, approval, run, output. It never raises."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from tooling.contract.action import Approver, Decision, Judge
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import DecodeError, JsonObject, decode, did_you_mean
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
from tooling.finish import OutputFinisher
from tooling.permission import PermissionChecker, blocked_result
from tooling.registry import ToolRegistry


class Invoker:
    """Takes a call from its name and raw arguments to the result a model reads."""

    def __init__(self, *, registry: ToolRegistry, judge: Judge, approver: Approver, finisher: OutputFinisher) -> None:
        self._registry = registry
        self._permission = PermissionChecker(judge, approver)
        self._finisher = finisher

    async def invoke(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call; every failure is a result, only cancellation comes through."""
        tool = self._registry.get(name)
        if tool is None:
            return error_result(self._unknown_tool_message(name, ctx), exit_code=UNKNOWN_TOOL)
        if not ctx.may_use(name):
            return error_result(
                f"The tool {name} is not available in this step. {_list_available(ctx.allowed_tools)}",
                exit_code=REFUSED,
            )
        result = await self._authorize_and_run(tool, args, ctx)
        return await self._finisher.finish(result, ctx, output_chars=tool.spec.output_chars)

    async def _authorize_and_run(self, tool: AnyTool, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        name = tool.spec.name
        try:
            params = decode(tool.params, _without_nulls(args, tool.spec))
            action = tool.action(params, ctx)
            answer = await self._permission.authorize(action, ctx, always_asks=tool.spec.requires_approval)
            if isinstance(answer, ToolResult):
                return answer
            if answer is not None:
                return await self._run_edited(tool, tool.with_subject(params, answer), answer, ctx)
            if ctx.cancel_check is not None and ctx.cancel_check():
                return error_result("Cancelled.", exit_code=CANCELLED, status="cancelled")
            return await _run(tool, params, ctx)
        except DecodeError as error:
            return error_result(
                f"Wrong arguments for {name}: {error}. {_describe_parameters(tool.spec)}", exit_code=BAD_ARGUMENTS
            )
        except ToolError as error:
            return error_result(str(error), exit_code=error.exit_code, status=error.status)
        except Exception as error:  # noqa: BLE001 (the edge: whatever a tool raises becomes a result)
            return error_result(f"{name} failed: {type(error).__name__}: {error}", exit_code=TOOL_RAISED)

    async def _run_edited(self, tool: AnyTool, params: object, subject: str, ctx: ExecCtx) -> ToolResult:
        """Run what the person wrote instead, still never what is blocked, and tell the model of it."""
        action = tool.action(params, ctx)
        verdict = self._permission.verdict(action, ctx, always_asks=tool.spec.requires_approval)
        if verdict.decision is Decision.BLOCK:
            return blocked_result(verdict)
        result = await _run(tool, params, ctx)
        return replace(result, content=f"The user changed the command to: {subject}\n{result.content}")

    def _unknown_tool_message(self, name: str, ctx: ExecCtx) -> str:
        names = [known for known in self._registry.names if ctx.may_use(known)]
        return f"There is no tool {name!r}{did_you_mean(name, names) or '.'} {_list_available(names)}"


async def _run(tool: AnyTool, params: object, ctx: ExecCtx) -> ToolResult:
    if ctx.on_run is not None:
        await ctx.on_run()
    # 0 means that the tool keeps its own clock.
    limit_s = tool.spec.timeout_ms / 1000 or None
    clock = asyncio.timeout(limit_s)
    try:
        async with clock:
            return await tool.run(params, ctx)
    except TimeoutError as error:
        if not clock.expired():
            raise
        message = f"{tool.spec.name} timed out after {limit_s:g} s."
        raise ToolError(message, exit_code=TIMED_OUT, status="timeout") from error


def _without_nulls(args: object, spec: ToolSpec) -> object:
    """Leave out optional arguments that a model spelled out as null."""
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
