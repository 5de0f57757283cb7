"""`agent task create --rehearse`: run a task on a copy, show the permissions it needs, and ask for them."""

import asyncio
import sys

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.service.rehearsal import Rehearsal, RehearsalSheet, with_grants
from agent.service.task import TaskRequest
from agent.vocabulary.errors import AgentError, UsageError
from cli.pages.pages import indent_lines, print_notice
from cli.pages.task_pages import grant_facts
from cli.screen.sanitize import sanitize

PLAN = "plan"
_KINDS = ("", PLAN)
NOT_GRANTED = "nothing was granted, and the task was not created"
NOTHING_NEEDED = "The task needs no permission and asks nothing."
NOTHING_ELSE = "Everything else will be denied, without asking."
NOT_ANSWERED = "the questions stay without an answer: put what you know into the task"
NO_TERMINAL = "what the task needs cannot be asked for without a terminal"
FAILED = "the rehearsal failed: {error}"


class NotGranted(AgentError):
    """The user did not grant the permissions found by a rehearsal."""

    exit_code = 57


def rehearse_request(request: TaskRequest, kind: str, *, is_granted: bool) -> TaskRequest:
    """Rehearse a request, and return it with the granted permissions; everything else will be denied."""
    from agent.service.open_service import PROGRAM

    if kind not in _KINDS:
        raise UsageError(f"--rehearse={kind}: expected --rehearse or --rehearse=plan")
    environ = os_environ()
    rehearsal = Rehearsal(program=PROGRAM, environ=environ, data=data_dir(environ))
    print_notice("planning, to see what the task needs …" if kind == PLAN else "trying the task on a copy …")
    sheet = asyncio.run(rehearsal.plan(request) if kind == PLAN else rehearsal.run(request))
    if sheet.error:
        raise AgentError(FAILED.format(error=sheet.error), "fix this first, or create the task without --rehearse")
    print_notice("\n".join(sheet_page(sheet)))
    if sheet.needs_nothing or is_granted:
        if sheet.questions:
            print_notice(NOT_ANSWERED)
        return with_grants(request, sheet, {})
    if not sys.stdin.isatty():
        raise NotGranted(NO_TERMINAL, "--yes grants all of it")
    return _ask(request, sheet)


def _ask(request: TaskRequest, sheet: RehearsalSheet) -> TaskRequest:
    answers = {question: typer.prompt(question, err=True) for question in sheet.questions}
    if not sheet.manifest.is_empty and not typer.confirm("Grant this?", default=False, err=True):
        raise NotGranted(NOT_GRANTED)
    return with_grants(request, sheet, answers)


def sheet_page(sheet: RehearsalSheet) -> list[str]:
    """Return the sheet: what the run may do without asking, what it asks, and what it costs."""
    facts = grant_facts(sheet.manifest)
    lines = [NOTHING_NEEDED] if sheet.needs_nothing else []
    lines += ["The task needs to:"] if facts else []
    for what, names in facts:
        lines += [f"  {what if number == 0 else '':12}{sanitize(name)}" for number, name in enumerate(names)]
    lines += ["It asks:", *indent_lines("\n".join(sheet.questions))] if sheet.questions else []
    if sheet.note:
        lines += [f"The rehearsal did not succeed: {sheet.note}"]
    if sheet.cost_usd:
        tries = f" in {sheet.rounds} tries" if sheet.rounds > 1 else ""
        lines += [f"The rehearsal cost ${sheet.cost_usd:.4f}{tries}."]
    return [*lines, NOTHING_ELSE]
