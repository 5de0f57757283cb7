"""`agent sessions fsck`: what is wrong with sessions, and what of it was mended."""

from collections.abc import Iterable

import typer

from agent.sessions.store import SessionFolder
from agent.sessions.upkeep.fsck import Problem, check
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import SessionBusy
from cli.pages.pages import show, show_json
from cli.run.progress import stderr_line
from tooling.contract.json_codec import encode


def check_all(folders: Iterable[SessionFolder], *, mends: bool, as_json: bool, is_named: bool) -> int:
    """Check sessions and tell what was found; one that is busy is passed over unless it was asked for by name."""
    found: dict[str, list[Problem]] = {}
    for folder in folders:
        try:
            found[folder.id] = check(folder, mends=mends)
        except SessionBusy as busy:
            if is_named:
                raise
            stderr_line(f"left out: {busy.message}")
        except OSError as error:
            problem = Problem(path=str(error.filename or "."), what=f"{error.strerror}", is_mended=False)
            found[folder.id] = [problem]
    if as_json:
        show_json([{"session": name, "problems": encode(tuple(problems))} for name, problems in found.items()])
    else:
        show(_line(name, problem) for name, problems in found.items() for problem in problems)
    problems = [problem for some in found.values() for problem in some]
    mended = sum(problem.is_mended for problem in problems)
    typer.echo(f"{len(found)} checked, {len(problems)} problems, {mended} mended", err=True)
    return exit_codes.FAILED if problems else exit_codes.OK


def _line(session: str, problem: Problem) -> str:
    return f"{session}  {problem.path}  {problem.what}{'  (mended)' if problem.is_mended else ''}"
