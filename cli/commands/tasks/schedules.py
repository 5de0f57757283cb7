"""`agent schedules`: requests that become tasks at scheduled times."""

from typing import Annotated

import typer

from agent.service.task_data import schedule_data, task_data
from cli.commands.tasks.queue_access import JsonOption, with_service
from cli.pages.pages import print_json, print_notice, print_table, stdout_colors, terminal_width
from cli.pages.task_pages import format_utc, schedules_table
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of a schedule.")]


@app.command("list")
def list_schedules(*, as_json: JsonOption = False) -> None:
    """List schedules, and what became of their last tasks."""
    found = with_service(lambda service: service.schedules.list())
    if as_json:
        print_json([encode(schedule_data(schedule)) for schedule in found])
        return
    print_table(schedules_table(found, terminal_width(), stdout_colors()) if found else ["(no schedules)"])


@app.command("pause")
def pause(name: NameArgument) -> None:
    """Pause a schedule: it creates no tasks until it is resumed."""
    with_service(lambda service: service.schedules.pause(name, is_paused=True))
    print_notice(f"{name} is paused")


@app.command("resume")
def resume(name: NameArgument) -> None:
    """Resume a schedule. Missed tasks are not made up for."""
    schedule = with_service(lambda service: service.schedules.pause(name, is_paused=False))
    print_notice(f"{name} runs next at {format_utc(schedule.next_run_at)}")


@app.command("run-now")
def run_now(name: NameArgument, *, as_json: JsonOption = False) -> None:
    """Create a task from a schedule now, outside of its times."""
    task = with_service(lambda service: service.schedules.run_now(name))
    if as_json:
        print_json(encode(task_data(task)))
    else:
        print_table([task.task_id])


@app.command("rm")
def remove(name: NameArgument) -> None:
    """Remove a schedule. Its tasks stay."""
    with_service(lambda service: service.schedules.remove(name))
    print_notice(f"{name} is removed")
