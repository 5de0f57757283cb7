"""The entry point: answers `--version` at once, hands everything else on, and leaves without lingering."""

import gc
import sys

# Nearly all that a start makes stays, so looking for garbage as often as Python does by default costs a tenth of it.
_NEW_OBJECTS_BEFORE_A_LOOK = 50_000


def main() -> None:
    """Run the command line and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent.version import VERSION

        sys.stdout.write(f"windlass {VERSION}\n")
        sys.exit(0)
    gc.set_threshold(_NEW_OBJECTS_BEFORE_A_LOOK)
    from cli.application import start
    from cli.leave import leave

    leave(start(arguments))
