"""A box that is built before its command is known: while the model thinks, not while it waits."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.backends.box_process import BoxProcess
from agent.backends.collector import OutputCollector
from agent.backends.confinement import Confinement
from tooling.contract.command import CommandRequest
from tooling.contract.fact import dataclass

# A pipe takes this much without anybody reading; longer commands get a box of their own.
_MOST_BYTES = 60_000
_SHELL = ("bash", "-c")
# Waits for the command, closes the way it came, and becomes exactly what `bash -c COMMAND` would have been.
_WAIT = 'IFS= read -r -d "" command <&{fd} || exit 1; exec {fd}<&-; exec bash -c "$command"'


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
            and len(request.argv[-1]) * 4 < _MOST_BYTES
        )

    def give(self, request: CommandRequest, sink: OutputCollector) -> BoxProcess:
        """Hand the command over and return the process it becomes."""
        self.sink.become(sink)
        try:
            os.write(self.command, os.fsencode(request.argv[-1]) + b"\0")
        finally:
            os.close(self.command)
        return self.process

    async def discard(self) -> None:
        """End the box without having used it."""
        os.close(self.command)
        await self.process.finish(in_doubt=True)


def build_spare(
    start: Callable[[Sequence[str], Sequence[OutputCollector], tuple[int, ...]], BoxProcess],
    confinement: Confinement,
    cwd: Path,
) -> Spare:
    """Start a box that waits for its command. Raises OSError."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    sink = LateSink()
    try:
        process = start((*_SHELL, _WAIT.format(fd=reading)), (sink,), (reading,))
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Spare(process=process, sink=sink, command=writing, confinement=confinement, cwd=cwd)
