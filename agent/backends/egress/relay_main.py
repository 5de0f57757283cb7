"""The relay program inside the sandbox: listens on its loopback, becomes the command, and ends with it.

It is passed to a bare interpreter as text, so it imports only small modules of the standard library.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time

# Defined here because importing `typing` would take five milliseconds for every command.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CHUNK_BYTES = 65_536
FALLBACK_POLL_MS = 500
CANNOT_START, CANNOT_RUN, NOT_FOUND = 125, 126, 127


class Flow:
    """One direction of a connection, which buffers at most one chunk."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source = source
        self._sink = sink
        self.pending = b""
        self.is_eof = False

    def transfer(self) -> None:
        """Transfer what is possible without blocking."""
        with contextlib.suppress(BlockingIOError):
            if not self.pending and not self.is_eof:
                self.pending = self.source.recv(CHUNK_BYTES)
                if not self.pending:
                    self.is_eof = True
                    self._sink.shutdown(socket.SHUT_WR)
            if self.pending:
                self.pending = self.pending[self._sink.send(self.pending) :]


class Relay:
    """Forwards connections from the loopback to the socket of the proxy until the command ends."""

    def __init__(self, listening: socket.socket, proxy: str, command: int) -> None:
        self._listening = listening
        self._proxy = proxy
        self._command = command
        self._flows: dict[int, tuple[Flow, Flow]] = {}
        self._poll = select.poll()
        self._poll.register(listening, select.POLLIN)
        self._pidfd = self._open_pidfd()

    def run(self) -> None:
        """Forward until the command ends."""
        while self._is_command_alive():
            for fd, _ in self._poll.poll(None if self._pidfd is not None else FALLBACK_POLL_MS):
                if fd == self._listening.fileno():
                    self._accept()
                elif fd == self._pidfd:
                    return
                elif fd in self._flows:
                    self._transfer(self._flows[fd])

    def _open_pidfd(self) -> int | None:
        # Missing in old kernels and blocked by strict filters; then the command is polled.
        with contextlib.suppress(OSError, AttributeError):
            pidfd = os.pidfd_open(self._command)
            self._poll.register(pidfd, select.POLLIN)
            return pidfd
        return None

    def _is_command_alive(self) -> bool:
        try:
            os.kill(self._command, 0)
        except ProcessLookupError:
            return False
        return True

    def _accept(self) -> None:
        try:
            client, _ = self._listening.accept()
        except OSError:
            # Out of file descriptors: the listening socket stays readable, so try again later.
            time.sleep(0.05)
            return
        try:
            proxy = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            proxy.connect(self._proxy)
        except OSError:
            client.close()
            return
        pair = (Flow(client, proxy), Flow(proxy, client))
        for end in (client, proxy):
            end.setblocking(False)
            self._flows[end.fileno()] = pair
            self._poll.register(end, select.POLLIN)

    def _transfer(self, pair: tuple[Flow, Flow]) -> None:
        try:
            for flow in pair:
                flow.transfer()
        except OSError:
            self._close_pair(pair)
            return
        if all(flow.is_eof for flow in pair):
            self._close_pair(pair)
            return
        for flow, other in (pair, pair[::-1]):
            events = 0 if flow.pending or flow.is_eof else select.POLLIN
            self._set_events(flow.source, events | (select.POLLOUT if other.pending else 0))

    def _set_events(self, end: socket.socket, events: int) -> None:
        # A closed end is always ready, so it is polled only while events are expected.
        if events:
            self._poll.register(end, events)
        else:
            with contextlib.suppress(KeyError):
                self._poll.unregister(end)

    def _close_pair(self, pair: tuple[Flow, Flow]) -> None:
        for flow in pair:
            self._set_events(flow.source, 0)
            del self._flows[flow.source.fileno()]
            flow.source.close()


def detach() -> bool:
    """Fork a process that is not a child of the command and has none of its streams; return True in it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    return True


def exec_command(command: list[str]) -> "NoReturn":
    """Replace this process by the command, as if it had been started directly."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores these signals, which the command would inherit.
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}", NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN)


def fail(problem: str, code: int) -> "NoReturn":
    """Exit with a message on stderr."""
    os.write(2, os.fsencode(f"network relay: {problem}\n"))
    os._exit(code)


def main(port: int, proxy: str, command: list[str]) -> "NoReturn":
    """Start the relay, then become the command; listening comes first, so that the relay is ready in time."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(128)
        pid = os.getpid()
        is_relay = detach()
    except OSError as error:
        fail(f"cannot start: {error.strerror}", CANNOT_START)
    if not is_relay:
        exec_command(command)
    listening.setblocking(False)
    Relay(listening, proxy, pid).run()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
