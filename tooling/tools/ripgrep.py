"""The door to ripgrep: an argument list through the command runner, never a shell string."""

from collections.abc import Sequence
from pathlib import Path

from tooling.contract.command import CommandOutput, CommandRequest, CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.result import CANCELLED, TIMED_OUT, ToolError
from tooling.output import GREP_TIMEOUT_MS, decode_output
from tooling.tools.walk import SKIPPED_DIRS

_NOT_FOUND = 127
_FAILED = 2
_BASE_ARGS = ("--no-config", "--hidden", "--no-require-git", "--no-messages", "--color=never", "--sort=path")
_EXCLUDE_ARGS = tuple(part for name in SKIPPED_DIRS for part in ("--glob", f"!{name}"))


class Ripgrep:
    """Runs ripgrep where commands run, and remembers when there is none."""

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner
        self._is_absent = False

    async def run(self, args: Sequence[str], *, glob: str | None, cwd: Path, ctx: ExecCtx) -> bytes | None:
        """Return what it printed, or None when it is not installed; a failure is a ToolError."""
        if self._is_absent:
            return None
        # A leading "!" would turn the wanted files into the unwanted ones.
        wanted = () if glob is None else ("--glob", glob.replace("!", "[!]", 1) if glob.startswith("!") else glob)
        request = CommandRequest(
            argv=("rg", *_BASE_ARGS, *wanted, *_EXCLUDE_ARGS, *args),
            cwd=cwd,
            timeout_s=GREP_TIMEOUT_MS / 1000,
            merge_stderr=False,
            cancel_check=ctx.cancel_check,
        )
        try:
            found = await self._runner.run(request)
        except FileNotFoundError:
            found = CommandOutput(exit_code=_NOT_FOUND, output=b"")
        if found.exit_code == _NOT_FOUND:
            self._is_absent = True
            return None
        return _check_output(found)


def _check_output(found: CommandOutput) -> bytes:
    if found.timed_out:
        raise ToolError("The search took too long; narrow the path.", status="timeout", exit_code=TIMED_OUT)
    if found.cancelled:
        raise ToolError("Cancelled.", status="cancelled", exit_code=CANCELLED)
    problem = decode_output(found.stderr).strip()
    # Exit code 2 without a message means that some file could not be read; the rest was searched.
    if found.exit_code >= _FAILED and problem:
        raise ToolError(f"The search failed: {problem[:1000]}")
    return found.output
