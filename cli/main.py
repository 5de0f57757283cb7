"""Entry point: answers `--version` at once and passes everything else to the application."""

import gc
import io
import os
import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    try:
        _run()
    except KeyboardInterrupt:
        # Ctrl-C while modules are still being imported.
        sys.exit(130)


def _run() -> None:
    arguments = sys.argv[1:]
    _open_closed_streams()
    if arguments == ["--version"]:
        from agent.version import VERSION

        sys.stdout.write(f"windlass {VERSION}\n")
        try:
            sys.stdout.flush()
        except OSError:
            _exit(0)
        sys.exit(0)
    # Nearly everything created by imports stays alive; garbage collection meanwhile costs 5 % of the start.
    gc.disable()
    _find_own_modules()
    _sanitize_streams()
    if not arguments and sys.stdin.isatty() and sys.stdout.isatty():
        from cli.run.early_prompt import early_prompt

        with early_prompt():
            exit_code = _run_cli(arguments)
    else:
        exit_code = _run_cli(arguments)
    _exit(exit_code)


def _exit(exit_code: int) -> None:
    from cli.exit import exit_process

    exit_process(exit_code)


def _find_own_modules() -> None:
    from cli.own_modules import install

    install()


def _run_cli(arguments: list[str]) -> int:
    from cli.application import run_cli

    return run_cli(arguments)


def _sanitize_streams() -> None:
    """Strip control sequences from output to a terminal, and escape characters that cannot be encoded."""
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
    """Open closed streams on /dev/null; otherwise the next file opened would get their descriptor."""
    # Not writable in place of stdout: lost output is an error.
    for name, mode, access in (("stdin", "r", os.O_RDWR), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDWR)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))
