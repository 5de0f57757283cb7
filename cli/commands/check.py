"""`agent check`: judge commands without running them."""

import shlex
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from agent.config.user_dirs import current_folder
from agent.vocabulary.errors import UsageError
from cli.run import flags as flag
from cli.run.progress import print_stderr
from cli.run.stdout import write_line
from cli.screen.sanitize import to_safe_json
from tooling.contract.action import Decision, Verdict
from tooling.safety.action_judge import ActionJudge
from tooling.safety.check import judge_command

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CMD]", help="A shell command, or a program and its arguments; - reads one command per line."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for each command.")]
ChatType = Annotated[str, typer.Option("--chat-type", metavar="TYPE", help="private, or group for a shared machine.")]
_DECISION_NAMES = {Decision.ALLOW: "allow", Decision.ASK: "ask", Decision.BLOCK: "block"}


def command(
    words: Words = None,
    *,
    as_json: JsonOption = False,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    chat_type: ChatType = "private",
) -> None:
    """Judge a command, or each line of stdin; run nothing.

    The exit code is 0 for every verdict: a verdict is an answer, not a failure.
    """
    if chat_type not in ("private", "group"):
        raise UsageError(f"--chat-type must be private or group, not {chat_type!r}")
    judge = ActionJudge(warn=lambda problem: print_stderr(f"warning: {problem}"))
    workspace = (cwd or current_folder()).absolute()
    for line in _lines(words):
        verdict = judge_command(
            line, workspace=workspace, judge=judge, chat_type=chat_type, extra_dirs=tuple(add_dirs or ())
        )
        write_line(to_safe_json(_record(line, verdict)) if as_json else _format_verdict(line, verdict))


def _lines(words: list[str] | None) -> Iterator[str]:
    if words and words != ["-"]:
        yield words[0] if len(words) == 1 else shlex.join(words)
        return
    if sys.stdin is None or (not words and sys.stdin.isatty()):
        raise UsageError("no command given", "quote it: agent check 'git push'")
    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
        if line.strip(" \t"):
            yield line


def _record(line: str, verdict: Verdict) -> dict[str, object]:
    return {
        "command": line,
        "decision": _DECISION_NAMES[verdict.decision],
        "approval": verdict.decision is Decision.ASK,
        "blocked": verdict.decision is Decision.BLOCK,
        "reason": verdict.reason or None,
        "rule": verdict.rule or None,
        "programs": list(verdict.programs),
        "targets": list(verdict.targets),
        "hosts": list(verdict.hosts),
    }


def _format_verdict(line: str, verdict: Verdict) -> str:
    printable = line if line.isprintable() else repr(line)
    reason = f"  ({verdict.rule}: {verdict.reason})" if verdict.decision else ""
    return f"{_DECISION_NAMES[verdict.decision]:<5}  {printable}{reason}"
