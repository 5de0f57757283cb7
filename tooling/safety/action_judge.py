"""Judge every action: file tools by path, commands by content, web requests by host."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.files.workspace_paths import PathRefused, readable_path, writable_path

if TYPE_CHECKING:
    from tooling.safety.shell.shell_judge import ShellJudge

REMEMBER_REASON = "you did not ask for it explicitly, and every later run would read it"
DELETES_REASON = "it deletes {paths}"
EXTERNAL_REASON = "an MCP server does it, with rights of its own"
FORGET_REASON = "it deletes everything that is remembered for you"


class ActionJudge:
    """Judges actions without side effects; `warn` receives problems with the rule files."""

    def __init__(self, patterns_dir: Path | None = None, *, warn: Callable[[str], None] | None = None) -> None:
        self._patterns_dir = patterns_dir
        self._warn = warn

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the strictest verdict that applies."""
        match action.effect:
            case "execute":
                verdict = self._shell_judge.judge(action, ctx)
                return _asked(verdict, action.changed) if action.changed else verdict
            case "read" | "write":
                return _file_verdict(action, ctx)
            case "web":
                return _web_verdict(action)
            case "ask" | "note":
                return Verdict(decision=Decision.ALLOW)
            case "remember" if action.is_requested:
                return Verdict(decision=Decision.ALLOW)
            case "remember":
                return Verdict(decision=Decision.ASK, reasons=(REMEMBER_REASON,), rule="remember")
            case "external":
                return Verdict(decision=Decision.ASK, reasons=(action.changed or EXTERNAL_REASON,), rule="external")
            case "forget":
                return Verdict(decision=Decision.ASK, reasons=(FORGET_REASON,), rule="forget")

    @cached_property
    def _shell_judge(self) -> "ShellJudge":
        # The shell reader and the rules load with the first command; a run without commands never needs them.
        from tooling.safety.shell.shell_judge import ShellJudge

        return ShellJudge(self._patterns_dir, warn=self._warn)


def _asked(verdict: Verdict, reason: str) -> Verdict:
    """Return a verdict that asks at least, for this reason as well."""
    decision, reasons = max(verdict.decision, Decision.ASK), (*verdict.reasons, reason)
    return replace(verdict, decision=decision, reasons=reasons, rule=verdict.rule or "external", only_reads=False)


def _file_verdict(action: Action, ctx: ExecCtx) -> Verdict:
    check = writable_path if action.effect == "write" else readable_path
    try:
        for path in action.paths or (action.subject,):
            check(path, ctx)
    except PathRefused as refused:
        return Verdict(decision=Decision.BLOCK, reasons=(str(refused),), rule="leaves-workspace")
    if action.deletes:
        reason = DELETES_REASON.format(paths=", ".join(action.deletes))
        return Verdict(decision=Decision.ASK, reasons=(reason,), rule="deletes-files")
    return Verdict(decision=Decision.ALLOW, only_reads=action.effect == "read")


def _web_verdict(action: Action) -> Verdict:
    """Ask about the host, because the URL itself can exfiltrate data."""
    from tooling.web.addresses.url_check import AddressRefused, parse_url, with_scheme

    if not action.url:
        return Verdict(decision=Decision.ALLOW)
    try:
        host = parse_url(with_scheme(action.url), allow_loopback=True).host
    except AddressRefused:
        # The tool refuses it as well, with a better explanation, so nothing will be requested.
        return Verdict(decision=Decision.ALLOW)
    command = f"{action.tool} {host}"
    return Verdict(
        decision=Decision.ASK,
        reasons=(f"it sends this address to {host}",),
        rule="web-host",
        commands=(command,),
        commands_to_approve=(command,),
        hosts=(host,),
        is_only_network=True,
    )
