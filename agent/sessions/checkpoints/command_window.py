"""The folders that commands may change, and the time window in which each command may have changed them."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass

# CLOCK_REALTIME_COARSE, which the standard library does not name.
_COARSE_CLOCK = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders that commands may write, the folder of the checkpoint, and the folder for changed contents.

    `cwd` is the working folder, `hidden` are folders that commands do not see. Without a folder nothing is saved, so
    nothing can be undone.
    """

    cwd: Path
    folder: Path | None
    blobs: Path
    run_id: str
    extra_dirs: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders, except those inside another one."""
        folders = dict.fromkeys((self.cwd, *self.extra_dirs))
        return tuple(one for one in folders if not any(one != other and one.is_relative_to(other) for other in folders))


@dataclass(slots=True, kw_only=True)
class CommandWindow:
    """Time window in which a command may have changed files; `ended_ns` is None while it runs."""

    step_id: str
    attempt: int
    command_id: str
    is_background: bool = False
    started_ns: int = 0
    ended_ns: int | None = None

    def covers(self, moment_ns: int) -> bool:
        """Whether the command was running at a time."""
        return self.started_ns <= moment_ns and (self.ended_ns is None or moment_ns <= self.ended_ns)


def earliest_change_ns() -> int:
    """Return a lower bound for the timestamps of files changed from now on.

    Linux takes timestamps of files from a clock that is up to a tick late, or from the exact one.
    """
    return time.clock_gettime_ns(_COARSE_CLOCK if sys.platform == "linux" else time.CLOCK_REALTIME)


def attribute(changed_ns: int | None, windows: Sequence[CommandWindow]) -> list[CommandWindow]:
    """Return the commands that may have made a change; the time of a deletion is unknown."""
    if len(windows) > 1 and changed_ns is not None:
        return [window for window in windows if window.covers(changed_ns)] or list(windows)
    return list(windows)
