"""The first process of a sandbox: forks workers that run one command after another, protected from the commands.

A bare interpreter runs this file inside the sandbox, so it imports only small modules of the standard library. As
process 1 of its namespace it cannot be killed from inside, and neither it nor its workers can be read or traced by
commands, which run as the same user. A worker adopts the processes that its command leaves behind, so all of them can
be found below it.
"""

import contextlib
import ctypes
import gc
import marshal
import os
import signal
import socket
import sys

# Defined here because importing `typing` would delay the first command.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Messages between a worker and the host program; the file descriptors of a command come with RUN.
READY, GO, RUN, TAKEN = b"ready", b"go", b"run", b"taken"
EXITED, EMPTY, FAILED = b"exited", b"empty", b"failed"
MESSAGE_BYTES = 4096
NAME = b"windlass"

_SET_DUMPABLE, _SET_NAME, _SET_CHILD_SUBREAPER = 4, 15, 36
_CANNOT_RUN = 126
_FD_BYTES = 4
# Index of the address of the arguments in /proc/self/stat, counted after the program name.
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46


def main() -> "NoReturn":
    """Fork a worker for every channel received; the end of the control socket ends the sandbox."""
    control = _take_control()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler would make the signal reach this process from inside its namespace.
        signal.signal(number, signal.SIG_DFL)
    # Lets the kernel reap orphans.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Forked processes would copy the memory that the collector writes to.
    gc.disable()
    gc.freeze()
    while True:
        fds = receive_fds(control)
        if not fds:
            os._exit(0)
        with contextlib.suppress(OSError):
            # Out of processes: the host sees the closed channel.
            if not os.fork():
                control.close()
                serve(socket.socket(fileno=fds[0]))
        os.close(fds[0])


def serve(channel: socket.socket) -> "NoReturn":
    """Run the commands of one channel, one at a time, until it is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _prctl(_SET_CHILD_SUBREAPER, 1)
    with contextlib.suppress(OSError):
        channel.send(READY)
        # The limits are set before anything is started.
        is_open = channel.recv(MESSAGE_BYTES) == GO
        while is_open:
            # Forked in advance, so that a command only needs to be executed.
            child = os.fork()
            if not child:
                run_command(channel)
            code, is_empty = wait_for(child)
            channel.send(b"%s %d %d" % (EXITED, code, is_empty))
            if not is_empty:
                wait_for_all()
                channel.send(EMPTY)
    os._exit(0)


def wait_for(child: int) -> tuple[int, bool]:
    """Reap processes until a child has ended; return its exit code, and whether no other process is left."""
    pid, status = os.wait()
    while pid != child:
        pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return code, True
    return code, False


def wait_for_all() -> None:
    """Wait until all leftover processes of a command have ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def run_command(channel: socket.socket) -> "NoReturn":
    """Wait for a command, then exec it, which closes the channel."""
    try:
        # Ahead of the command, all that does not depend on it: a new session is scheduled anew, which takes long on a
        # busy machine.
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            # Python ignores these signals, which the command would inherit.
            signal.signal(number, signal.SIG_DFL)
        fds = receive_fds(channel)
        if not fds:
            os._exit(0)
        # From here on, killing this process ends the command; before, the next one would run it.
        channel.send(TAKEN)
        argv, env, cwd, has_input = marshal.loads(os.pread(fds[0], os.fstat(fds[0]).st_size, 0))
        os.chdir(cwd)
        if has_input:
            os.dup2(fds.pop(1), 0)
        os.dup2(fds[1], 1)
        os.dup2(fds[-1], 2)
        execute(argv, env)
    except OSError as error:
        with contextlib.suppress(OSError):
            channel.send(b"%s %d" % (FAILED, error.errno or 0))
    finally:
        os._exit(_CANNOT_RUN)


def execute(argv: list[str], env: dict[str, str]) -> "NoReturn":
    """Exec a program found in the PATH of the command."""
    # Not `os.execvpe`, which would import modules for every command.
    folders = [""] if "/" in argv[0] else [f"{folder}/" for folder in env.get("PATH", os.defpath).split(":")]
    for folder in folders[:-1]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.execve(folder + argv[0], argv, env)
    os.execve(folders[-1] + argv[0], argv, env)


def receive_fds(source: socket.socket) -> list[int]:
    """Return the file descriptors of the next message, none at the end; no command inherits them."""
    # `socket.recv_fds` ignores its flags in Python 3.11.
    _, ancillary, _, _ = source.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(4 * _FD_BYTES), socket.MSG_CMSG_CLOEXEC)
    return [fd for _, _, data in ancillary for fd in memoryview(data).cast("i")]


def _take_control() -> socket.socket:
    """Make this process unreadable, and return the control socket, which is its stdin."""
    _prctl(_SET_DUMPABLE, 0)
    _rename()
    control = socket.socket(fileno=os.dup(0))
    # A command inherits the input unless it has one of its own.
    for stream, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        null = os.open(os.devnull, mode | os.O_CLOEXEC)
        os.dup2(null, stream)
        os.close(null)
    return control


def _rename() -> None:
    """Replace the command line, so that `pkill python` does not end the workers."""
    _prctl(_SET_NAME, ctypes.c_char_p(NAME))
    stat = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
    fields = os.read(stat, MESSAGE_BYTES).rpartition(b")")[2].split()
    os.close(stat)
    start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
    if end - start > len(NAME):
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, NAME, len(NAME))


def _prctl(option: int, value: object) -> None:
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0):
        sys.exit(f"prctl {option} failed")


if __name__ == "__main__":
    main()
