"""The entry point: answers `--version` at once, hands everything else on, and leaves without lingering."""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent.version import VERSION

        sys.stdout.write(f"windlass {VERSION}\n")
        sys.exit(0)
    from cli.application import start
    from cli.leave import leave

    leave(start(arguments))
