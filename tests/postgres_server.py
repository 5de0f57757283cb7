"""A private PostgreSQL server for tests: own folder, own port on loopback, removed at the end."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.programs import IS_STRICT, postgres_folder

# PostgreSQL refuses to run as root.
_USER, _GROUP = "nobody", "nogroup"
_START_S = 120


class PostgresServer:
    """One server; `url` is that of an empty database in it."""

    def __init__(self, root: Path, programs: Path) -> None:
        self._data = root / "data"
        self._log = root / "log"
        self._programs = programs
        self._number = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run("initdb", "--no-sync", "--auth=trust", "--username=windlass", "--encoding=UTF8", "-D", self._data)
        options = f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories='{root}'\nfsync=off\n"
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(options)

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        self._run("pg_ctl", "start", "-w", "-t", _START_S, "-D", self._data, "-l", self._log)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is like a crash."""
        self._run("pg_ctl", "stop", "-w", "-t", _START_S, "-D", self._data, "-m", mode)

    def new_database(self) -> str:
        """Create a database and return its URL."""
        self._number += 1
        name = f"test{self._number}"
        self._run("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "windlass", name)
        return f"postgresql://windlass@127.0.0.1:{self.port}/{name}"

    def _run(self, program: str, *arguments: object) -> None:
        as_user = {"user": _USER, "group": _GROUP, "extra_groups": []} if os.getuid() == 0 else {}
        done = subprocess.run(
            [str(self._programs / program), *map(str, arguments)],
            **as_user,  # type: ignore[call-overload]
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, f"{program}: {done.stderr.decode()}"


@contextmanager
def run_postgres() -> Iterator[PostgresServer]:
    """Start a server for some tests; skipped without PostgreSQL, except in CI."""
    programs = postgres_folder()
    if programs is None:
        reason = "needs postgresql: apt-get install postgresql"
        pytest.fail(reason, pytrace=False) if IS_STRICT else pytest.skip(reason)
    root = Path(tempfile.mkdtemp(prefix="wl-postgres-"))
    if os.getuid() == 0:
        shutil.chown(root, _USER, _GROUP)
    try:
        server = PostgresServer(root, programs)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(root, ignore_errors=True)
