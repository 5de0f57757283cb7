"""`agent task create --rehearse`: try a task now, show what it needs on one sheet, and ask for it."""

import asyncio
import sys

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.planning.manifest_file import toml_manifest
from agent.service.rehearsal import Rehearsal, RehearsalSheet, with_grants
from agent.service.task import TaskRequest
from agent.vocabulary.errors import AgentError, UsageError
from cli.pages.pages import indent_lines, print_notice

PLAN = "plan"
_KINDS = ("", PLAN)
NOT_GRANTED = "nothing was granted, and the task was not created"
NOTHING_NEEDED = "the task needs no permission and asks nothing"
NO_TERMINAL = "what the task needs cannot be asked for without a terminal"
FAILED = "the rehearsal failed: {error}"


class NotGranted(AgentError):
    """The user did not grant what a rehearsal found."""

    exit_code = 57


def rehearse_request(request: TaskRequest, kind: str, *, is_granted: bool) -> TaskRequest:
    """Rehearse a request, and return it with what the user grants; everything else will be denied."""
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
    if sheet.needs_nothing:
        lines = [NOTHING_NEEDED]
    else:
        lines = ["The task needs:", *indent_lines(toml_manifest(sheet.manifest, is_commented=False))]
    lines += ["It asks:", *(f"  {question}" for question in sheet.questions)] if sheet.questions else []
    if sheet.note:
        lines += [f"The rehearsal did not succeed: {sheet.note}"]
    if sheet.cost_usd:
        lines += [f"The rehearsal cost ${sheet.cost_usd:.4f}."]
    return lines
