"""The tools run_command and run_python: run a shell command or Python code with limits on time and output."""

import errno
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import CANCELLED, TIMED_OUT, CallStatus, ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.finish import output_file
from tooling.output import decode_output

MAX_TIMEOUT_S = 3600.0
EMPTY_OUTPUT = "(empty output)"
SHELLS = ("bash", "sh")
PYTHON_TOOL = "run_python"
# Maximum length of an argument in the kernel.
MAX_CODE_BYTES = 128 * 1024 - 1
CODE_TOO_LONG = "The code is longer than 128 kB; write it to a file and run that with run_command."
KILLED = 137
KILLED_NOTE = "[it was killed: by a signal, or because it needed more memory than it may use]"
# Unbuffered, so that output before a timeout is part of the result.
PYTHON_ENV = {"PYTHONUNBUFFERED": "1"}
# Variable with the idempotency key of the command's effect.
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
        argvs = [(shell, "-c", params.command) for shell in SHELLS]
        return await _run_first(argvs, self._services, params.timeout_s, ctx, name=repr(params.command))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPythonParams:
    """Arguments of run_python."""

    code: str
    timeout_s: Annotated[float | None, "seconds"] = None


class RunPython(Tool[RunPythonParams]):
    """Runs Python code in the workspace, in a separate interpreter."""

    params = RunPythonParams
    spec = ToolSpec(
        name=PYTHON_TOOL,
        description="Run Python code in the workspace and return what it prints. Variables are not kept.",
        parameters=schema_of(RunPythonParams),
        effect="execute",
        timeout_ms=0,
    )

    def action(self, params: RunPythonParams, ctx: ExecCtx) -> Action:
        """Return the command that runs the code, for the judge and the user."""
        return Action(tool=self.spec.name, effect="execute", subject=python_command(params.code), cwd=ctx.working_dir)

    async def run(self, params: RunPythonParams, ctx: ExecCtx) -> ToolResult:
        """Run the code and report its exit code, output and full size."""
        if not params.code.strip():
            raise ToolError("The code is empty.")
        if len(params.code.encode("utf-8", "surrogatepass")) > MAX_CODE_BYTES:
            raise ToolError(CODE_TOO_LONG)
        argvs = [("python3", "-c", params.code)]
        return await _run_first(argvs, self._services, params.timeout_s, ctx, name="the code", env=PYTHON_ENV)


def python_command(code: str) -> str:
    """Return the shell command that runs the code of a call of run_python."""
    return shlex.join(("python3", "-c", code))


def python_code(command: str) -> str | None:
    """Return the code in a command of `python_command`, None for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words[2] if len(words) == 3 and words[:2] == ["python3", "-c"] else None


async def _run_first(
    argvs: Sequence[tuple[str, ...]],
    services: ToolServices,
    timeout_s: float | None,
    ctx: ExecCtx,
    *,
    name: str,
    env: Mapping[str, str] | None = None,
) -> ToolResult:
    """Run the first command whose program exists; `name` is the name reported to the model."""
    limit_s = min(max(timeout_s or services.command_timeout_s, 0.1), MAX_TIMEOUT_S)
    problem: OSError | None = None
    for argv in argvs:
        request = CommandRequest(
            argv=argv,
            cwd=ctx.working_dir,
            timeout_s=limit_s,
            env={**_env(ctx), **(env or {})},
            spool=output_file(ctx),
            may_leave_processes=True,
            cancel_check=ctx.cancel_check,
            on_output=ctx.on_output,
        )
        try:
            return _to_result(await services.runner.run(request), name, limit_s, ctx)
        except FileNotFoundError as error:
            problem = error
        except OSError as error:
            problem = error
            break
    few = problem is not None and problem.errno in (errno.EMFILE, errno.ENFILE)
    hint = " Allow the agent more open files: ulimit -n 1024." if few else ""
    raise ToolError(f"The command could not be started in {ctx.working_dir}: {problem}.{hint}") from problem


def _to_result(output: CommandOutput, name: str, limit_s: float, ctx: ExecCtx) -> ToolResult:
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
        killed = f"\n{KILLED_NOTE}" if code == KILLED else ""
        text = f"Exit {code}: {text or f'no output from {name} in {ctx.working_dir}'}{killed}"
    meta = ToolMeta(
        status=status,
        output_path=None if output.spool is None else str(output.spool),
        total_bytes=output.total_bytes,
        dropped_bytes=0 if output.cut_at is None else max(output.total_bytes - len(output.output), 0),
    )
    text = "\n".join(part for part in (text or EMPTY_OUTPUT, _background_note(output)) if part)
    return ToolResult(text, code, display=None if text == raw else raw, meta=meta)


def _background_note(output: CommandOutput) -> str:
    """Return a note about processes that the command left behind."""
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
    """Return the variables of this call: those of the task, the trace, and the key of its effect."""
    given = {**ctx.variables, "TRACEPARENT": ctx.traceparent, KEY_VARIABLE: ctx.effect_key}
    return {name: value for name, value in given.items() if value}
