"""The end of a run in a git worktree: its changes are committed there, and merged, kept or discarded."""

from collections.abc import Mapping

import typer

from agent.config.user_dirs import data_path
from agent.vocabulary.errors import AgentError
from agent.workspace.worktrees import Worktree, Worktrees
from cli.run.progress import print_stderr
from cli.screen.format import shorten_path
from cli.screen.sanitize import sanitize

UNCHANGED = "nothing was changed, so the worktree was removed"
_QUESTION = "merge into your branch, keep the worktree, or discard it?"
_CHOICES = ("merge", "keep", "discard")


def finish_worktree(
    worktree: Worktree,
    environ: Mapping[str, str],
    request: str,
    *,
    may_remove: bool,
    is_quiet: bool,
    can_ask: bool,
) -> None:
    """Commit the changes, show them, and let the user choose; without a terminal the worktree is kept.

    A worktree without changes is removed if allowed: a run that has not finished may be resumed there.
    """
    worktrees = Worktrees(data_path(environ), environ)
    try:
        for step in worktrees.steps_of(worktree):
            worktrees.commit(step, request)
            _say(f"not merged: {kept(step)}", is_quiet=is_quiet)
        if not worktrees.commit(worktree, request):
            if may_remove:
                worktrees.discard(worktree)
                _say(UNCHANGED, is_quiet=is_quiet)
            return
        _say(sanitize(worktrees.diff(worktree, is_short=True)).rstrip(), is_quiet=is_quiet)
        match _ask() if can_ask else "keep":
            case "merge":
                worktrees.merge(worktree)
                print_stderr(merged(worktree))
            case "discard":
                print_stderr(discarded(worktree, worktrees.discard(worktree)))
            case _:
                _say(kept(worktree), is_quiet=is_quiet)
    except AgentError as error:
        print_stderr(f"warning: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
        print_stderr(kept(worktree))


def _ask() -> str:
    try:
        answer: str = typer.prompt(f"{_QUESTION} [{'/'.join(_CHOICES)}]", default="keep", show_default=False, err=True)
    except typer.Abort:
        return "keep"
    return next((choice for choice in _CHOICES if answer.strip() and choice.startswith(answer.strip().lower())), "keep")


def _say(text: str, *, is_quiet: bool) -> None:
    if not is_quiet:
        print_stderr(text)


def kept(worktree: Worktree) -> str:
    """Return how to inspect, merge or discard a worktree."""
    name = worktree.name
    return f"on branch {worktree.branch}; agent worktrees diff {name} | merge {name} | discard {name}"


def merged(worktree: Worktree) -> str:
    """Return the confirmation of a merge."""
    return f"merged {worktree.branch} into {shorten_path(worktree.root)}"


def discarded(worktree: Worktree, commit: str) -> str:
    """Return the confirmation of a removal, and how to undo it."""
    return f"discarded; to take it back: git branch {worktree.branch} {commit[:12]}"
