"""The events of a run as lines, also while they are still being written."""

import os
import time
from collections.abc import Collection, Iterator
from typing import BinaryIO

from agent.protocol.events import RunCompleted
from agent.sessions.lock import holder_of
from agent.sessions.log.log_index import LogLine, head_of, lines_of
from agent.sessions.views.listing import FoundRun
from agent.vocabulary import exit_codes
from cli.pages.pages import show_text
from cli.run.progress import stderr_line
from tooling.output import decode_output

_LOOK_S = 0.1


def print_events(found: FoundRun, *, types: Collection[str], steps: Collection[str], is_followed: bool) -> int:
    """Print the events that were asked for; following ends with the run, and fails when that was killed."""
    lines = _followed(found) if is_followed else lines_of(found.folder.events, found.run_id)
    has_ended = False
    try:
        for line in lines:
            has_ended = has_ended or line.type == RunCompleted.type
            if (not types or line.type in types) and (not steps or line.step_id in steps):
                show_text(decode_output(line.raw))
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    if is_followed and not has_ended:
        stderr_line("error: the run was cut off; it has no result")
        return exit_codes.FAILED
    return exit_codes.OK


def _followed(found: FoundRun) -> Iterator[LogLine]:
    """Yield the lines of a run as they come, until its result is there or nobody is left to write it."""
    has_begun = False
    with found.folder.events.open("rb") as log:
        while True:
            # Asked before reading: what a run writes just before it ends is read after that.
            is_held = holder_of(found.folder) is not None
            for line in _whole_lines(log):
                if line.run_id == found.run_id:
                    has_begun = True
                    yield line
                elif has_begun:
                    # One run at a time: where another one writes, this one is over.
                    return
                if has_begun and line.type == RunCompleted.type:
                    return
            if not is_held:
                return
            time.sleep(_LOOK_S)


def _whole_lines(log: BinaryIO) -> Iterator[LogLine]:
    """Yield the lines there are; half of one is left for later."""
    while raw := log.readline():
        if not raw.endswith(b"\n"):
            log.seek(-len(raw), os.SEEK_CUR)
            return
        if line := head_of(raw):
            yield line
