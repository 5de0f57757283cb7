"""A shell text against the rules and the borders of the workspace; the strictest finding decides."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.safety.rules import PATTERNS_DIR, RuleSet, load_rules
from tooling.safety.shell.command import HIDDEN, Command, Finding, ask, block, display_word, doubt, is_unknown
from tooling.safety.shell.deletions import deletion_problems
from tooling.safety.shell.parse import has_control_characters, has_invisible_characters
from tooling.safety.shell.path_access import PathAccess
from tooling.safety.shell.programs import TEXT_ONLY
from tooling.safety.shell.reader import ShellReader
from tooling.safety.shell.rule_forms import base_program, rule_texts, rule_word
from tooling.safety.shell.state import SideEffects, join_path
from tooling.safety.shell.wrappers import SHELLS

_NETWORK_CLIENTS = frozenset({"nc", "ncat", "netcat", "telnet", "socat", "nc.traditional", "nc.openbsd"})
_FIFO_PROGRAMS = frozenset({"mkfifo", "mknod"})


def is_reverse_shell(commands: Sequence[Command]) -> bool:
    """Say whether a text ties a shell to another machine, with or without a named pipe."""
    programs = {command.program for command in commands}
    if not (programs & _NETWORK_CLIENTS or _is_tls_client(commands)):
        return False
    shells = [command for command in commands if command.program in SHELLS]
    has_pipe = bool(programs & _FIFO_PROGRAMS)
    return any(has_pipe or "-i" in shell.words or (shell.has_piped_stdin and len(shell.words) == 1) for shell in shells)


def _is_tls_client(commands: Sequence[Command]) -> bool:
    return any(command.program == "openssl" and "s_client" in command.words for command in commands)


# A definition that pipes into itself is one even where the grammar gives up.
_FORK_BOMB = re.compile(r"(?<!\w)(\w{1,40}|:)\s{0,4}\(\s{0,4}\)\s{0,4}\{[^}]{0,80}?\1\s{0,4}\|\s{0,4}\1\s{0,4}&")
_RULES_MISSING_REASON = "the command rules could not be read, so every command needs approval"
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRETS?|PASSWORD|PASSWD|PASS|PWD|CREDENTIALS?|AUTH)(?:_|$|\d)", re.IGNORECASE
)
_NOT_SECRET = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
_HOST = re.compile(
    r"(?:https?|ssh|git|ftp|sftp|wss?|rsync)://(?:[^/@\s]*@)?(\[[0-9a-fA-F:]+\]|[\w.-]+)|^[\w.-]+@([\w.-]+):"
)
_PATH_MAX = 4096
_SPACE = re.compile(r"\s")
_DEV_TCP = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/")


class ShellJudge:
    """Judges shell texts; the rules are read once, at the first one."""

    def __init__(self, patterns_dir: Path | None = None, *, warn: Callable[[str], None] | None = None) -> None:
        self.rules: RuleSet = load_rules(patterns_dir or PATTERNS_DIR)
        loud = "" if self.rules.is_complete else " Every command needs approval until this is fixed."
        if warn is not None:
            for problem in self.rules.problems:
                warn(f"command rules: {problem}.{loud}")

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the strictest verdict on the whole text."""
        text = action.subject
        if has_control_characters(text):
            return _verdict([block("control-characters", "the command contains control characters")], [], [])
        reader = ShellReader(str(action.cwd))
        findings: list[Finding] = []
        if _FORK_BOMB.search(text):
            findings.append(block("fork-bomb", "it is a fork bomb"))
        if has_invisible_characters(text):
            findings.append(doubt("odd-characters", "it contains invisible or misleading characters"))
        try:
            reader.read(text)
        except RecursionError:
            findings.append(doubt("too-deep", "it is nested too deeply to be judged"))
        findings += reader.findings
        reach = PathAccess.for_roots(ctx.working_dir, *ctx.extra_dirs)
        shown = [command.display for command in reader.commands]
        seen: set[tuple[object, ...]] = set()
        for at, command in enumerate(reader.commands):
            key = (command.words, command.cwd, command.redirects, command.variables_read, command.is_cwd_certain)
            if key in seen and command.program != "rm":
                continue
            seen.add(key)
            findings += self.check_command(command, shown[at], reach, reader.effects, at + 1, chat_type=ctx.chat_type)
        for assignment in dict.fromkeys(reader.assigned):
            findings += self._rule_findings(rule_word(assignment), assignment, ctx.chat_type)
        if is_reverse_shell(reader.commands):
            findings.append(block("reverse-shell", "it opens a reverse shell to another machine"))
        if not self.rules.is_complete:
            findings.append(ask("rules-missing", _RULES_MISSING_REASON))
        return _verdict(findings, reader.commands, shown)

    def check_command(
        self, command: Command, shown: str, reach: PathAccess, made: SideEffects, at: int, *, chat_type: str
    ) -> Iterator[Finding]:
        """Yield what speaks against one command."""
        for text in rule_texts(command, reach):
            yield from self._rule_findings(text, shown, chat_type)
        for problem in reach.problems(command, made, at):
            yield ask("leaves-workspace", problem, shown)
        if any(len(word) > _PATH_MAX and "/" in word and not _SPACE.search(word) for word in command.words):
            yield ask("long-path", "it contains a path that is longer than the system allows", shown)
        if not command.words:
            return
        for rule, reason in deletion_problems(command, reach, made, at):
            yield ask(rule, reason, shown)
        name = command.words[0].rpartition("/")[2]
        if (_is_unclear(name) or HIDDEN in command.words[0]) and name not in ("[", "[["):
            yield ask("unknown-program", "which program it runs is only known at run time", shown)
        elif not command.is_trusted and self._is_unknown_program(command, reach, made, at):
            yield ask("unfamiliar-program", f"{name} is not a known program", shown)
        program = command.program
        if program not in TEXT_ONLY and any(HIDDEN in word for word in command.words):
            yield ask("hidden-text", "it obscures its arguments", shown)
        for variable in sorted(command.variables_read):
            if variable not in _NOT_SECRET and _SECRET_NAME.search(variable):
                yield ask("secret-variable", f"${variable} may contain a secret", shown)

    def _is_unknown_program(self, command: Command, reach: PathAccess, made: SideEffects, at: int) -> bool:
        word = command.words[0]
        is_known = self.rules.has_program(command.program) or self.rules.has_program(base_program(command.program))
        if not word or is_known or _is_version_or_help(command.words):
            return False
        if "/" not in word:
            return True
        return not reach.is_inside(word, command.cwd) and not made.existed_before(join_path(command.cwd, word), at)

    def _rule_findings(self, text: str, shown: str, chat_type: str) -> Iterator[Finding]:
        for rule in self.rules.find_matches(text, chat_type=chat_type):
            yield Finding(
                decision=rule.decision, rule=rule.id, reason=rule.reason, command=shown, category=rule.category
            )


def _is_version_or_help(words: tuple[str, ...]) -> bool:
    return len(words) == 2 and words[1] in ("--version", "-V", "--help", "-h", "-v", "version", "help")


def _is_unclear(name: str) -> bool:
    return is_unknown(name) or not name.isascii() or any(char in name for char in "*?[")


def _verdict(findings: list[Finding], commands: list[Command], shown: list[str]) -> Verdict:
    decision = max((finding.decision for finding in findings), default=Decision.ALLOW)
    strictest = [finding for finding in findings if finding.decision is decision]
    hosts = tuple(dict.fromkeys(host for command in commands for host in _hosts(command)))
    is_doubtful = any(finding.is_doubt or not finding.command for finding in findings)
    return Verdict(
        decision=decision,
        reasons=tuple(dict.fromkeys(finding.reason for finding in strictest)),
        rule=strictest[0].rule if strictest else "",
        commands=tuple(dict.fromkeys(shown)),
        # In doubt about the text no rule for a part of it may speak for the whole.
        commands_to_approve=() if is_doubtful else tuple(dict.fromkeys(finding.command for finding in findings)),
        programs=tuple(dict.fromkeys(display_word(command.program) for command in commands if command.words)),
        targets=tuple(dict.fromkeys(display_word(r.target) for command in commands for r in command.redirects)),
        hosts=hosts,
        is_only_network=bool(hosts) and bool(findings) and all(one.category == "network" for one in findings),
    )


def _hosts(command: Command) -> Iterator[str]:
    for word in command.words[1:]:
        if ":" in word:
            for found in _HOST.finditer(word):
                yield found[1] or found[2]
    for redirect in command.redirects:
        if connection := _DEV_TCP.match(redirect.target):
            yield connection[1]
