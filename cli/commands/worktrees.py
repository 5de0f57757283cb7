"""`agent worktrees`: inspect, merge and discard the worktrees of runs with `--worktree`."""

import sys
from typing import Annotated

import typer

from agent.config.user_dirs import data_path, os_environ
from agent.vocabulary.errors import UsageError
from agent.workspace.worktrees import Worktrees
from cli.pages.columns import Column, render_table
from cli.pages.pages import (
    NO_CONFIRMATION,
    print_json,
    print_notice,
    print_table,
    print_text,
    stdout_colors,
    terminal_width,
)
from cli.run.worktree_choice import discarded, merged
from cli.screen.format import shorten_path
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
KeepOption = Annotated[bool, typer.Option("--keep", help="Keep the worktree, to continue in it.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of a worktree.")]


@app.command("list")
def list_worktrees(*, as_json: JsonOption = False) -> None:
    """List worktrees that are neither merged nor discarded."""
    found = _worktrees().all()
    if as_json:
        print_json(encode(found))
        return
    columns = [
        Column(header="NAME", cells=[one.name for one in found], tone="accent"),
        Column(header="REPOSITORY", cells=[shorten_path(one.root) for one in found], min_width=12),
        Column(header="FOLDER", cells=[shorten_path(one.path) for one in found], min_width=12, drop_priority=1),
    ]
    print_table(render_table(columns, terminal_width(), stdout_colors()) if found else ["(no worktrees)"])


@app.command("diff")
def show_diff(name: NameArgument) -> None:
    """Show what was changed in a worktree."""
    worktrees = _worktrees()
    worktree = worktrees.find(name)
    worktrees.commit(worktree, name)
    diff = worktrees.diff(worktree)
    print_text(diff)
    if not diff:
        print_notice("no changes")


@app.command("merge")
def merge_worktree(name: NameArgument, *, keep: KeepOption = False) -> None:
    """Merge a worktree into your current branch. Conflicts change nothing; otherwise it is removed."""
    worktrees = _worktrees()
    worktree = worktrees.find(name)
    print_text(worktrees.merge(worktree, is_kept=keep))
    print_notice(merged(worktree))


@app.command("discard")
def discard_worktree(name: NameArgument, *, yes: YesOption = False) -> None:
    """Remove a worktree and its branch."""
    worktrees = _worktrees()
    worktree = worktrees.find(name)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(NO_CONFIRMATION, "--yes discards without asking")
        typer.confirm(f"discard {name} of {shorten_path(worktree.root)}?", abort=True, err=True)
    print_notice(discarded(worktree, worktrees.discard(worktree)))


def _worktrees() -> Worktrees:
    environ = os_environ()
    return Worktrees(data_path(environ), environ)
