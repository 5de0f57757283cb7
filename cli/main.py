"""The entry point: answers `--version` at once, hands everything else on, and leaves without lingering."""

import gc
import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent.version import VERSION

        sys.stdout.write(f"windlass {VERSION}\n")
        sys.exit(0)
    # Nearly all that loading makes stays: to look for garbage meanwhile costs a twentieth of a start.
    gc.disable()
    from cli.application import start
    from cli.leave import leave

    leave(start(arguments))
