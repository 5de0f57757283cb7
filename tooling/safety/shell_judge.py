"""A shell text against the rules and the borders of the workspace; the strictest finding decides."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.safety.reach import directory_after, path_problems
from tooling.safety.rules import PATTERNS_DIR, RuleBook, load_rules
from tooling.safety.shell_text import SimpleCommand, Unparsable, program_name
from tooling.safety.unwrap import canonical_commands

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ODD = re.compile(r"[\u00a0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]")
# A function that calls itself twice in a pipe; it is no single command, so no rule can see it.
_FORK_BOMB = re.compile(r"(?<!\w)(\w{1,40}|:)\s{0,4}\(\s{0,4}\)\s{0,4}\{[^}]{0,80}?\1\s{0,4}\|\s{0,4}\1\s{0,4}&")
_UNKNOWN_PROGRAM = re.compile(r"[$`*?\[{]")
_BLANK = re.compile(r"\s")
_INCOMPLETE = "the command rules could not be read, so every command needs approval"


@dataclass(slots=True)
class _Findings:
    """What was found so far; the strictest decides."""

    decision: Decision = Decision.ALLOW
    reasons: list[str] = field(default_factory=list)
    rule: str = ""
    commands: list[str] = field(default_factory=list)
    asking: list[str] = field(default_factory=list)
    is_doubtful: bool = False

    def add(self, decision: Decision, reason: str, rule: str, command: str = "") -> None:
        """Take in one finding about a command, or about the whole text."""
        if decision > self.decision:
            self.decision, self.rule = decision, rule
            self.reasons = []
        if decision == self.decision and reason not in self.reasons:
            self.reasons.append(reason)
        if command and command not in self.asking:
            self.asking.append(command)

    def verdict(self) -> Verdict:
        """Return them as a verdict."""
        return Verdict(
            decision=self.decision,
            reasons=tuple(self.reasons),
            rule=self.rule,
            commands=tuple(self.commands),
            # In doubt about the text no rule for a part of it may speak for the whole.
            asking=() if self.is_doubtful else tuple(self.asking),
        )


class ShellTextJudge:
    """Judges shell texts; the rules are read once, at the first one."""

    def __init__(self, patterns_dir: Path | None = None, *, warn: Callable[[str], None] | None = None) -> None:
        self.rules: RuleBook = load_rules(patterns_dir or PATTERNS_DIR)
        loud = "" if self.rules.is_complete else " Every command needs approval until this is repaired."
        if warn is not None:
            for problem in self.rules.problems:
                warn(f"command rules: {problem}.{loud}")

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the strictest verdict on the whole text."""
        findings = _Findings()
        text = action.subject
        if _CONTROL.search(text):
            findings.add(Decision.BLOCK, "the command holds control characters", "control-characters")
            return findings.verdict()
        if _FORK_BOMB.search(text):
            findings.add(Decision.BLOCK, "it is a fork bomb", "fork-bomb")
        if _ODD.search(text):
            findings.add(Decision.ASK, "it holds invisible or misleading characters", "odd-characters")
            findings.is_doubtful = True
        try:
            self._simple_commands(text, action.cwd, ctx, findings)
        except Unparsable as error:
            findings.add(Decision.ASK, f"it cannot be understood for certain: {error}", "unparsable")
            findings.is_doubtful = True
        return findings.verdict()

    def _simple_commands(self, text: str, cwd: Path, ctx: ExecCtx, findings: _Findings) -> None:
        roots = tuple(root.resolve() for root in (ctx.working_dir, *ctx.extra_dirs))
        roots += (ctx.working_dir, *ctx.extra_dirs)
        for command in canonical_commands(text):
            name = _canonical(command)
            findings.commands.append(name)
            if not self.rules.is_complete:
                findings.add(Decision.ASK, _INCOMPLETE, "rules-missing", name)
            for rule in self.rules.hits(rule_text(command), chat_type=ctx.chat_type):
                findings.add(rule.decision, rule.reason, rule.id, name)
            for problem in path_problems(command, cwd, roots):
                findings.add(Decision.ASK, problem, "leaves-workspace", name)
            if command.words and _UNKNOWN_PROGRAM.search(command.words[0]) and command.words[0] not in ("[", "[["):
                findings.add(Decision.ASK, "which program runs is not known before it runs", "unknown-program", name)
            cwd = directory_after(command, cwd)


def _canonical(command: SimpleCommand) -> str:
    """Return the words a person would write a rule with: program name, arguments, redirections."""
    return " ".join((*_named(command), *(f"{r.operator} {r.target}" for r in command.redirects)))


def rule_text(command: SimpleCommand) -> str:
    """Return the same with blanks inside words made visible, so that data cannot look like arguments."""
    words = (_BLANK.sub("\u2423", word) for word in _named(command))
    redirects = (f"{r.operator} {_BLANK.sub(chr(0x2423), r.target)}" for r in command.redirects)
    fed = ("|stdin",) if command.is_piped else ("<stdin",) if command.script else ()
    return " ".join((*words, *redirects, *fed))


def _named(command: SimpleCommand) -> list[str]:
    return [program_name(command.words), *command.words[1:]] if command.words else []
