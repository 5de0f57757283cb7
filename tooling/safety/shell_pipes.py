"""Dangers that no single command shows: a shell whose ends are tied to a connection."""

from collections.abc import Sequence

from tooling.safety.shell.command import Command
from tooling.safety.shell.wrappers import SHELLS

_CONNECTORS = frozenset({"nc", "ncat", "netcat", "telnet", "socat", "nc.traditional", "nc.openbsd"})
_PIPE_MAKERS = frozenset({"mkfifo", "mknod"})


def is_remote_shell(commands: Sequence[Command]) -> bool:
    """Say whether a text ties a shell to another machine, with or without a named pipe."""
    programs = {command.program for command in commands}
    if not (programs & _CONNECTORS or _is_tls_client(commands)):
        return False
    shells = [command for command in commands if command.program in SHELLS]
    has_pipe = bool(programs & _PIPE_MAKERS)
    return any(has_pipe or "-i" in shell.words or (shell.is_fed and len(shell.words) == 1) for shell in shells)


def _is_tls_client(commands: Sequence[Command]) -> bool:
    return any(command.program == "openssl" and "s_client" in command.words for command in commands)
