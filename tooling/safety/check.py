"""Check a command outside a run: does it need approval, is it blocked, does it leave the workspace."""

from pathlib import Path
from uuid import UUID

from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.safety.action_judge import ActionJudge
from tooling.safety.shell.path_access import PathAccess
from tooling.safety.shell.reader import ShellReader

SYSTEM_FOLDERS = ("/root", "/etc", "/proc", "/sys", "/dev", "/var", "/boot", "/run")
_NIL_ID = UUID(int=0)


def judge_command(
    command: str,
    *,
    workspace: Path,
    judge: ActionJudge,
    chat_type: str = "private",
    extra_dirs: tuple[Path, ...] = (),
) -> Verdict:
    """Return the verdict on a command, exactly as for a tool call in that workspace."""
    ctx = ExecCtx(user_id=_NIL_ID, task_id=_NIL_ID, working_dir=workspace, extra_dirs=extra_dirs, chat_type=chat_type)
    return judge.judge(Action(tool="run_command", effect="execute", subject=command, cwd=workspace), ctx)


def check_command(
    command: str, chat_type: str | None = None, *, workspace: Path | None = None, judge: ActionJudge | None = None
) -> tuple[bool, bool, str | None]:
    """Return whether a command needs approval, whether it is blocked, and why."""
    verdict = judge_command(
        command,
        workspace=workspace or Path.cwd(),
        judge=judge or ActionJudge(),
        chat_type=chat_type or "private",
    )
    return verdict.decision is Decision.ASK, verdict.decision is Decision.BLOCK, verdict.reason or None


def check_workspace_isolation(command: str, user_workspace: str) -> tuple[bool, str | None]:
    """Return whether a command accesses system folders outside the workspace; without a workspace, never."""
    if not user_workspace:
        return False, None
    for path in _paths_outside(command, Path(user_workspace)):
        if any(path == folder or path.startswith(f"{folder}/") for folder in SYSTEM_FOLDERS):
            return True, f"BLOCKED: {path} is a system folder outside the workspace {user_workspace}"
    return False, None


def check_command_path_escape(command: str, cwd: str) -> tuple[bool, str | None]:
    """Return whether a path of a command is outside its folder; a path that cannot be parsed reliably counts."""
    paths = _paths_outside(command, Path(cwd))
    if paths:
        return True, f"BLOCKED: {paths[0]} is outside {cwd}"
    return False, None


def _paths_outside(command: str, workspace: Path) -> list[str]:
    reader = ShellReader(str(workspace))
    reader.read(command)
    access = PathAccess.for_roots(workspace)
    paths = [path for simple in reader.reading.commands for path in access.paths_outside(simple)]
    is_doubtful = any(finding.is_doubt for finding in reader.reading.findings)
    # If the text cannot be parsed reliably, every word that looks like a path counts.
    return paths + [word.strip("\"'") for word in command.split() if is_doubtful and "/" in word]
