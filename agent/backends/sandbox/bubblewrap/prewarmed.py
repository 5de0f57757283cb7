"""A sandbox that is started before its command is known, while the model responds."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.sandboxed_process import SandboxedProcess
from agent.backends.sandbox.types import SandboxPolicy
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass

# A pipe buffers this much; longer commands get a new sandbox.
_MAX_COMMAND_BYTES = 60_000
_SHELL = ("bash", "-c")
# Waits for one line of shell, which turns it into exactly what `bash -c COMMAND` would have been. `sh` starts much
# faster than bash, and every `sh` understands that line.
_WAITING_SHELL = ("sh", "-s")
_EXEC_TEMPLATE = "exec bash -c {} </dev/null\n"


class DeferredCollector(OutputCollector):
    """The collector of a command that is not known yet."""

    def __init__(self) -> None:
        super().__init__(cap_bytes=4096)
        self._target: OutputCollector | None = None

    def attach(self, target: OutputCollector) -> None:
        """Pass all later bytes on to another collector."""
        self._target = target

    def feed(self, data: bytes) -> None:
        """Add the next bytes."""
        if self._target is None:
            super().feed(data)
        else:
            self._target.feed(data)

    @property
    def output(self) -> bytes:
        """The collected bytes."""
        return super().output if self._target is None else self._target.output


@dataclass(frozen=True, slots=True, kw_only=True)
class PrewarmedSandbox:
    """A sandbox in which a shell waits for its command."""

    process: SandboxedProcess
    sink: DeferredCollector
    command_fd: int
    policy: SandboxPolicy
    cwd: Path

    def is_current(self, policy: SandboxPolicy) -> bool:
        """Whether this sandbox is alive and has the current policy."""
        return policy == self.policy and not self.process.exited.done()

    def can_run(self, request: CommandRequest, policy: SandboxPolicy) -> bool:
        """Whether a request would get an identical sandbox."""
        return (
            len(request.argv) == len(_SHELL) + 1
            and request.argv[: len(_SHELL)] == _SHELL
            and request.cwd == self.cwd
            and not request.env
            and request.merge_stderr
            and self.is_current(policy)
            and len(_exec_line(request)) < _MAX_COMMAND_BYTES
        )

    def start_command(self, request: CommandRequest, sink: OutputCollector) -> SandboxedProcess:
        """Start the command and return its process."""
        self.sink.attach(sink)
        try:
            os.write(self.command_fd, _exec_line(request))
        finally:
            os.close(self.command_fd)
        return self.process

    async def discard(self) -> None:
        """End the unused sandbox."""
        os.close(self.command_fd)
        await self.process.finish(in_doubt=True)


def _exec_line(request: CommandRequest) -> bytes:
    return os.fsencode(_EXEC_TEMPLATE.format(shlex.quote(request.argv[-1])))


def build_prewarmed(
    start: Callable[[Sequence[str], Sequence[OutputCollector], int], SandboxedProcess],
    policy: SandboxPolicy,
    cwd: Path,
) -> PrewarmedSandbox:
    """Start a sandbox that waits for its command. Raises OSError."""
    stdin, command_fd = os.pipe2(os.O_CLOEXEC)
    sink = DeferredCollector()
    try:
        process = start(_WAITING_SHELL, (sink,), stdin)
    except OSError:
        os.close(command_fd)
        raise
    finally:
        os.close(stdin)
    return PrewarmedSandbox(process=process, sink=sink, command_fd=command_fd, policy=policy, cwd=cwd)
