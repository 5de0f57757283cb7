"""A workspace to escape from, and the bait around it."""

import ctypes
import fcntl
import os
import platform
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from agent.backends.sandbox.seccomp import ARCHITECTURES
from tests.programs import require
from tests.running_processes import read_all
from tests.sandbox.probes import ESCAPES, Escape

ESCAPE_TIMEOUT_S = 10
_SYSCALL = """
import ctypes, errno, sys
number, reached, *words = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
result = libc.syscall(ctypes.c_long(int(number)), *(ctypes.c_long(int(word)) for word in words))
sys.exit(0 if result >= 0 or errno.errorcode.get(ctypes.get_errno()) in reached.split(",") else 1)
"""
_VICTIM = """
import ctypes, os, signal, sys, time
# The victim is dumpable, so that only the sandbox protects it.
os.dup2(os.open(sys.argv[2], os.O_RDONLY), 9)
signal.signal(signal.SIGUSR1, lambda *_: open(sys.argv[3], "w").close())
print("ready", flush=True)
while True:
    time.sleep(600)
"""
# One that every user can run.
_INTERPRETER = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
_IPC_CREAT, _IPC_RMID = 0o1000, 0
_GET_FLAGS = 0x80086601


class EscapeHarness:
    """Everything that escapes need: files, sockets, a process; use it as a context manager."""

    def __init__(self, owner: int | None = None) -> None:
        self._stack = ExitStack()
        self.root = Path(tempfile.mkdtemp(prefix="wl-escapes-"))
        self._stack.callback(self._remove)
        self.owner = owner
        self.workspace, self.outside, self.home = (self.root / name for name in ("ws", "outside", "home"))
        # An unusual number of seconds to sleep.
        self.marker = f"{86000 + os.getpid() % 999}.{os.urandom(4).hex().translate(str.maketrans('abcdef', '123456'))}"
        self._create_files()
        self._create_repository()
        self.environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(self.home),
            "WINDLASS_TEST_API_KEY": "bait",
            "AWS_SECRET_ACCESS_KEY": "bait",
            "SSH_AUTH_SOCK": str(self.outside / "listener"),
        }
        self.variables = {**self._open_sockets(), **self._create_shared_memory(), **self._open_descriptor()}
        self._change_owner()
        self.variables |= self._start_victim()
        self._facts_before = self.facts()

    def __enter__(self) -> "EscapeHarness":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def script(self) -> str:
        """Return all escapes as one shell script that prints which of them succeeded."""
        places = {
            "WS": self.workspace,
            "OUT": self.outside,
            "FAKE_HOME": self.home,
            "PY": _INTERPRETER,
            "MARK": self.marker,
        }
        lines = [f"export {name}={shlex.quote(str(value))}" for name, value in {**places, **self.variables}.items()]
        for escape in ESCAPES:
            script = shlex.quote(escape.script)
            lines.append(f"timeout {ESCAPE_TIMEOUT_S} bash -c {script} >/dev/null 2>&1 && echo ok {escape.name}")
        return "\n".join(lines) + "\necho all tried\n"

    def find_escapes(self, output: bytes) -> list[str]:
        """Return the names of the escapes that succeeded, by their output and by traces outside."""
        reported = {line.removeprefix("ok ") for line in output.decode(errors="replace").splitlines()}
        return [escape.name for escape in ESCAPES if self._succeeded(escape, reported)]

    def _succeeded(self, escape: Escape, reported: set[str]) -> bool:
        if escape.created_file:
            return (self.outside / escape.created_file).exists()
        if escape.changed:
            return self.facts()[escape.changed] != self._facts_before[escape.changed]
        if escape.survives:
            number = escape.script.partition("${MARK}")[2][:1]
            return bool(self.find_survivors(f"{self.marker}{number}"))
        return escape.name in reported

    def facts(self) -> dict[str, object]:
        """Return what can be changed of the victim and of shared memory."""
        pid, key = int(self.variables["VICTIM"]), int(self.variables["SHM_KEY"])
        libc = ctypes.CDLL(None)
        # The number of `ioprio_get` is the next one on every architecture.
        ioprio_get = ARCHITECTURES[platform.machine()].ioprio_set + 1
        return {
            "priority": os.getpriority(os.PRIO_PROCESS, pid),
            "affinity": os.sched_getaffinity(pid),
            "scheduler": os.sched_getscheduler(pid),
            "io-priority": libc.syscall(ioprio_get, 1, pid),
            "limit": re.findall("Max open files.*", Path(f"/proc/{pid}/limits").read_text()),
            "signal": (self.root / "signalled").exists(),
            "shared-memory": libc.shmget(key, 0, 0),
            "semaphores": libc.semget(key, 0, 0),
            "messages": libc.msgget(key, 0),
            "attributes-of-a-file": _file_flags(self.outside / "secret"),
        }

    def find_survivors(self, mark: str = "") -> list[int]:
        """Return the processes that sleep for the time of our marker."""
        prefix = (mark or self.marker).encode()
        lines = [(pid, line.split(b"\0")) for pid, line in read_all("cmdline")]
        return [pid for pid, words in lines if words[0] == b"sleep" and any(word.startswith(prefix) for word in words)]

    def kill_survivors(self) -> None:
        """Kill the processes that escaped on plain bash."""
        for pid in self.find_survivors():
            os.kill(pid, signal.SIGKILL)

    def _remove(self) -> None:
        # Removing the folder would also delete the files of a mount that an escape left in it.
        assert str(self.root) not in Path("/proc/self/mountinfo").read_text()
        shutil.rmtree(self.root, ignore_errors=True)

    def _create_files(self) -> None:
        self.root.chmod(0o755)
        for folder in (self.workspace, self.outside, self.home / ".ssh", self.home / ".aws"):
            folder.mkdir(parents=True)
        for name in ("secret", "to-delete", "to-rename", "appended"):
            (self.outside / name).write_text("bait\n")
        for name in (".ssh/id_rsa", ".aws/credentials", ".netrc", ".bash_history", ".bashrc"):
            (self.home / name).write_text("bait\n")
        (self.workspace / "link-out").symlink_to(self.outside / "secret")
        (self.workspace / "folder-out").symlink_to(self.outside)
        (self.workspace / ".syscall.py").write_text(_SYSCALL)

    def _create_repository(self) -> None:
        require("git")
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "init", "-q", self.workspace], env=env, check=True)
        hooks = self.workspace / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / "pre-commit").write_text("#!/bin/sh\n")

    def _open_sockets(self) -> dict[str, str]:
        tcp = self._stack.enter_context(socket.create_server(("0.0.0.0", 0), backlog=64))
        unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for one in (unix, abstract, datagrams):
            self._stack.callback(one.close)
        unix.bind(str(self.outside / "listener"))
        abstract.bind(f"\0windlass-{self.marker}")
        datagrams.bind(str(self.outside / "datagrams"))
        for one in (unix, abstract):
            one.listen(8)
        port6 = "0"
        if socket.has_ipv6:
            tcp6 = self._stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
            port6 = str(tcp6.getsockname()[1])
        return {
            "PORT": str(tcp.getsockname()[1]),
            "PORT6": port6,
            "ABSTRACT": f"windlass-{self.marker}",
            "OWN_ADDRESS": _own_address(),
        }

    def _create_shared_memory(self) -> dict[str, str]:
        name = f"windlass-{self.marker}"
        path = Path("/dev/shm", name)
        path.write_text("bait\n")
        self._stack.callback(path.unlink, missing_ok=True)
        key = int.from_bytes(os.urandom(3)) + 1
        libc = ctypes.CDLL(None)
        segment = libc.shmget(key, 4096, _IPC_CREAT | 0o666)
        self._stack.callback(libc.shmctl, segment, _IPC_RMID, None)
        semaphore = libc.semget(key, 1, _IPC_CREAT | 0o666)
        self._stack.callback(libc.semctl, semaphore, 0, _IPC_RMID)
        queue = libc.msgget(key, _IPC_CREAT | 0o666)
        self._stack.callback(libc.msgctl, queue, _IPC_RMID, None)
        numbers = {"SHM_ID": str(segment), "SEM_ID": str(semaphore), "MSG_ID": str(queue)}
        return {"SHM": name, "SHM_KEY": str(key), **numbers}

    def _open_descriptor(self) -> dict[str, str]:
        opened = os.open(self.outside / "secret", os.O_RDONLY)
        # Above all descriptors that bash or a test uses.
        number = fcntl.fcntl(opened, fcntl.F_DUPFD, 300)
        os.close(opened)
        self._stack.callback(os.close, number)
        return {"FD": str(number)}

    def _change_owner(self) -> None:
        if self.owner is None:
            return
        for path in (self.root, *self.root.rglob("*")):
            os.chown(path, self.owner, self.owner, follow_symlinks=False)

    def _start_victim(self) -> dict[str, str]:
        victim = subprocess.Popen(
            [_INTERPRETER, "-c", _VICTIM, "victim-of-probes", self.outside / "secret", self.root / "signalled"],
            cwd=self.outside,
            env={"VICTIM_TOKEN": "bait"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            user=self.owner,
            group=self.owner,
        )
        assert victim.stdout is not None
        self._stack.callback(victim.stdout.close)
        self._stack.callback(victim.wait)
        self._stack.callback(victim.kill)
        assert victim.stdout.readline() == b"ready\n"
        stat = Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()
        return {"VICTIM": str(victim.pid), "VICTIM_BORN": stat[19]}


def _file_flags(path: Path) -> int:
    """Return the flags of a file (`lsattr`); 0 where the file system has none."""
    with path.open() as file:
        try:
            return int.from_bytes(fcntl.ioctl(file, _GET_FLAGS, bytes(8)), "little")
        except OSError:
            return 0


def _own_address() -> str:
    """Return an address of this machine other than loopback, without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])
