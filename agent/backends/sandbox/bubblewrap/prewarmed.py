"""A box that is built before its command is known: while the model thinks, not while it waits."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.sandboxed_process import SandboxedProcess
from agent.backends.sandbox.types import SandboxPolicy
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass

# A pipe takes this much without anybody reading; longer commands get a box of their own.
_MAX_COMMAND_BYTES = 60_000
_SHELL = ("bash", "-c")
# Waits for one line of shell, which makes it exactly what `bash -c COMMAND` would have been. The plainest shell of a
# system starts in a part of the time that bash takes, and every word of that line is older than all of them.
_WAITING_SHELL = ("sh", "-s")
_EXEC_TEMPLATE = "exec bash -c {} </dev/null\n"


class DeferredCollector(OutputCollector):
    """Stands in for the collector of a command that is not known yet."""

    def __init__(self) -> None:
        super().__init__(cap_bytes=4096)
        self._target: OutputCollector | None = None

    def attach(self, real: OutputCollector) -> None:
        """Hand everything on from now."""
        self._target = real

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._target is None:
            super().feed(data)
        else:
            self._target.feed(data)

    @property
    def output(self) -> bytes:
        """Return what was taken."""
        return super().output if self._target is None else self._target.output


@dataclass(frozen=True, slots=True, kw_only=True)
class PrewarmedSandbox:
    """A box with nothing in it but a shell that waits for its command."""

    process: SandboxedProcess
    sink: DeferredCollector
    command_fd: int
    policy: SandboxPolicy
    cwd: Path

    def is_current(self, confinement: SandboxPolicy) -> bool:
        """Say whether this box still lives and shows what one built now would show."""
        return confinement == self.policy and not self.process.exited.done()

    def can_run(self, request: CommandRequest, confinement: SandboxPolicy) -> bool:
        """Say whether this box is the one the request would have got."""
        return (
            len(request.argv) == len(_SHELL) + 1
            and request.argv[: len(_SHELL)] == _SHELL
            and request.cwd == self.cwd
            and not request.env
            and request.merge_stderr
            and self.is_current(confinement)
            and len(_exec_line(request)) < _MAX_COMMAND_BYTES
        )

    def start_command(self, request: CommandRequest, sink: OutputCollector) -> SandboxedProcess:
        """Hand the command over and return the process it becomes."""
        self.sink.attach(sink)
        try:
            os.write(self.command_fd, _exec_line(request))
        finally:
            os.close(self.command_fd)
        return self.process

    async def discard(self) -> None:
        """End the box without having used it."""
        os.close(self.command_fd)
        await self.process.finish(in_doubt=True)


def _exec_line(request: CommandRequest) -> bytes:
    return os.fsencode(_EXEC_TEMPLATE.format(shlex.quote(request.argv[-1])))


def build_prewarmed(
    start: Callable[[Sequence[str], Sequence[OutputCollector], int], SandboxedProcess],
    confinement: SandboxPolicy,
    cwd: Path,
) -> PrewarmedSandbox:
    """Start a box that waits for its command. Raises OSError."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    sink = DeferredCollector()
    try:
        process = start(_WAITING_SHELL, (sink,), reading)
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return PrewarmedSandbox(process=process, sink=sink, command_fd=writing, policy=confinement, cwd=cwd)
