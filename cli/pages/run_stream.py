"""Prints the events of a run, and follows a run in progress."""

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
from tooling.files.open_regular import open_regular
from tooling.output import decode_output

_POLL_S = 0.1
NO_RESULT = "error: the run was interrupted; it has no result"


def print_events(run: RunRef, *, types: Collection[str], steps: Collection[str], is_followed: bool) -> int:
    """Print the selected events and return the exit code; following ends with the run, and fails if it was killed."""
    lines = _follow(run) if is_followed else run_lines(run.folder.events, run.run_id)
    has_ended = False
    try:
        for line in lines:
            has_ended = has_ended or line.type == RunCompleted.type
            if (not types or line.type in types) and (not steps or line.step_id in steps):
                print_text(decode_output(line.raw))
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    if is_followed and not has_ended:
        print_stderr(NO_RESULT)
        return exit_codes.FAILED
    return exit_codes.OK


def _follow(run: RunRef) -> Iterator[LogLine]:
    """Yield the lines of a run as they are written, until it ends or its process does."""
    has_started = False
    with open_regular(run.folder.events) as log:
        while True:
            # Checked before reading, so that the last lines of a run that ends now are still read.
            is_held = lock_holder(run.folder) is not None
            for line in _complete_lines(log):
                if line.run_id == run.run_id:
                    has_started = True
                    yield line
                elif has_started:
                    # A session has one run at a time: a line of another run means that this one has ended.
                    return
                if has_started and line.type == RunCompleted.type:
                    return
            if not is_held:
                return
            time.sleep(_POLL_S)


def _complete_lines(log: BinaryIO) -> Iterator[LogLine]:
    """Yield the complete lines; the start of an incomplete one is read again later."""
    while raw := log.readline():
        if not raw.endswith(b"\n"):
            log.seek(-len(raw), os.SEEK_CUR)
            return
        if line := parse_head(raw):
            yield line
