"""Liveness of workers: a locked file for each on one machine, a row with a lease in PostgreSQL.

The kernel drops the lock of a killed worker at once. A lease expires by the clock of the database, so that the clocks
of the machines do not matter.
"""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from agent.service.dbos_engine.database import QueueDatabase
from agent.service.task import Worker
from tooling.contract.json_codec import JsonObject, decode, encode

_SUFFIX = ".json"
_TABLE = "windlass.workers"
# An arbitrary number, the same in all processes: serializes the creation of the table.
_CREATE_LOCK = 7283_1907
_CREATE = f"""
CREATE SCHEMA IF NOT EXISTS windlass;
CREATE TABLE IF NOT EXISTS {_TABLE} (worker_id text PRIMARY KEY, facts text NOT NULL, lease_until timestamptz NOT NULL)
"""


class Liveness(Protocol):
    """Registry of live workers."""

    def register(self, worker: Worker) -> None:
        """Register a worker as alive; call before it takes the first task."""

    def renew(self, worker_id: str) -> bool:
        """Extend the lease, also one that has expired; False if another worker has removed this one."""

    def remove(self, worker_id: str) -> None:
        """Remove a worker that has exited."""

    def remove_dead(self, worker_id: str) -> bool:
        """Remove a dead worker to take over its tasks; False if it is alive, or another worker has removed it."""

    def workers(self) -> Sequence[Worker]:
        """Return all known workers, alive or not."""


def open_liveness(database: QueueDatabase, lease_s: float) -> Liveness:
    """Return the implementation for the database."""
    return FileLiveness(database.folder / "workers") if database.is_sqlite else LeaseLiveness(database.engine, lease_s)


class FileLiveness:
    """One locked file per worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, int] = {}

    def register(self, worker: Worker) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._path(worker.worker_id)
        # Locked under another name first, so that it is never visible unlocked.
        hidden = path.with_suffix(".new")
        fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, json.dumps(encode(worker)).encode())
        hidden.rename(path)
        self._locks[worker.worker_id] = fd

    def renew(self, worker_id: str) -> bool:
        return worker_id in self._locks

    def remove(self, worker_id: str) -> None:
        self._path(worker_id).unlink(missing_ok=True)
        if (fd := self._locks.pop(worker_id, None)) is not None:
            os.close(fd)

    def remove_dead(self, worker_id: str) -> bool:
        path = self._path(worker_id)
        worker = self._read(path)
        if worker is None or worker.is_alive:
            return False
        path.unlink(missing_ok=True)
        return True

    def workers(self) -> Sequence[Worker]:
        paths = sorted(self._folder.glob(f"*{_SUFFIX}")) if self._folder.is_dir() else []
        return tuple(worker for path in paths if (worker := self._read(path)))

    def _read(self, path: Path) -> Worker | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(fd) as file:
            try:
                worker = _worker(json.load(file))
            except ValueError:
                return None
            return replace(worker, is_alive=worker.worker_id in self._locks or _is_locked(fd))

    def _path(self, worker_id: str) -> Path:
        return self._folder / f"{worker_id}{_SUFFIX}"


class LeaseLiveness:
    """One row per worker, with a lease by the clock of the database."""

    def __init__(self, engine: sa.Engine, lease_s: float) -> None:
        self._engine = engine
        self._lease = f"now() + interval '{float(lease_s)} seconds'"

    def register(self, worker: Worker) -> None:
        self._create_table()
        row = {"id": worker.worker_id, "facts": json.dumps(encode(worker))}
        self._execute(f"INSERT INTO {_TABLE} VALUES (:id, :facts, {self._lease})", row)

    def renew(self, worker_id: str) -> bool:
        # An expired lease too: the database may have been away, and whoever takes over removes the row first.
        renewed = f"UPDATE {_TABLE} SET lease_until = {self._lease} WHERE worker_id = :id"
        return self._execute(renewed, {"id": worker_id}) == 1

    def remove(self, worker_id: str) -> None:
        self._execute(f"DELETE FROM {_TABLE} WHERE worker_id = :id", {"id": worker_id})

    def remove_dead(self, worker_id: str) -> bool:
        removed = f"DELETE FROM {_TABLE} WHERE worker_id = :id AND lease_until <= now()"
        return self._execute(removed, {"id": worker_id}) == 1

    def workers(self) -> Sequence[Worker]:
        self._create_table()
        with self._engine.begin() as connection:
            rows = connection.execute(sa.text(f"SELECT facts, lease_until > now() FROM {_TABLE} ORDER BY worker_id"))
            return tuple(replace(_worker(json.loads(facts)), is_alive=is_alive) for facts, is_alive in rows)

    def _create_table(self) -> None:
        with self._engine.begin() as connection:
            if connection.execute(sa.text(f"SELECT to_regclass('{_TABLE}')")).scalar() is None:
                connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_CREATE_LOCK})"))
                for statement in _CREATE.split(";"):
                    connection.execute(sa.text(statement))

    def _execute(self, statement: str, values: Mapping[str, object]) -> int:
        with self._engine.begin() as connection:
            return connection.execute(sa.text(statement), values).rowcount


def new_worker(worker_id: str, host: str, concurrency: int, modes: Sequence[str]) -> Worker:
    """Return this process as a Worker."""
    facts: JsonObject = {
        "worker_id": worker_id,
        "host": host,
        "pid": os.getpid(),
        "started_at": encode(datetime.now(UTC)),
        "is_alive": True,
        "concurrency": concurrency,
        "modes": list(modes),
    }
    return _worker(facts)


def _worker(data: JsonObject) -> Worker:
    return decode(Worker, data, extra="ignore")


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
