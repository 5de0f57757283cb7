"""What every kind of box offers to the runner, and the checks they share."""

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from agent.backends.confinement import Confinement
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.run_process import Running
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a box does and, said aloud, what it does not."""

    name: str
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]


class Box(Protocol):
    """Starts commands so that they can do no more than a confinement says."""

    @property
    def confinement(self) -> Confinement:
        """Return what commands are confined to."""
        ...

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> Running:
        """Start a command. Raises OSError when it cannot be started in this box."""
        ...

    def describe(self) -> Description:
        """Return what the box covers and what it does not."""
        ...

    def close(self) -> None:
        """End what still runs, and remove what was made for the box."""
        ...


def check_request(request: CommandRequest, confinement: Confinement, path: str) -> None:
    """Raise the OSError that starting the command without a box would have raised."""
    if not request.cwd.is_dir():
        problem = errno.ENOTDIR if request.cwd.exists() else errno.ENOENT
        raise OSError(problem, os.strerror(problem), str(request.cwd))
    if not confinement.shows_folder(request.cwd):
        raise PermissionError(errno.EACCES, "the folder is not visible in the box", str(request.cwd))
    if any("\0" in word for word in request.argv):
        raise OSError(errno.EINVAL, "a command cannot hold a null byte")
    program = request.argv[0]
    found = (request.cwd / program).exists() if os.sep in program else shutil.which(program, path=path)
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def find_program(name: str) -> Path | None:
    """Return the absolute path of a system program; the PATH is not asked, for a command could have changed it."""
    places = ("/usr/bin", "/usr/local/bin", "/bin", "/usr/sbin", "/run/wrappers/bin", "/run/current-system/sw/bin")
    return next((Path(place, name) for place in places if os.access(Path(place, name), os.X_OK)), None)
