"""The database of the queue: an SQLite file in the data folder, or PostgreSQL by its URL."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer
from sqlalchemy.exc import DBAPIError

from agent.service.dbos_engine.quiet_logs import quiet_logs
from agent.vocabulary.errors import AgentError, ConfigError
from tooling.contract.fast_dataclass import dataclass

APPLICATION = "windlass"
# Only workers of the same version resume running tasks: raise it when the order of steps in
# `task_workflow.py` changes, and only then.
APPLICATION_VERSION = "1"
SCHEMA = "dbos"
SERIALIZER = DBOSPortableJSONSerializer()
_SQLITE_FILE = "tasks.sqlite"
_BUSY_MS = 30_000
# Key of an engine option.
_READS = "windlass_reads"
_POOL_SIZE = 8
# A database without an encoding (SQL_ASCII) returns bytes.
_ENCODING = {"client_encoding": "utf8"}
_URL_HINT = "database_url is postgresql://user:password@host:port/name; unset it to use a file in the data folder"
_SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")


class DatabaseUnreachable(AgentError):
    """The database of the queue is unavailable; a retry may succeed."""

    exit_code = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDatabase:
    """Location of the queue: `folder` is in the data folder; an empty `url` means an SQLite file in it."""

    folder: Path
    url: str
    engine: sa.Engine

    @property
    def is_sqlite(self) -> bool:
        """Whether the queue is a file, shared only by processes of one machine."""
        return not self.url

    @property
    def address(self) -> str:
        """The URL in the form that DBOS expects."""
        if self.is_sqlite:
            return f"sqlite:///{self.folder / _SQLITE_FILE}"
        return sa.make_url(self.url).update_query_dict(_ENCODING).render_as_string(hide_password=False)

    @property
    def reading(self) -> sa.Engine:
        """The same connections for read-only transactions, which do not wait for writers."""
        return self.engine.execution_options(**{_READS: True})

    def client(self) -> DBOSClient:
        """Return a client that submits and changes tasks; it raises errors instead of waiting for the database."""
        return self._client(self.engine)

    def reader(self) -> DBOSClient:
        """Return a client that only reads tasks."""
        return self._client(self.reading)

    def _client(self, engine: sa.Engine) -> DBOSClient:
        with database_errors(self):
            return DBOSClient(
                system_database_engine=engine,
                dbos_system_schema=None if self.is_sqlite else SCHEMA,
                serializer=SERIALIZER,
                application_name=APPLICATION,
                retry_connection_errors=False,
                lazy=True,
            )


def open_database(data: Path, url: str = "") -> QueueDatabase:
    """Open the queue of a data folder; create its tables on first use. Raises AgentError."""
    quiet_logs()
    if url and not url.startswith(_SCHEMES):
        raise ConfigError("database_url is not the URL of a PostgreSQL database", _URL_HINT)
    folder = data / "queue"
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    engine = _postgres_engine(url) if url else _sqlite_engine(folder / _SQLITE_FILE)
    database = QueueDatabase(folder=folder, url=url, engine=engine)
    with database_errors(database), one_at_a_time(database):
        if not _has_tables(database):
            DBOS.migrate(database.address, schema=SCHEMA)
    return database


@contextlib.contextmanager
def one_at_a_time(database: QueueDatabase) -> Iterator[None]:
    """Keep processes of this machine from creating the tables at the same time."""
    fd = os.open(database.folder / "schema.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def database_errors(database: QueueDatabase) -> Iterator[None]:
    """Turn database errors into an error for users, without the password of the URL."""
    try:
        yield
    except DBAPIError as error:
        where = "the queue" if database.is_sqlite else f"the database {_without_password(database.url)}"
        reason = str(error.orig).strip().splitlines()[0] if error.orig else "no reason given"
        raise DatabaseUnreachable(f"{where} cannot be used: {reason}", _hint(database)) from error


def _hint(database: QueueDatabase) -> str:
    return (
        f"is the disk full, or {database.folder} not writable?"
        if database.is_sqlite
        else "check database_url, try later"
    )


def _without_password(url: str) -> str:
    return sa.make_url(url).render_as_string(hide_password=True)


def _has_tables(database: QueueDatabase) -> bool:
    try:
        with database.engine.begin() as connection:
            prefix = "" if database.is_sqlite else f"{SCHEMA}."
            return bool(connection.execute(sa.text(f"SELECT version FROM {prefix}dbos_migrations")).scalar())
    except sa.exc.OperationalError:
        if database.is_sqlite:
            return False
        # The server is unreachable or lacks this database: creating the tables reports which.
        return False
    except sa.exc.ProgrammingError:
        return False


def _sqlite_engine(path: Path) -> sa.Engine:
    """Return an engine for an SQLite file that several processes write to.

    Without BEGIN IMMEDIATE two workers read the same state and both act on it. Readers must not wait for that
    lock: SQLite retries only after up to 0.1 s.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    engine = sa.create_engine(f"sqlite:///{path}", pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE)

    @sa.event.listens_for(engine, "connect")
    def configure(connection: sa.engine.interfaces.DBAPIConnection, record: object) -> None:
        # SQLAlchemy's "begin" below starts transactions, not the driver.
        connection.isolation_level = None
        for pragma in (f"busy_timeout={_BUSY_MS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(_READS) else "BEGIN IMMEDIATE")

    return engine


def _postgres_engine(url: str) -> sa.Engine:
    try:
        address = sa.make_url(url).set(drivername="postgresql+psycopg")
    except (sa.exc.ArgumentError, ValueError) as error:
        raise ConfigError("database_url cannot be read", _URL_HINT) from error
    return sa.create_engine(
        address,
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_SIZE,
        pool_pre_ping=True,
        connect_args={"application_name": APPLICATION, "connect_timeout": 10, **_ENCODING},
    )
