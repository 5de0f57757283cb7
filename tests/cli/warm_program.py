"""Starts the program by forking a process that has already imported it, in a fifth of the time."""

import gc
import json
import os
import runpy
import signal
import socket
import sys
import tempfile
from importlib import import_module

from tests.tooling.safety.judge_harness import judge_command

# The modules every run needs; the run imports the rest.
IMPORTED = (
    "agent.app",
    "agent.backends.sandbox.lazy_runner",
    "agent.backends.sandbox.runner",
    "agent.backends.sandbox.self_test",
    "agent.executor",
    "agent.memory.after_run",
    "agent.model.http.response_parser",
    "agent.model.recorded.script",
    "agent.model.reply.textual_calls",
    "agent.sessions.checkpoints.record_changes",
    "cli.application",
    "cli.commands.run",
    "cli.exit",
    "cli.run.result_output",
    "cli.run.run_task",
    "tooling.safety.shell.shell_judge",
    "tree_sitter",
    "tree_sitter_bash",
)
LARGEST_REQUEST = 1 << 18


def serve(requests: socket.socket) -> None:
    """Start one program per request until the other end is closed."""
    while True:
        message, fds, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 4)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            start_program(message, fds)
            return
        for fd in fds:
            os.close(fd)
        while _was_reaped():
            pass


def start_program(message: bytes, fds: list[int]) -> None:
    """Start the program; report its process id and later its exit code."""
    *streams, report = fds
    if pid := os.fork():
        for fd in streams:
            os.close(fd)
        os.write(report, b"%d\n" % pid)
        os.write(report, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    run_cli(**json.loads(message))


def run_cli(*, words: list[str], environ: dict[str, str], cwd: str) -> None:
    """Become `python -m cli`."""
    os.chdir(cwd)
    os.environ.clear()
    tempfile.tempdir = None
    os.environ.update(environ)
    sys.argv[1:] = words
    sys.path[0] = cwd
    gc.unfreeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runpy.run_module("cli", run_name="__main__", alter_sys=True)


def _was_reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    # Loads and compiles the rules, which takes half as long as a run.
    judge_command("ls")
    # Garbage collection would copy every page that the forked programs share with this process.
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        serve(channel)
