"""Opens the queue according to the settings: for commands and the API, and for a worker."""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agent.config.load import LoadedSettings
from agent.config.service_settings import PLACEHOLDER_TOKEN, ServiceSettings, load_service_settings
from agent.config.user_dirs import data_dir
from agent.service.dbos_engine.engine import DbosEngine
from agent.service.dbos_engine.quiet_logs import quiet_logs
from agent.service.dbos_engine.worker import DbosWorker, WorkerRules
from agent.service.dispatcher import Executors, Handover, TaskDispatcher
from agent.service.local_executor import LocalExecutor, LocalLimits
from agent.service.night_window import NightWindow
from agent.service.staging import AttachmentStager, ConfigResolver, SkillStager
from agent.service.task import PendingQuestion, ScheduleMode
from agent.service.task_service import TaskService
from agent.sessions.store import SessionStore
from agent.telemetry.log_file import LogFile, error_log_path, log_path
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode

# The program that runs tasks; -P keeps the current folder out of the import path.
PROGRAM = (sys.executable, "-P", "-m", "cli")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenService:
    """The open queue with its settings and stores."""

    service: TaskService
    engine: DbosEngine
    settings: ServiceSettings
    loaded: LoadedSettings
    environ: Mapping[str, str]
    data: Path


def open_service(
    loaded: LoadedSettings,
    environ: Mapping[str, str],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> OpenService:
    """Open the queue of this user. Raises AgentError if it cannot be opened."""
    settings = load_service_settings(loaded, environ).settings
    data = data_dir(environ)
    engine = DbosEngine(data, settings.database_url, lease_s=settings.task_claim_lease_seconds, now=now)
    log = WorkerLog(data, lambda event, facts: None)
    service = TaskService(engine, SessionStore(data), night_window(settings), now, log.write)
    return OpenService(service=service, engine=engine, settings=settings, loaded=loaded, environ=environ, data=data)


def night_window(settings: ServiceSettings) -> NightWindow:
    """Return the window of nightly tasks."""
    return NightWindow(
        zone=settings.task_pull_nightly_timezone,
        start_hour=settings.task_pull_nightly_start_hour,
        start_minute=settings.task_pull_nightly_start_minute,
        minutes=settings.task_pull_nightly_window_minutes,
    )


def enabled_modes(settings: ServiceSettings) -> tuple[ScheduleMode, ...]:
    """Return the enabled modes of tasks."""
    enabled = {
        ScheduleMode.IMMEDIATE: settings.task_pull_immediate_enabled,
        ScheduleMode.SCHEDULED: settings.task_pull_scheduled_enabled,
        ScheduleMode.NIGHTLY: settings.task_pull_nightly_enabled,
    }
    return tuple(mode for mode in ScheduleMode if settings.task_pull_enabled and enabled[mode])


def worker_rules(settings: ServiceSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> WorkerRules:
    """Return the settings of a worker."""
    common = settings.task_pull_interval_seconds
    window = night_window(settings)
    return WorkerRules(
        attempts=settings.retry_attempts,
        delay_s=settings.retry_delay_seconds,
        lease_s=settings.task_claim_lease_seconds,
        retention_days=settings.task_retention_days,
        intervals={
            ScheduleMode.IMMEDIATE: settings.task_pull_immediate_interval_seconds or common,
            ScheduleMode.SCHEDULED: settings.task_pull_scheduled_interval_seconds or common,
            ScheduleMode.NIGHTLY: settings.task_pull_nightly_poll_interval_seconds,
        },
        is_open=lambda mode: mode is not ScheduleMode.NIGHTLY or window.is_open(now()),
    )


def open_dispatcher(
    opened: OpenService, *, executors: Executors | None = None, handover: Handover | None = None
) -> TaskDispatcher:
    """Return the dispatcher: by default it runs tasks in child processes of this program."""
    data = opened.data
    return TaskDispatcher(
        tasks=opened.engine.tasks,
        store=SessionStore(data),
        resolver=ConfigResolver(data / "queue" / "grants", {}),
        skills=SkillStager(),
        attachments=AttachmentStager(),
        executors=executors or local_executor(opened),
        handover=handover,
    )


def local_executor(
    opened: OpenService, tell: Callable[[PendingQuestion], None] = lambda question: None
) -> LocalExecutor:
    """Return the executor that runs tasks in child processes of this program; `tell` learns what they wait for."""
    settings = opened.settings
    return LocalExecutor(
        program=PROGRAM,
        environ=_child_environment(opened),
        data=opened.data,
        questions=opened.engine.questions,
        limits=LocalLimits(task_s=settings.task_timeout_seconds, question_s=settings.question_timeout_seconds),
        tell=tell,
    )


def _child_environment(opened: OpenService) -> dict[str, str]:
    """Return the environment of the program that runs a task; it has the callback token, which must not be in argv."""
    token = opened.settings.callback_token
    if token in ("", PLACEHOLDER_TOKEN) or opened.loaded.settings.callback_token:
        return dict(opened.environ)
    return {**opened.environ, "AGENT_CALLBACK_TOKEN": token}


def open_worker(opened: OpenService, log: "WorkerLog") -> DbosWorker:
    """Return a worker; reports of the engine go to the log file."""
    quiet_logs(LogFile(log_path(opened.data)))
    return opened.engine.worker(worker_rules(opened.settings), log.write)


class WorkerLog:
    """Writes task events to the log file and passes them to `listener`."""

    def __init__(self, data: Path, listener: Callable[[str, Mapping[str, object]], None]) -> None:
        self._log = LogFile(log_path(data))
        self._errors = LogFile(error_log_path(data))
        self._listener = listener

    def write(self, event: str, facts: Mapping[str, object]) -> None:
        """Write one line."""
        level = "error" if event == "task.failed" else facts.get("level", "info")
        line = {"ts": encode(datetime.now(UTC)), "level": level, "event": event, **facts}
        self._log.write(line)
        if level == "error":
            self._errors.write(line)
        self._listener(event, facts)
