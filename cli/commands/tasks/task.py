"""`agent task`: tasks that a worker runs later or elsewhere."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.service.task import MAX_PRIORITY, MIN_PRIORITY, ScheduleMode, Task, TaskQuery, TaskRequest, TaskState
from agent.service.task_data import schedule_data, task_data
from agent.telemetry.log_file import log_path, read_log
from agent.vocabulary.errors import InputError, UsageError
from agent.vocabulary.task_config import TaskConfig
from cli.commands.tasks.creation_checks import check_here
from cli.commands.tasks.queue_access import JsonOption, TaskArgument, with_service
from cli.commands.tasks.start_time import local_zone, parse_start
from cli.pages.pages import print_json, print_notice, print_page, print_table, stdout_colors, terminal_width
from cli.pages.task_pages import format_utc, task_page, tasks_table
from tooling.contract.json_codec import encode

if TYPE_CHECKING:
    from agent.service.task_service import TaskService

app = typer.Typer(no_args_is_help=True)
NO_TASKS = "(no tasks)"
MORE_TASKS = "there are older tasks; --limit shows more"
ONE_TIME = "--at, --cron and --nightly exclude each other"
_DEFAULT_LIMIT = 50


PromptArgument = Annotated[str, typer.Argument(metavar="TASK", help="What to do; - reads it from stdin.")]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Start then: 22:30, tomorrow 9:00, 2026-01-31T22:30, or +1h30m."),
]
CronOption = Annotated[
    str | None, typer.Option("--cron", metavar="EXPR", help="Start again and again, such as '30 2 * * 1-5'.")
]
ZoneOption = Annotated[
    str | None, typer.Option("--zone", metavar="ZONE", help="Time zone of --cron; this machine's if left out.")
]
NameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the schedule of --cron.")]
NightlyOption = Annotated[bool, typer.Option("--nightly", help="Start at night, in the hours that are set for it.")]
PriorityOption = Annotated[
    int,
    typer.Option(
        "--priority",
        metavar="N",
        min=MIN_PRIORITY,
        max=MAX_PRIORITY,
        help="Tasks of a higher priority start first; from -100 to 100.",
    ),
]
SessionOption = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Continue this session; a new one if left out.")
]
FolderOption = Annotated[
    Path | None, typer.Option("-C", "--cd", metavar="DIR", help="Work in this folder, not in one of the session.")
]
RepoOption = Annotated[str | None, typer.Option("--repo", metavar="URL", help="Clone this repository and work in it.")]
BranchOption = Annotated[str | None, typer.Option("--branch", metavar="NAME", help="Branch of --repo.")]
CallbackOption = Annotated[
    str | None, typer.Option("--callback-url", metavar="URL", help="POST the events of the run to this URL.")
]
BackendOption = Annotated[
    Literal["sandbox", "host", "docker"] | None,
    typer.Option("--backend", metavar="BACKEND", help="Where commands run: sandbox, host or docker."),
]
ModelOption = Annotated[str | None, typer.Option("--model", metavar="MODEL", help="Model, as provider/name.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override any setting of the run (repeatable).")
]
InputOption = Annotated[
    list[str] | None,
    typer.Option("-i", "--input", metavar="[NAME=]FILE", help="Copy a file into input/ in the workspace (repeatable)."),
]
SkillOption = Annotated[
    list[str] | None, typer.Option("--skill", metavar="NAME|PATH", help="Give the model this skill (repeatable).")
]
ContainerOption = Annotated[
    Literal["ephemeral", "persistent"] | None,
    typer.Option("--container", help="Run it in a container of its own, or in that of the session."),
]
RehearseOption = Annotated[
    str | None,
    typer.Option(
        "--rehearse", metavar="[=plan]", help="Try it now on a copy, or only plan it, and ask for what it needs."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Grant everything that a rehearsal finds.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number to list.")]
StatusOption = Annotated[
    list[TaskState] | None, typer.Option("--status", metavar="STATE", help="Only tasks in this state (repeatable).")
]


@app.command("create")
def create(
    prompt: PromptArgument,
    *,
    at: AtOption = None,
    cron: CronOption = None,
    zone: ZoneOption = None,
    name: NameOption = None,
    nightly: NightlyOption = False,
    priority: PriorityOption = 0,
    session: SessionOption = None,
    cwd: FolderOption = None,
    repo: RepoOption = None,
    branch: BranchOption = None,
    callback_url: CallbackOption = None,
    backend: BackendOption = None,
    model: ModelOption = None,
    assignments: SetOption = None,
    inputs: InputOption = None,
    skills: SkillOption = None,
    container: ContainerOption = None,
    rehearse: RehearseOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put a task into the queue. A worker runs it: agent worker."""
    _check_times(at, cron, zone or name, nightly=nightly)
    _check_pairs((("--branch", branch, repo, "--repo"), ("--yes", yes, rehearse is not None, "--rehearse")))
    request = TaskRequest(
        prompt=sys.stdin.read() if prompt == "-" else prompt,
        config=TaskConfig(
            model=_model(model or ""),
            repo_url=repo or "",
            git_branch=branch,
            input_files=tuple(map(_input_file, inputs or ())),
            skill_files=tuple(map(_skill, skills or ())),
            container_mode=container,
        ),
        session_id=session or "",
        mode=ScheduleMode.NIGHTLY if nightly else ScheduleMode.SCHEDULED if at else ScheduleMode.IMMEDIATE,
        run_at=parse_start(at, datetime.now(UTC)) if at else None,
        priority=priority,
        cwd=str(_folder(cwd)) if cwd else "",
        backend=backend or "",
        callback_url=callback_url or "",
        settings=_settings(assignments or ()),
    )
    check_here(request, skills or ())
    if rehearse is not None:
        from cli.commands.tasks.rehearsal import rehearse_request

        request = rehearse_request(request, rehearse, is_granted=yes)
    if cron is not None:
        _create_schedule(request, cron, zone or local_zone(os_environ()), name or "", as_json=as_json)
        return
    task = with_service(lambda service: service.create(request))
    if as_json:
        print_json({**_as_json(task), "status": "scheduled"})
        return
    print_table([task.task_id])
    print_notice(_next_step(task))


def _check_times(at: str | None, cron: str | None, of_schedule: str | None, *, nightly: bool) -> None:
    if sum((at is not None, cron is not None, nightly)) > 1:
        raise UsageError(ONE_TIME)
    if cron is None and of_schedule:
        raise UsageError("--zone and --name belong to --cron")


def _check_pairs(pairs: Iterable[tuple[str, object, object, str]]) -> None:
    for flag, given, needed, other in pairs:
        if given and not needed:
            raise UsageError(f"{flag} needs {other}")


def _create_schedule(request: TaskRequest, cron: str, zone: str, name: str, *, as_json: bool) -> None:
    try:
        schedule = with_service(lambda service: service.create_schedule(request, cron, zone=zone, name=name))
    except InputError as error:
        # What is wrong is a flag, except for a task without words.
        raise UsageError(error.message, error.hint) if request.prompt.strip() else error from error
    if as_json:
        print_json(encode(schedule_data(schedule)))
        return
    print_table([schedule.name])
    print_notice(f"first run at {format_utc(schedule.next_run_at)}")


def _next_step(task: Task) -> str:
    when = f"starts at {format_utc(task.next_run_at)}" if task.next_run_at else "starts as soon as a worker is free"
    return f"{when}; look at it: agent task show {task.task_id}"


@app.command("list")
def list_tasks(
    *,
    status: StatusOption = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only tasks of this session.")] = None,
    schedule: Annotated[
        str | None, typer.Option("--schedule", metavar="NAME", help="Only tasks of this schedule.")
    ] = None,
    limit: LimitOption = _DEFAULT_LIMIT,
    as_json: JsonOption = False,
) -> None:
    """List tasks, newest first, ended ones included."""
    query = TaskQuery(
        states=frozenset(status or ()),
        session_id=session or "",
        schedule=schedule or "",
        # One more than is shown, to find out whether there are more.
        limit=limit + 1,
    )
    found = with_service(lambda service: service.list(query))
    tasks = found[:limit]
    if as_json:
        print_json([_as_json(task) for task in tasks])
    else:
        print_table(tasks_table(tasks, terminal_width(), stdout_colors()) if tasks else [NO_TASKS])
    if len(found) > limit:
        print_notice(MORE_TASKS)


@app.command("show")
@app.command("status", hidden=True)
def show(task: TaskArgument, *, as_json: JsonOption = False) -> None:
    """Show a task: its state, what it waits for, its answer."""

    async def find(service: "TaskService") -> tuple[Task, list[str]]:
        found = await service.get(task)
        waiting = await service.questions(task_id=found.task_id)
        return found, task_page(found, waiting)

    found, page = with_service(find)
    if as_json:
        print_json(_as_json(found))
        return
    print_page(page)
    if found.state is TaskState.FAILED:
        print_notice(f"`agent task logs {found.task_id}` says more, `agent task retry {found.task_id}` resumes it")


@app.command("logs")
def logs(task: TaskArgument, *, as_json: JsonOption = False) -> None:
    """Show what happened to a task and in its run, oldest first."""

    from cli.commands.logs import print_line

    found = with_service(lambda service: service.get(task))
    for line in read_log(log_path(data_dir(os_environ()))):
        if line.get("task_id") == found.task_id:
            print_line(line, as_json=as_json)


@app.command("cancel")
def cancel(task: TaskArgument) -> None:
    """Cancel a task and stop its run."""
    canceled = with_service(lambda service: service.cancel(task))
    print_notice(f"{canceled.task_id} is {canceled.state}")


@app.command("retry")
def retry(task: TaskArgument) -> None:
    """Put a failed or canceled task back into the queue. Finished steps of its run are not repeated."""
    queued = with_service(lambda service: service.retry(task))
    print_notice(f"{queued.task_id} is {queued.state}")


QuestionArgument = Annotated[
    str, typer.Argument(metavar="QUESTION", help="Id of a question, or of a task that has one.")
]


@app.command("answer")
def answer(
    question: QuestionArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The answer, or the number of an option.")],
) -> None:
    """Answer a question of a task."""
    answered = with_service(lambda service: service.answer(question, text, takes_number=True))
    if answered.options:
        print_notice(
            f"{answered.question_id} is answered with {answered.answer!r}; the run of {answered.task_id} continues"
        )
    else:
        print_notice(f"{answered.question_id} is answered; the run of {answered.task_id} continues")


@app.command("approve")
def approve(
    question: QuestionArgument,
    *,
    deny: Annotated[bool, typer.Option("--deny", help="Do not allow it.")] = False,
    edit: Annotated[str | None, typer.Option("--edit", metavar="COMMAND", help="Run this command instead.")] = None,
    remember: Annotated[
        Literal["run", "project", "always"] | None,
        typer.Option("--remember", metavar="SCOPE", help="Allow it from now on: run, project or always."),
    ] = None,
    remark: Annotated[str, typer.Option("--remark", metavar="TEXT", help="Tell the model why.")] = "",
) -> None:
    """Allow what the run of a task asks for, or deny it."""
    decided = with_service(
        lambda service: service.approve(
            question, "deny" if deny else "allow", command=edit, remember=remember, remark=remark
        )
    )
    print_notice(f"{decided.question_id} is {'denied' if deny else 'allowed'}; the run of {decided.task_id} continues")


def _as_json(task: Task) -> dict[str, object]:
    plain = encode(task_data(task))
    assert isinstance(plain, dict)
    return plain


def _folder(path: Path) -> Path:
    folder = path.expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"{path} is not an existing folder")
    return folder


def _input_file(given: str) -> dict[str, object]:
    """Return a file with its absolute path, because the worker has another working folder."""
    name, equals, path = given.partition("=")
    is_named = equals and path and not Path(given).exists()
    source = Path(path if is_named else given).expanduser().absolute()
    if not source.is_file():
        raise UsageError(f"the input {source} is not an existing file")
    return {"path": str(source), "name": name if is_named else source.name}


def _model(given: str) -> str:
    """Return the name of a model; the path of a script is made absolute, because the worker has another folder."""
    kind, colon, path = given.partition(":")
    return f"script:{Path(path).absolute()}" if kind == "script" and colon and path else given


def _skill(given: str) -> str:
    path = Path(given).expanduser()
    return str(path.absolute()) if path.exists() else given


def _settings(assignments: "list[str] | tuple[str, ...]") -> dict[str, str]:
    settings: dict[str, str] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {text}: expected key=value")
        settings[key.strip()] = value.strip()
    return settings
