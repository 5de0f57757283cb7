"""A box that is built before its command is known: while the model thinks, not while it waits."""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.sandboxed_process import BoxProcess
from agent.backends.sandbox.types import Confinement
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass

# A pipe takes this much without anybody reading; longer commands get a box of their own.
_MOST_BYTES = 60_000
_SHELL = ("bash", "-c")
# Waits for one line of shell, which makes it exactly what `bash -c COMMAND` would have been. The plainest shell of a
# system starts in a part of the time that bash takes, and every word of that line is older than all of them.
_WAITING = ("sh", "-s")
_LINE = "exec bash -c {} </dev/null\n"


class LateSink(OutputCollector):
    """Stands in for the collector of a command that is not known yet."""

    def __init__(self) -> None:
        super().__init__(cap_bytes=4096)
        self._real: OutputCollector | None = None

    def become(self, real: OutputCollector) -> None:
        """Hand everything on from now."""
        self._real = real

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._real is None:
            super().feed(data)
        else:
            self._real.feed(data)

    @property
    def output(self) -> bytes:
        """Return what was taken."""
        return super().output if self._real is None else self._real.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Spare:
    """A box with nothing in it but a shell that waits for its command."""

    process: BoxProcess
    sink: LateSink
    command: int
    confinement: Confinement
    cwd: Path

    def is_for(self, confinement: Confinement) -> bool:
        """Say whether this box still lives and shows what one built now would show."""
        return confinement == self.confinement and not self.process.exited.done()

    def fits(self, request: CommandRequest, confinement: Confinement) -> bool:
        """Say whether this box is the one the request would have got."""
        return (
            len(request.argv) == len(_SHELL) + 1
            and request.argv[: len(_SHELL)] == _SHELL
            and request.cwd == self.cwd
            and not request.env
            and request.merge_stderr
            and self.is_for(confinement)
            and len(_line(request)) < _MOST_BYTES
        )

    def give(self, request: CommandRequest, sink: OutputCollector) -> BoxProcess:
        """Hand the command over and return the process it becomes."""
        self.sink.become(sink)
        try:
            os.write(self.command, _line(request))
        finally:
            os.close(self.command)
        return self.process

    async def discard(self) -> None:
        """End the box without having used it."""
        os.close(self.command)
        await self.process.finish(in_doubt=True)


def _line(request: CommandRequest) -> bytes:
    return os.fsencode(_LINE.format(shlex.quote(request.argv[-1])))


def build_spare(
    start: Callable[[Sequence[str], Sequence[OutputCollector], int], BoxProcess],
    confinement: Confinement,
    cwd: Path,
) -> Spare:
    """Start a box that waits for its command. Raises OSError."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    sink = LateSink()
    try:
        process = start(_WAITING, (sink,), reading)
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Spare(process=process, sink=sink, command=writing, confinement=confinement, cwd=cwd)
