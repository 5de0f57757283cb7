"""Notices when a command is filling the disk."""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from agent.backends.confinement import MIB
from tooling.contract.command import CommandOutput

LOOK_S = 0.25
# On a disk that was full before, a command is not to blame until it has taken this much itself.
_OWN_PART_BYTES = 256 * MIB
_STOPPED = 1


class DiskWatch:
    """Looks at the free space of folders from time to time; `floor` is what must stay free."""

    def __init__(self, folders: Iterable[Path], floor: int) -> None:
        self._folders = tuple(folders)
        self._floor = floor
        self._free = [_free(folder) for folder in self._folders]
        self._next_look = time.monotonic() + LOOK_S
        self.was_full = False

    def is_full(self) -> bool:
        """Say whether the space has run out since the start."""
        now = time.monotonic()
        if now < self._next_look or self.was_full:
            return self.was_full
        self._next_look = now + LOOK_S
        for folder, before in zip(self._folders, self._free, strict=True):
            free = _free(folder)
            self.was_full |= free < self._floor and before - free > _OWN_PART_BYTES
        return self.was_full

    def explained(self, output: CommandOutput) -> CommandOutput:
        """Return the output of a command that was stopped for it, with the reason at its end."""
        reason = f"\nwindlass: stopped, because less than {self._floor // MIB} MiB of the disk are free\n"
        return replace(output, exit_code=_STOPPED, cancelled=False, output=output.output + reason.encode())


def _free(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
