"""The entry point: answers `--version` at once, hands everything else on, and leaves without lingering."""

import gc
import os
import sys

FIRST_PROMPT = "> "


def main() -> None:
    """Run the command line and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent.version import VERSION

        sys.stdout.write(f"windlass {VERSION}\n")
        sys.exit(0)
    # Nearly all that loading makes stays: to look for garbage meanwhile costs a twentieth of a start.
    gc.disable()
    _open_closed_streams()
    if not arguments and sys.stdin.isatty() and sys.stdout.isatty():
        # The prompt is seen at once; what is typed while the rest loads waits in the terminal.
        sys.stdout.write(FIRST_PROMPT)
        sys.stdout.flush()
    from cli.application import start
    from cli.leave import leave

    leave(start(arguments))


def _open_closed_streams() -> None:
    """Let streams that were closed lead nowhere; else the next file opened would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
