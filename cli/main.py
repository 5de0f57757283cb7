"""The entry point: answers `--version` at once, hands everything else on, and leaves without lingering."""

import gc
import io
import os
import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        _run()
    except KeyboardInterrupt:
        # Pressed while all of it was still being loaded.
        sys.exit(130)


def _run() -> None:
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from agent.version import VERSION

        sys.stdout.write(f"windlass {VERSION}\n")
        sys.exit(0)
    # Nearly all that loading makes stays: to look for garbage meanwhile costs a twentieth of a start.
    gc.disable()
    _open_closed_streams()
    _sanitize_streams()
    if not arguments and sys.stdin.isatty() and sys.stdout.isatty():
        from cli.run.early_prompt import early_prompt

        with early_prompt():
            exit_code = _run_cli(arguments)
    else:
        exit_code = _run_cli(arguments)
    from cli.exit import exit_process

    exit_process(exit_code)


def _run_cli(arguments: list[str]) -> int:
    from cli.application import run_cli

    return run_cli(arguments)


def _sanitize_streams() -> None:
    """Let a terminal get words alone, and a sign for a character that it does not know instead of an error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if not stream.isatty():
            stream.reconfigure(errors="backslashreplace")
            continue
        from cli.screen.sanitize import PlainStream

        plain = PlainStream(stream.buffer, stream.encoding, "backslashreplace", line_buffering=True)
        setattr(sys, name, plain)


def _open_closed_streams() -> None:
    """Let streams that were closed lead nowhere; else the next file opened would take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
