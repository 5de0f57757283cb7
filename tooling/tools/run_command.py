"""The tool run_command: run a shell command with limits on time and output."""

import errno
from dataclasses import replace
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import CANCELLED, TIMED_OUT, CallStatus, ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.finish import output_file
from tooling.output import decode_output

MAX_TIMEOUT_S = 3600.0
EMPTY_OUTPUT = "(empty output)"
SHELLS = ("bash", "sh")
# Commands find the idempotency key of their effect here.
KEY_VARIABLE = "AGENT_IDEMPOTENCY_KEY"
MAX_SHOWN_PROCESSES = 5
MAX_COMMAND_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommandParams:
    """Arguments of run_command."""

    command: str
    timeout_s: Annotated[float | None, "seconds"] = None
    background: Annotated[bool, "run in the background, e.g. a server; see manage_jobs"] = False


class RunCommand(Tool[RunCommandParams]):
    """Runs a shell command in the workspace."""

    params = RunCommandParams
    spec = ToolSpec(
        name="run_command",
        description="Run a bash command in the workspace and return its output. stdin is closed: nothing interactive.",
        parameters=schema_of(RunCommandParams),
        effect="execute",
        timeout_ms=0,
    )

    def action(self, params: RunCommandParams, ctx: ExecCtx) -> Action:
        """Return the exact command, for the judge and the user."""
        return Action(tool=self.spec.name, effect="execute", subject=params.command, cwd=ctx.working_dir)

    def with_subject(self, params: RunCommandParams, subject: str) -> RunCommandParams:
        """Return the arguments with the command as edited by the user."""
        return replace(params, command=subject)

    async def run(self, params: RunCommandParams, ctx: ExecCtx) -> ToolResult:
        """Run the command and report its exit code, output and full size."""
        if not params.command.strip():
            raise ToolError("The command is empty.")
        if params.background:
            return await self._start_background(params.command, ctx)
        limit_s = min(max(params.timeout_s or self._services.command_timeout_s, 0.1), MAX_TIMEOUT_S)
        output = await self._run_shell(params.command, limit_s, ctx)
        return _to_result(output, params.command, limit_s, ctx)

    async def _start_background(self, command: str, ctx: ExecCtx) -> ToolResult:
        output = output_file(ctx)
        if output is None:
            raise ToolError("This run saves no outputs, so commands cannot run in the background.")
        if self._services.jobs.is_full:
            raise ToolError("Too many background commands are running; stop one with manage_jobs first.")
        request = CommandRequest(argv=(SHELLS[0], "-c", command), cwd=ctx.working_dir, timeout_s=0, env=_env(ctx))
        job = await self._services.jobs.start(command, request, output)
        if not job.task.done():
            return ToolResult(f"Started {job.id} in the background; its output goes to {output}.")
        text = f"The background command ended immediately ({job.state}).\n{decode_output(job.tail())}".rstrip()
        return ToolResult(text, 1, meta=ToolMeta(status="error"))

    async def _run_shell(self, command: str, limit_s: float, ctx: ExecCtx) -> CommandOutput:
        problem: OSError | None = None
        for shell in SHELLS:
            request = CommandRequest(
                argv=(shell, "-c", command),
                cwd=ctx.working_dir,
                timeout_s=limit_s,
                env=_env(ctx),
                spool=output_file(ctx),
                may_leave_processes=True,
                cancel_check=ctx.cancel_check,
                on_output=ctx.on_output,
            )
            try:
                return await self._services.runner.run(request)
            except FileNotFoundError as error:
                problem = error
            except OSError as error:
                problem = error
                break
        few = problem is not None and problem.errno in (errno.EMFILE, errno.ENFILE)
        hint = " Allow the agent more open files: ulimit -n 1024." if few else ""
        raise ToolError(f"The command could not be started in {ctx.working_dir}: {problem}.{hint}") from problem


def _to_result(output: CommandOutput, command: str, limit_s: float, ctx: ExecCtx) -> ToolResult:
    text = raw = _decode_text(output).strip("\n")
    status: CallStatus = "ok"
    code = output.exit_code
    if output.timed_out:
        status, code = "timeout", TIMED_OUT
        so_far = f" Output so far:\n{text}" if text else ""
        text = f"Timed out after {limit_s:g} s; the command and all its processes were stopped.{so_far}"
    elif output.cancelled:
        status, code = "cancelled", CANCELLED
        text = f"Cancelled.{' Output so far:' if text else ''}\n{text}".strip()
    elif code != 0:
        status = "error"
        text = f"Exit {code}: {text or f'no output from {command!r} in {ctx.working_dir}'}"
    meta = ToolMeta(
        status=status,
        output_path=None if output.spool is None else str(output.spool),
        total_bytes=output.total_bytes,
        dropped_bytes=0 if output.cut_at is None else max(output.total_bytes - len(output.output), 0),
    )
    text = "\n".join(part for part in (text or EMPTY_OUTPUT, _background_note(output)) if part)
    return ToolResult(text, code, display=None if text == raw else raw, meta=meta)


def _background_note(output: CommandOutput) -> str:
    """Return what became of processes that the command left behind."""
    if left := output.left_running:
        shown = ", ".join(f"{process.pid} ({_shorten(process.command)})" for process in left[:MAX_SHOWN_PROCESSES])
        more = ", ..." if len(left) > MAX_SHOWN_PROCESSES else ""
        what = "1 process is" if len(left) == 1 else f"{len(left)} processes are"
        return f"[{what} still running in the background: {shown}{more}; its later output is not kept]"
    if count := output.ended_processes:
        what = "1 process" if count == 1 else f"{count} processes"
        return f"[{what} left in the background ended with the command; use background: true to keep one running]"
    return ""


def _shorten(command: str) -> str:
    return command if len(command) <= MAX_COMMAND_CHARS else f"{command[:MAX_COMMAND_CHARS]}..."


def _decode_text(output: CommandOutput) -> str:
    if output.cut_at is None:
        return decode_output(output.output)
    # Head and tail are not adjacent in the original; decoding them together could join bytes into a wrong character.
    head, tail = output.output[: output.cut_at], output.output[output.cut_at :]
    return f"{decode_output(head)}\n[...]\n{decode_output(tail)}"


def _env(ctx: ExecCtx) -> dict[str, str]:
    """Return the variables of this call: the trace, and the key of its effect."""
    given = {"TRACEPARENT": ctx.traceparent, KEY_VARIABLE: ctx.effect_key}
    return {name: value for name, value in given.items() if value}
