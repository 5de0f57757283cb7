"""Helpers to judge a command in a workspace."""

from pathlib import Path
from uuid import UUID

from tests.house.source_tree import ROOT
from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.safety.action_judge import ActionJudge
from tooling.safety.shell.reader import ShellReader

JUDGE = ActionJudge()
# Not below /tmp, where writing is always allowed; nothing is created in it.
WORKSPACE = Path("/srv/project")
CORPORA = ROOT / "tests" / "data" / "commands"
NEWLINE = "\u23ce"


def judge_command(
    command: str, *, cwd: Path = WORKSPACE, extra: tuple[Path, ...] = (), chat_type: str = "private"
) -> Verdict:
    ctx = ExecCtx(user_id=UUID(int=1), task_id=UUID(int=2), working_dir=cwd, extra_dirs=extra, chat_type=chat_type)
    return JUDGE.judge(Action(tool="run_command", effect="execute", subject=command, cwd=cwd), ctx)


def decision(command: str) -> Decision:
    return judge_command(command).decision


def argvs(text: str) -> list[tuple[str, ...]]:
    """Return the words of every command in a text."""
    reader = ShellReader(str(WORKSPACE))
    reader.read(text)
    return [command.words for command in reader.reading.commands]


def corpus(name: str) -> list[str]:
    """Return the lines of a corpus; a return symbol in them is a line break."""
    return [line.replace(NEWLINE, "\n") for line in (CORPORA / name).read_text().splitlines() if line]
