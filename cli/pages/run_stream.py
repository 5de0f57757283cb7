"""The events of a run as lines, also while they are still being written."""

import os
import time
from collections.abc import Collection, Iterator
from typing import BinaryIO

from agent.protocol.events import RunCompleted
from agent.sessions.lock import lock_holder
from agent.sessions.log.log_index import LogLine, parse_head, run_lines
from agent.sessions.views.listing import RunRef
from agent.vocabulary import exit_codes
from cli.pages.pages import print_text
from cli.run.progress import print_stderr
from tooling.output import decode_output

_POLL_S = 0.1


def print_events(found: RunRef, *, types: Collection[str], steps: Collection[str], is_followed: bool) -> int:
    """Print the events that were asked for; following ends with the run, and fails when that was killed."""
    lines = _follow(found) if is_followed else run_lines(found.folder.events, found.run_id)
    has_ended = False
    try:
        for line in lines:
            has_ended = has_ended or line.type == RunCompleted.type
            if (not types or line.type in types) and (not steps or line.step_id in steps):
                print_text(decode_output(line.raw))
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    if is_followed and not has_ended:
        print_stderr("error: the run was cut off; it has no result")
        return exit_codes.FAILED
    return exit_codes.OK


def _follow(found: RunRef) -> Iterator[LogLine]:
    """Yield the lines of a run as they come, until its result is there or nobody is left to write it."""
    has_begun = False
    with found.folder.events.open("rb") as log:
        while True:
            # Asked before reading: what a run writes just before it ends is read after that.
            is_held = lock_holder(found.folder) is not None
            for line in _complete_lines(log):
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
            time.sleep(_POLL_S)


def _complete_lines(log: BinaryIO) -> Iterator[LogLine]:
    """Yield the lines there are; half of one is left for later."""
    while raw := log.readline():
        if not raw.endswith(b"\n"):
            log.seek(-len(raw), os.SEEK_CUR)
            return
        if line := parse_head(raw):
            yield line
