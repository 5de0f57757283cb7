"""Run ripgrep through the command runner, as an argument list and never as a shell string."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.result import CANCELLED, TIMED_OUT, ToolError
from tooling.output import GREP_TIMEOUT_MS, decode_output
from tooling.tools.walk import SKIPPED_DIRS

_NOT_FOUND = 127
_FAILED = 2
# Not sorted by ripgrep, which would then use one thread only.
_BASE_ARGS = ("--no-config", "--hidden", "--no-require-git", "--no-messages", "--color=never")
_EXCLUDE_ARGS = tuple(part for name in SKIPPED_DIRS for part in ("--glob", f"!{name}"))
# Results contain the number of matches, so all of them are read.
_MAX_OUTPUT_BYTES = 16_000_000


class RipgrepOutput(NamedTuple):
    """Output of ripgrep; an enormous output is incomplete."""

    data: bytes
    is_complete: bool


class Ripgrep:
    """Runs ripgrep in the same environment as commands, and records if it is not installed."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner
        self._is_missing = False

    async def run(self, args: Sequence[str], *, glob: str | None, cwd: Path, ctx: ExecCtx) -> RipgrepOutput | None:
        """Return the output, or None if ripgrep is not installed; raise ToolError if the search fails."""
        if self._is_missing:
            return None
        # A leading "!" would exclude the matching files instead.
        glob_args = () if glob is None else ("--glob", glob.replace("!", "[!]", 1) if glob.startswith("!") else glob)
        request = CommandRequest(
            argv=("rg", *_BASE_ARGS, *glob_args, *_EXCLUDE_ARGS, *args),
            cwd=cwd,
            timeout_s=GREP_TIMEOUT_MS / 1000,
            merge_stderr=False,
            cap_bytes=_MAX_OUTPUT_BYTES,
            only_reads=True,
            cancel_check=ctx.cancel_check,
        )
        try:
            output = await self._runner.run(request)
        except FileNotFoundError:
            output = CommandOutput(exit_code=_NOT_FOUND, output=b"")
        if output.exit_code == _NOT_FOUND:
            self._is_missing = True
            return None
        return _check_output(output)


def _check_output(output: CommandOutput) -> RipgrepOutput:
    if output.timed_out:
        raise ToolError("The search took too long; narrow the path.", status="timeout", exit_code=TIMED_OUT)
    if output.cancelled:
        raise ToolError("Cancelled.", status="cancelled", exit_code=CANCELLED)
    problem = decode_output(output.stderr).strip()
    # Exit code 2 without a message means that some files could not be read; the others were searched.
    if output.exit_code >= _FAILED and problem:
        raise ToolError(f"The search failed: {problem[:1000]}")
    return RipgrepOutput(output.output[: output.cut_at], is_complete=output.cut_at is None)
