"""`agent trust`: show and trust the hooks of a folder."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from agent.config.user_dirs import current_folder, data_dir, os_environ
from agent.hooks.trust import ProjectHooks, TrustStore, read_project_hooks
from agent.vocabulary.errors import InputError, UntrustedFolder
from cli.pages.pages import print_json, print_table
from tooling.contract.json_codec import encode
from tooling.safety.hidden_characters import escape_hidden

NOTHING_TO_TRUST = "{folder} has no hooks"
NOT_TRUSTED = "the hooks of {folder} are not trusted"
CHANGED = "the hooks of {folder} have changed since you trusted them"
NOT_A_FOLDER = "{folder} is not an existing folder"
RISK = "They run outside the sandbox, with your rights, in every run in this folder until one of them changes."
QUESTION = "Trust them?"

DirArgument = Annotated[Path | None, typer.Argument(metavar="[DIR]", help="The folder; the current one if left out.")]


def command(
    folder: DirArgument = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="Only say whether they are trusted (exit code 55).")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Trust them without being asked.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Stop trusting the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the hooks and commands that a folder would enable, and trust them as they are now."""
    path = (folder or current_folder()).expanduser().resolve()
    if not path.is_dir():
        raise InputError(NOT_A_FOLDER.format(folder=path))
    store = TrustStore(data_dir(os_environ()))
    if revoke:
        _revoke(store, path)
        return
    hooks = read_project_hooks(path)
    status = store.status(hooks)
    if as_json:
        commands = [encode(spec) for spec in hooks.specs]
        files = {name: digest for name, digest in hooks.files if digest}
        print_json({"folder": str(path), "status": status, "commands": commands, "files": files})
    else:
        print_table(list(_describe(hooks)))
    if status == "none":
        return
    if check or status == "trusted":
        _report(path, status)
        return
    if not yes and not _is_confirmed(path):
        raise UntrustedFolder(
            NOT_TRUSTED.format(folder=path), f"to trust them: agent trust --yes {shlex.quote(str(path))}"
        )
    store.trust(hooks)
    typer.echo(f"trusted: {path}", err=True)


def _report(path: Path, status: str) -> None:
    if status == "trusted":
        typer.echo(f"trusted: {path}", err=True)
        return
    problem = CHANGED if status == "changed" else NOT_TRUSTED
    raise UntrustedFolder(problem.format(folder=path), "`agent trust` asks whether to trust them")


def _revoke(store: TrustStore, path: Path) -> None:
    if not store.revoke(path):
        raise InputError(NOT_TRUSTED.format(folder=path))
    typer.echo(f"no longer trusted: {path}", err=True)


def _is_confirmed(path: Path) -> bool:
    """Ask on the terminal; without one the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(QUESTION, default=False, err=True)


def _describe(hooks: ProjectHooks) -> Iterator[str]:
    if not hooks.specs:
        yield NOTHING_TO_TRUST.format(folder=hooks.folder)
        return
    yield f"{hooks.folder} would run these commands:"
    for spec in hooks.specs:
        tools = f" {spec.matcher}" if spec.matcher else ""
        yield f"  {spec.event}{escape_hidden(tools)}  {escape_hidden(spec.command)}  ({spec.source})"
    if files := [(name, digest) for name, digest in hooks.files if digest]:
        yield "with these files of it:"
        yield from (f"  {digest[:12]}  {escape_hidden(name)}" for name, digest in files)
    yield from (f"not used: {escape_hidden(text)}" for text in hooks.unused)
    yield RISK
