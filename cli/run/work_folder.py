"""Chooses the working folder of a run: the named one, that of the session, the current one, or an empty one."""

import os
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.user_dirs import config_dir, current_folder, data_path
from agent.sessions.store import SessionStore, new_session_id
from agent.vocabulary.errors import InputError
from agent.workspace.git_command import find_repository
from cli.run.flags import RunFlags
from cli.screen.format import shorten_path
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.workspace.worktrees import Worktree, Worktrees
    from cli.run.resume_target import ResumeTarget

_SYSTEM = tuple(
    map(Path, ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"))
)
OWN_FOLDER = "in an empty folder"
TEMPORARY_FOLDER = "in a temporary folder that is deleted at the end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFolder:
    """The folder of a run, None for an empty one of the session; `why` is the reason if the current one is not used."""

    path: Path | None
    why: str = ""
    worktree: "Worktree | None" = None

    def describe(self, folder: Path, *, is_ephemeral: bool) -> str:
        """Return the first line of a run in `folder`."""
        if self.worktree:
            return f"in worktree {self.worktree.name} of {shorten_path(self.worktree.root)}: {shorten_path(folder)}"
        if self.path:
            return f"in {shorten_path(folder)}"
        because = f", because {self.why} (-C . works there anyway)" if self.why else ""
        if is_ephemeral:
            return f"{TEMPORARY_FOLDER}{because}"
        return f"{OWN_FOLDER}{because}: {shorten_path(folder)}"


def choose_folder(flags: RunFlags, target: "ResumeTarget | None", environ: Mapping[str, str]) -> WorkFolder:
    """Choose the folder of a run; raises InputError if the current folder is needed but was deleted."""
    if flags.worktree is not None:
        return open_worktree(flags.worktree, (flags.cwd or current_folder()).resolve(), environ)
    if flags.cwd or flags.scratch or (flags.repo and not flags.session):
        return WorkFolder(path=flags.cwd)
    if target:
        used = _worktrees(environ).containing(target.cwd) if target.cwd else None
        return WorkFolder(path=target.cwd, worktree=used)
    if flags.session:
        session = SessionStore(data_path(environ)).folder_for(flags.session)
        from agent.sessions.views.session_summary import read_head

        if before := read_head(session).cwd:
            return WorkFolder(path=session.folder_of_user(before))
    current = current_folder()
    why = not_a_project(current, environ)
    return WorkFolder(path=None if why else current, why=why)


def open_worktree(name: str, folder: Path, environ: Mapping[str, str]) -> WorkFolder:
    """Open the worktree of this name, or a new one; the run works in the corresponding subfolder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not an existing folder")
    worktrees = _worktrees(environ)
    worktree = worktrees.open(name or new_session_id(datetime.now(UTC)), folder)
    same = Path(worktree.path) / folder.relative_to(worktree.root)
    return WorkFolder(path=same if same.is_dir() else Path(worktree.path), worktree=worktree)


def _worktrees(environ: Mapping[str, str]) -> "Worktrees":
    from agent.workspace.worktrees import Worktrees

    return Worktrees(data_path(environ), environ)


def not_a_project(folder: Path, environ: Mapping[str, str]) -> str:
    """Return why a run should not work in a folder unless the user names it; empty if it may."""
    name, own = shorten_path(folder), (data_path(environ).resolve(), config_dir(environ).resolve())
    # A home of / belongs to a service.
    home = Path(environ.get("HOME") or "/").resolve()
    if folder == home != Path("/"):
        return f"{name} is your home folder"
    if any(folder.is_relative_to(path) for path in own):
        return f"{name} belongs to Windlass"
    if inner := next((path for path in (home, *own) if path.is_relative_to(folder)), None):
        return f"{name} contains {'your home folder' if inner == home else shorten_path(inner)}"
    is_at_home = home != Path("/") and folder.is_relative_to(home)
    if not is_at_home and _is_system_folder(folder):
        return f"{name} is a system folder"
    if folder.stat().st_mode & (stat.S_ISVTX | stat.S_IWOTH) == stat.S_ISVTX | stat.S_IWOTH:
        return f"{name} is shared by all users"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{name} cannot be written to"


def _is_system_folder(folder: Path) -> bool:
    """Whether a folder is a system folder; a repository below one, such as /usr/src/app, is not."""
    if not any(folder.is_relative_to(top) for top in _SYSTEM):
        return False
    repository = find_repository(folder)
    return repository is None or repository.root in _SYSTEM
