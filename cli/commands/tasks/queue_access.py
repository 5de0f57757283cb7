"""Opens the queue for its commands; reports the missing extra if it is not installed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.vocabulary.errors import ConfigError

if TYPE_CHECKING:
    from agent.service.open_service import OpenService
    from agent.service.task_service import TaskService

T = TypeVar("T")
INSTALL = "pip install 'windlass[queue]'"
MISSING = "queued tasks need DBOS, which is not installed"
_LIBRARIES = ("dbos", "sqlalchemy", "croniter", "psycopg")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="Id of a task, or the beginning of it.")]


def open_queue() -> "OpenService":
    """Open the queue. Raises ConfigError if the library for it is missing."""
    try:
        from agent.service.open_service import open_service
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise ConfigError(MISSING, INSTALL) from error
    environ = os_environ()
    return open_service(load_settings(environ=environ), environ)


def with_service(work: "Callable[[TaskService], Awaitable[T]]") -> T:
    """Run `work` with the queue, and close it."""

    async def run() -> T:
        opened = open_queue()
        try:
            return await work(opened.service)
        finally:
            await opened.service.close()

    return asyncio.run(run())
