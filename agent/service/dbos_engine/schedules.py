"""Schedules in DBOS: a worker fires them, and every firing creates a task."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]
from dbos import DBOSClient, WorkflowSchedule

from agent.service.dbos_engine.queue import DbosTasks
from agent.service.dbos_engine.records import FIRE_WORKFLOW, SCHEDULE_SEPARATOR, as_json
from agent.service.new_request import fired_request
from agent.service.task import Schedule, Task, TaskQuery, TaskRequest
from agent.vocabulary.errors import InputError
from tooling.contract.json_codec import decode

_HINT = "`agent schedules list` shows them"
_CRON_HINT = "five fields: minute hour day month weekday, for example '30 2 * * 1-5'"


def next_firing(cron: str, zone: str, after: datetime) -> datetime | None:
    """Return the first time after `after` that matches, in UTC; None if there is none, such as on 30 February.

    A time that the clock skips fires right after the gap; a repeated time fires once.
    """
    times = croniter(cron, after.astimezone(ZoneInfo(zone)), second_at_beginning=True)
    try:
        found: datetime = times.get_next(datetime)
    except CroniterBadDateError:
        return None
    return found.astimezone(UTC)


def task_id_of(name: str, at: datetime) -> str:
    """Return the id of the task of one firing; it is deterministic, so that a firing never creates two tasks."""
    return f"{name}{SCHEDULE_SEPARATOR}{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def check_cron(cron: str, zone: str) -> None:
    """Raise InputError for an invalid cron expression or time zone."""
    if not croniter.is_valid(cron, second_at_beginning=True):
        raise InputError(f"{cron!r} is not a cron expression", _CRON_HINT)
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:
        raise InputError(f"there is no time zone {zone!r}", "use a name such as Europe/Berlin") from error
    if next_firing(cron, zone, datetime.now(UTC)) is None:
        raise InputError(f"no day matches the cron expression {cron!r}", _CRON_HINT)


class DbosSchedules:
    """Creates, reads and changes schedules."""

    def __init__(
        self,
        tasks: DbosTasks,
        client: DBOSClient,
        reader: DBOSClient,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._tasks = tasks
        self._client = client
        self._reader = reader
        self._now = now

    async def add(self, schedule: Schedule) -> Schedule:
        return await self._tasks.call(self._add, schedule)

    async def list(self) -> Sequence[Schedule]:
        found = await self._tasks.call(self._all)
        return [await self._with_last(schedule) for schedule in found]

    async def pause(self, name: str, *, is_paused: bool) -> Schedule:
        await self._tasks.call(self._find, name)
        await self._tasks.call(self._client.pause_schedule if is_paused else self._client.resume_schedule, name)
        return await self._with_last(await self._tasks.call(self._find, name))

    async def run_now(self, name: str) -> Task:
        schedule = await self._tasks.call(self._find, name)
        return await self._tasks.submit(
            fired_request(schedule.request, name, self._now()), task_id_of(name, self._now())
        )

    async def remove(self, name: str) -> None:
        await self._tasks.call(self._find, name)
        await self._tasks.call(self._client.delete_schedule, name)

    def _add(self, schedule: Schedule) -> Schedule:
        check_cron(schedule.cron, schedule.zone)
        if any(known.name == schedule.name for known in self._all()):
            raise InputError(
                f"there is a schedule {schedule.name!r} already", "choose another name, or remove it first"
            )
        self._client.create_schedule(
            schedule_name=schedule.name,
            workflow_name=FIRE_WORKFLOW,
            schedule=schedule.cron,
            context={"name": schedule.name, "request": as_json(schedule.request)},
            cron_timezone=schedule.zone,
        )
        return self._find(schedule.name)

    def count(self) -> int:
        """Return the number of schedules; blocks this thread."""
        return len(self._reader.list_schedules())

    def _all(self) -> Sequence[Schedule]:
        return sorted(map(self._read, self._reader.list_schedules()), key=lambda schedule: schedule.name)

    def _find(self, name: str) -> Schedule:
        for schedule in self._all():
            if schedule.name == name:
                return schedule
        raise InputError(f"there is no schedule {name!r}", _HINT)

    def _read(self, row: WorkflowSchedule) -> Schedule:
        zone, is_paused = row["cron_timezone"] or "UTC", row["status"] != "ACTIVE"
        last = row["last_fired_at"]
        return Schedule(
            name=row["schedule_name"],
            cron=row["schedule"],
            zone=zone,
            request=decode(TaskRequest, row["context"]["request"], extra="ignore"),
            is_paused=is_paused,
            next_run_at=None if is_paused else next_firing(row["schedule"], zone, self._now()),
            last_run_at=datetime.fromisoformat(last).astimezone(UTC) if last else None,
        )

    async def _with_last(self, schedule: Schedule) -> Schedule:
        latest = await self._tasks.list(TaskQuery(schedule=schedule.name, limit=1))
        if not latest:
            return schedule
        last = latest[0]
        return replace(schedule, last_run_at=last.created_at, last_task_id=last.task_id, last_state=last.state)
