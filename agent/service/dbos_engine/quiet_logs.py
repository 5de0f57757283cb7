"""Routes the logging of DBOS to the log file: warnings and errors, without stack traces of expected errors."""

import logging
import traceback
from datetime import UTC, datetime

from dbos import error as dbos_error

from agent.service.dbos_engine.task_workflow import TaskFailed
from agent.telemetry.log_file import LogFile

_LOGGER = "dbos"
# A canceled or failed task and a lost claim raise these by design; the worker has told what failed.
_EXPECTED = (
    TaskFailed,
    dbos_error.DBOSWorkflowCancelledError,
    dbos_error.DBOSAwaitedWorkflowCancelledError,
    dbos_error.DBOSWorkflowConflictIDError,
)
# So do a task that is returned to the queue, and one that is canceled or taken over.
_EXPECTED_TEXTS = ("Asyncio task cancelled for workflow or step", "is no longer owned by this execution")
_TRACEBACK_CHARS = 4000


def quiet_logs(log: LogFile | None = None) -> None:
    """Send the log of DBOS to a file or discard it; on the terminal it would mix with our output."""
    logger = logging.getLogger(_LOGGER)
    logger.propagate = False
    logger.handlers[:] = [QueueLogHandler(log) if log else logging.NullHandler()]


class QueueLogHandler(logging.Handler):
    """Writes warnings and errors of DBOS as lines of the log file."""

    def __init__(self, log: LogFile) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        message = record.getMessage()
        if isinstance(error, _EXPECTED) or any(text in message for text in _EXPECTED_TEXTS):
            return
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": "error" if record.levelno >= logging.ERROR else "warning",
            "event": "queue",
            "message": message,
        }
        if task_id := getattr(record, "operationUUID", ""):
            line["task_id"] = task_id
        if error is not None:
            line["traceback"] = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARS:]
        self._log.write(line)
