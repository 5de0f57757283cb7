"""`agent worker`: run queued tasks."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from agent.service.task import PendingQuestion, ScheduleMode, Worker
from agent.vocabulary.errors import UsageError
from cli.commands.tasks.queue_access import open_queue
from cli.pages.pages import one_line, print_notice

if TYPE_CHECKING:
    from agent.service.containers.container_executors import ContainerExecutors
    from agent.service.open_service import OpenService, WorkerLog
    from agent.service.run_pull import RunPullService

DRAINING = "no new tasks are started; a second signal returns the running ones to the queue"
HANDING_BACK = "returning the running tasks to the queue"
NOTHING_ENABLED = "no task can be taken: task_pull_enabled, or the switches of all modes, are off"
WAITS_FOR_ANSWER = (
    "{task_id} waits for an answer: see agent questions list; a second agent worker --drain returns it to the queue"
)
NO_WORKERS = "no worker runs on this machine"
SHARED_FILE = "the queue is a file in {data}: other machines need a database_url"
SHARED_BUCKET = "sessions that change machines are put into the bucket {bucket}"
SHARED_FOLDER = (
    "set s3_bucket, or share the data folder {data} between the machines: without one of them a task that changes "
    "machines starts again from its beginning"
)
ASKS = "`agent task show {task_id}` shows what it asks"
# What the names of events in the log mean, where their last word does not say it.
_EVENT_WORDS = {
    "task.handed_back": "returned to the queue",
    "task.waiting": "waits for an answer",
    "worker.taken_over": "taken over",
}
_MESSAGE_CHARS = 200
_POLL_S = 0.2

OnceOption = Annotated[bool, typer.Option("--once", help="Run what can start now, then exit.")]
ConcurrencyOption = Annotated[
    int | None, typer.Option("--concurrency", min=1, metavar="N", help="Tasks at the same time. [default: 5]")
]
ModesOption = Annotated[
    str | None,
    typer.Option("--modes", metavar="LIST", help="Only these kinds of tasks: immediate, scheduled, nightly."),
]
DrainOption = Annotated[
    bool, typer.Option("--drain", help="Let the workers of this machine finish their tasks and exit; wait for them.")
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing about the tasks.")]


def command(
    *,
    once: OnceOption = False,
    concurrency: ConcurrencyOption = None,
    modes: ModesOption = None,
    drain: DrainOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run queued tasks until Ctrl-C or SIGTERM, which let the running ones finish; a second one gives them back."""
    if drain and (once or concurrency or modes):
        raise UsageError("--drain starts no worker, and cannot be used with other flags")
    if drain:
        raise typer.Exit(asyncio.run(_drain()))
    raise typer.Exit(asyncio.run(_work(once=once, concurrency=concurrency, modes=modes, quiet=quiet)))


async def _work(*, once: bool, concurrency: int | None, modes: str | None, quiet: bool) -> int:
    from agent.service.open_service import WorkerLog

    opened = open_queue()
    log = WorkerLog(opened.data, lambda event, facts: None if quiet else _print_event(event, facts))
    executors = _executors(opened, log)
    try:
        pull = _pull_service(opened, executors, log, concurrency=concurrency, modes=modes)
        if not quiet:
            print_notice(_what_is_shared(opened))
        loop = asyncio.get_running_loop()
        stopping = _Stopping(pull)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopping.stop)
        ended = await (pull.poll() if once else pull.run())
        if not quiet:
            print_notice(f"{ended} {'task' if ended == 1 else 'tasks'} ended here")
    finally:
        await executors.close()
        await opened.service.close()
    return 0


def _executors(opened: "OpenService", log: "WorkerLog") -> "ContainerExecutors":
    """Return the container pool for tasks that request one, and child processes for all others."""
    from agent.config.service_settings import load_service_settings
    from agent.service.containers.container_executors import ContainerExecutors
    from agent.service.containers.open_pool import open_pool
    from agent.service.open_service import local_executor

    service = load_service_settings(opened.loaded, opened.environ)
    return ContainerExecutors(
        local_executor(opened, lambda question: _tell_waiting(log, question)),
        lambda: open_pool(opened.loaded, service, opened.environ, print_notice),
        callback_token=opened.settings.callback_token,
        limit_s=opened.settings.task_timeout_seconds,
    )


def _pull_service(
    opened: "OpenService",
    executors: "ContainerExecutors",
    log: "WorkerLog",
    *,
    concurrency: int | None,
    modes: str | None,
) -> "RunPullService":
    from agent.service.open_service import enabled_modes, open_dispatcher, open_worker
    from agent.service.run_pull import RunPullService
    from agent.service.session_transfer import open_transfer

    wanted = _parse_modes(modes) if modes is not None else tuple(ScheduleMode)
    chosen = tuple(mode for mode in enabled_modes(opened.settings) if mode in wanted)
    if not chosen:
        raise UsageError(NOTHING_ENABLED, "see agent config show, and --modes")
    transfer = open_transfer(
        opened, lambda message: log.write("session.kept", {"level": "warning", "message": message})
    )
    return RunPullService(
        lambda: open_worker(opened, log),
        open_dispatcher(opened, executors=executors, handover=transfer),
        concurrency=concurrency or opened.settings.max_concurrent_tasks,
        modes=chosen,
    )


def _tell_waiting(log: "WorkerLog", question: PendingQuestion) -> None:
    ids = {"task_id": question.task_id, "session_id": question.session_id}
    log.write("task.waiting", {**ids, "message": ASKS.format(task_id=question.task_id)})


def _parse_modes(text: str) -> tuple[ScheduleMode, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or any(word not in tuple(ScheduleMode) for word in words):
        raise UsageError(f"--modes {text}: expected a list of immediate, scheduled and nightly")
    return tuple(map(ScheduleMode, words))


class _Stopping:
    """Signal handling: the first signal lets the running tasks finish, the second returns them to the queue."""

    def __init__(self, pull: "RunPullService") -> None:
        self._pull = pull
        self._signals = 0
        self._tasks: list[asyncio.Task[None]] = []

    def stop(self) -> None:
        self._signals += 1
        print_notice(HANDING_BACK if self._signals > 1 else DRAINING)
        self._tasks.append(asyncio.ensure_future(self._pull.stop(hands_back=self._signals > 1)))


def _print_event(event: str, facts: Mapping[str, object]) -> None:
    message = one_line(str(facts.get("message", "")), _MESSAGE_CHARS)
    words = _EVENT_WORDS.get(event, event.removeprefix("task."))
    what = " ".join(part for part in (str(facts.get("task_id", "")), words) if part)
    print_notice(f"{datetime.now():%H:%M:%S} {what}{': ' if message else ''}{message}")


def _what_is_shared(opened: "OpenService") -> str:
    """Describe what workers on other machines need."""
    if not opened.settings.database_url:
        return SHARED_FILE.format(data=opened.data)
    if opened.settings.s3_bucket:
        return SHARED_BUCKET.format(bucket=opened.settings.s3_bucket)
    return SHARED_FOLDER.format(data=opened.data)


async def _drain() -> int:
    """Ask the workers of this machine to finish, and wait until they have exited."""
    opened = open_queue()
    try:
        running = await _local_workers(opened)
        if not running:
            print_notice(NO_WORKERS)
        for worker in running:
            os.kill(worker.pid, signal.SIGTERM)
            print_notice(f"worker {worker.worker_id} (process {worker.pid}) finishes its tasks")
        # Only the workers that were asked: others may be started meanwhile.
        ids = {worker.worker_id for worker in running}
        named: set[str] = set()
        while ids & {worker.worker_id for worker in await _local_workers(opened)}:
            for task_id in await _waiting_tasks(opened, ids) - named:
                print_notice(WAITS_FOR_ANSWER.format(task_id=task_id))
                named.add(task_id)
            await asyncio.sleep(_POLL_S)
    finally:
        await opened.service.close()
    return 0


async def _waiting_tasks(opened: "OpenService", worker_ids: set[str]) -> set[str]:
    """Return the tasks of these workers that wait for an answer, which may take long."""
    asking = {question.task_id for question in await opened.service.questions()}
    tasks = [await opened.service.get(task_id) for task_id in asking]
    return {task.task_id for task in tasks if task.worker in worker_ids}


async def _local_workers(opened: "OpenService") -> list[Worker]:
    host = socket.gethostname()
    return [worker for worker in (await opened.service.stats()).workers if worker.is_alive and worker.host == host]
