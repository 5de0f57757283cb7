"""`agent check`: judge commands without running them."""

import shlex
import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from agent.config.environment import is_shared_place
from agent.config.load import LoadedSettings, load_settings
from agent.config.rules import CommandRule
from agent.config.user_dirs import current_folder, os_environ
from agent.diagnostics.treatment import CommandTreatment, treat_command
from agent.vocabulary.errors import UsageError
from cli.run import flags as flag
from cli.run.progress import print_stderr
from cli.run.stdout import write_line
from cli.screen.sanitize import to_safe_json
from tooling.contract.action import Decision, Verdict
from tooling.safety.action_judge import ActionJudge
from tooling.safety.check import judge_command

Commands = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CMD]...", help="A shell command in quotes; several are judged one by one; - reads one per line."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for each command.")]
ChatType = Annotated[
    str | None,
    typer.Option("--chat-type", metavar="TYPE", help="private, or group for a shared machine, as in CI."),
]
QUOTE_HINT = "quote it: agent check 'git push'"
_DECISION_NAMES = {Decision.ALLOW: "allow", Decision.ASK: "ask", Decision.BLOCK: "block"}


def command(
    commands: Commands = None,
    *,
    as_json: JsonOption = False,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    chat_type: ChatType = None,
) -> None:
    """Judge commands, or each line of stdin, and show what your rules make of the verdict; run nothing.

    The exit code is 0 for every verdict: a verdict is an answer, not a failure.
    """
    if chat_type not in (None, "private", "group"):
        raise UsageError(f"--chat-type must be private or group, not {chat_type!r}")
    judge = ActionJudge(warn=lambda problem: print_stderr(f"warning: {problem}"))
    workspace = (cwd or current_folder()).absolute()
    environ = os_environ()
    loaded = load_settings(environ=environ)
    chat_type = chat_type or ("group" if is_shared_place(loaded.settings.shared, environ) else "private")
    if any(not line.strip() for line in commands or ()):
        raise UsageError("the command is empty", QUOTE_HINT)
    for line in _lines(commands):
        verdict = judge_command(
            line, workspace=workspace, judge=judge, chat_type=chat_type, extra_dirs=tuple(add_dirs or ())
        )
        settings = loaded.settings
        treated = treat_command(line, verdict, workspace, settings, mode=settings.approval_mode)
        if as_json:
            write_line(to_safe_json(_record(line, verdict, treated, loaded)))
        else:
            write_line(_format_verdict(line, verdict))
            if treated.treatment != _DECISION_NAMES[verdict.decision]:
                write_line(f"       a run would {treated.treatment} it: {_format_cause(treated, loaded)}")
    if commands and len(commands) > 1 and not any(" " in line for line in commands):
        print_stderr(
            "hint: each argument was judged as a command of its own; "
            f"quote one: agent check {shlex.quote(' '.join(commands))}"
        )


def _lines(commands: list[str] | None) -> Iterator[str]:
    if commands and commands != ["-"]:
        yield from commands
        return
    if sys.stdin is None or (not commands and sys.stdin.isatty()):
        raise UsageError("no command given", QUOTE_HINT)
    for raw in sys.stdin.buffer:
        line = raw.decode("utf-8", "surrogateescape").removesuffix("\n")
        if line.strip(" \t"):
            yield line


def _record(line: str, verdict: Verdict, treated: CommandTreatment, loaded: LoadedSettings) -> dict[str, object]:
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
        "in_run": treated.treatment,
        "user_rules": [
            {"effect": rule.effect, "words": rule.words, "folder": rule.folder or None, "where": _origin(rule, loaded)}
            for rule in treated.rules
        ],
    }


def _format_verdict(line: str, verdict: Verdict) -> str:
    printable = line if line.isprintable() else repr(line)
    reason = f"  ({verdict.rule}: {verdict.reason})" if verdict.decision else ""
    return f"{_DECISION_NAMES[verdict.decision]:<5}  {printable}{reason}"


def _format_cause(treated: CommandTreatment, loaded: LoadedSettings) -> str:
    """Return what overrides the verdict, and where it is set."""
    if not treated.rules:
        return f"approval_mode is {loaded.settings.approval_mode} ({loaded.origins['approval_mode']})"
    return ", ".join(
        f"your rule {rule.effect} {rule.words!r} ({_origin(rule, loaded)}"
        + (f", in {rule.folder})" if rule.folder else ")")
        for rule in treated.rules
    )


def _origin(rule: CommandRule, loaded: LoadedSettings) -> str:
    key = f"projects.{rule.folder}.{rule.effect}" if rule.folder else rule.effect
    return str(loaded.origins.get(key, "settings"))
