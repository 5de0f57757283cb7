"""Judge a shell text by the rules and the workspace; the strictest finding decides."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tooling.contract.action import Action, Decision, Script, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.hidden_characters import has_control_characters, has_invisible_characters
from tooling.safety.shell.command import (
    HIDDEN,
    REVERSE_SHELL_REASON,
    Command,
    Finding,
    ask,
    block,
    display_word,
    doubt,
    is_unknown,
    join_path,
    quote_word,
    too_deep,
)
from tooling.safety.shell.embedded import looks_harmless
from tooling.safety.shell.path_access import PathAccess, is_build_artifact
from tooling.safety.shell.programs import TEXT_ONLY
from tooling.safety.shell.read_only import is_only_reading
from tooling.safety.shell.reader import ShellReader
from tooling.safety.shell.rules import (
    PATTERNS_DIR,
    RuleSet,
    base_program,
    load_rules,
    rule_texts,
    rule_word,
    unknown_subcommand,
)
from tooling.safety.shell.script_files import scratch_code, script_files
from tooling.safety.shell.state import SideEffects
from tooling.safety.shell.tables.languages import SHELLS

_NETWORK_CLIENTS = frozenset({"nc", "ncat", "netcat", "telnet", "socat", "nc.traditional", "nc.openbsd"})
_PROCESS_LISTS = frozenset({"ps", "pgrep", "pidof"})
_FIFO_PROGRAMS = frozenset({"mkfifo", "mknod"})
RULES_INCOMPLETE_WARNING = "Every command needs approval until this is fixed."
CONTROL_CHARACTERS_REASON = "the command contains control characters"
RULES_MISSING_REASON = "the command rules could not be read, so every command needs approval"
_SECRET_NAME = lazy_pattern(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRETS?|PASSWORD|PASSWD|PASS|PWD|CREDENTIALS?|AUTH)(?:_|$|\d)", re.IGNORECASE
)
# `env | grep -i node` shows only what it looks for.
_GREPS = frozenset({"grep", "egrep", "rg"})
_GREP_OPTION = lazy_pattern(r"-[iEwcnqs]+")
_LOOKED_FOR = lazy_pattern(r"\^?[A-Za-z]\w{2,}=?(?:\|\^?[A-Za-z]\w{2,}=?)*")
_MAY_BE_SECRET = lazy_pattern(r"key|token|secret|pass|pwd|cred|auth|api|priv|aws|sess|cookie|cert|sign", re.IGNORECASE)
_NOT_SECRET = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})
_HOST = lazy_pattern(
    r"(?:https?|ssh|git|ftp|sftp|wss?|rsync)://(?:[^/@\s]*@)?(\[[0-9a-fA-F:]+\]|[\w.-]+)|^[\w.-]+@([\w.-]+):"
)
_PATH_MAX = 4096
_MAX_SCRIPTS = 50
_SPACE = lazy_pattern(r"\s")
_DEV_TCP = lazy_pattern(r"/dev/(?:tcp|udp)/([^/]+)/")
_DELETERS = frozenset({"rm", "grm", "unlink", "srm", "rimraf", "del-cli", "trash", "gio-trash"})
_ALWAYS_RECURSIVE = frozenset({"rimraf", "trash"})
_EVERYTHING = lazy_pattern(r"(?:\.|\./\*+|\./\*\*/\*|\./\.\*)/?")


class ShellJudge:
    """Judges shell texts; `warn` receives problems with the rule files."""

    def __init__(self, patterns_dir: Path | None = None, *, warn: Callable[[str], None] | None = None) -> None:
        self.rules: RuleSet = load_rules(patterns_dir or PATTERNS_DIR)
        consequence = "" if self.rules.is_complete else f" {RULES_INCOMPLETE_WARNING}"
        if warn is not None:
            for problem in self.rules.problems:
                warn(f"command rules: {problem}.{consequence}")

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the strictest verdict on the text."""
        text = action.subject
        if has_control_characters(text):
            return _verdict([block("control-characters", CONTROL_CHARACTERS_REASON)], [], [])
        reader = ShellReader(str(action.cwd))
        reading = reader.reading
        findings: list[Finding] = []
        if has_invisible_characters(text):
            findings.append(doubt("odd-characters", "it contains invisible or misleading characters"))
        try:
            reader.read(text)
        except RecursionError:
            findings.append(too_deep())
        findings += reading.findings
        access = PathAccess.for_roots(ctx.working_dir, *ctx.extra_dirs, *ctx.skill_dirs)
        shown = [command.display for command in reading.commands]
        seen: set[tuple[object, ...]] = set()
        for at, command in enumerate(reading.commands):
            key = (command.words, command.cwd, command.redirects, command.variables_read, command.is_cwd_certain)
            if key in seen and command.program != "rm":
                continue
            seen.add(key)
            found = self._check_command(command, shown[at], access, reading.effects, at + 1, chat_type=ctx.chat_type)
            is_filtered = _filters_environment(reading.commands[at + 1 : at + 2]) and not command.redirects
            findings += (finding for finding in found if not (is_filtered and finding.rule == "environment-dump"))
        for assignment in dict.fromkeys(reading.assigned):
            text = access.as_rules_see(rule_word(assignment))
            findings += self._rule_findings(text, quote_word(assignment), ctx.chat_type)
        if _is_reverse_shell(reading.commands):
            findings.append(block("reverse-shell", REVERSE_SHELL_REASON))
        findings += _kills_found_processes(reading.commands, shown)
        if not self.rules.is_complete:
            findings.append(ask("rules-missing", RULES_MISSING_REASON))
        only_reads = not findings and is_only_reading(reading)
        is_changed = reading.changes_lookup
        return _verdict(findings, reading.commands, shown, is_lookup_changed=is_changed, only_reads=only_reads)

    def _check_command(
        self, command: Command, shown: str, access: PathAccess, effects: SideEffects, number: int, *, chat_type: str
    ) -> Iterator[Finding]:
        if not (_only_tells_its_version(command.words) and not command.redirects):
            for text in rule_texts(command, access):
                yield from self._rule_findings(access.as_rules_see(text), shown, chat_type)
        for problem in access.problems(command, effects, number):
            yield ask("leaves-workspace", problem, shown)
        if any(len(word) > _PATH_MAX and "/" in word and not _SPACE.search(word) for word in command.words):
            yield ask("long-path", "it contains a path that is longer than the system allows", shown)
        if not command.words:
            return
        for rule, reason in _deletion_problems(command, access, effects, number):
            yield ask(rule, reason, shown)
        name = command.words[0].rpartition("/")[2]
        if (_is_unclear(name) or HIDDEN in command.words[0]) and name not in ("[", "[["):
            yield ask("unknown-program", "which program it runs is only known at run time", shown)
        elif not command.is_trusted and self._is_unknown_program(command, access, effects, number):
            yield ask("unfamiliar-program", f"{name} is not a known program", shown)
        if path := scratch_code(command, access, effects, number):
            yield ask("scratch-code", f"it runs or loads {display_word(path)} from a folder for temporary files", shown)
        program = command.program
        if unknown := unknown_subcommand(command.words, self.rules.subcommands):
            yield ask("unknown-subcommand", f"nobody has judged what `{program} {unknown}` does", shown)
        if program not in TEXT_ONLY and any(HIDDEN in word for word in command.words):
            yield ask("hidden-text", "it obscures its arguments", shown)
        for variable in sorted(command.variables_read):
            if variable not in _NOT_SECRET and _SECRET_NAME.search(variable):
                yield ask("secret-variable", f"${variable} may contain a secret", shown)

    def _is_unknown_program(self, command: Command, access: PathAccess, effects: SideEffects, number: int) -> bool:
        word = command.words[0]
        is_known = self.rules.has_program(command.program) or self.rules.has_program(base_program(command.program))
        if not word or is_known or _is_version_or_help(command.words):
            return False
        if "/" not in word:
            return not looks_harmless(command.words)
        return not (access.is_inside(word, command.cwd) or effects.created_before(join_path(command.cwd, word), number))

    def _rule_findings(self, text: str, shown: str, chat_type: str) -> Iterator[Finding]:
        for rule in self.rules.find_matches(text, chat_type=chat_type):
            yield Finding(
                decision=rule.decision, rule=rule.id, reason=rule.reason, command=shown, category=rule.category
            )


def _filters_environment(following: Sequence[Command]) -> bool:
    """Return whether the next command of a pipe looks for a name that suggests no secret."""
    if not following or following[0].program not in _GREPS or not following[0].has_piped_stdin:
        return False
    wanted = [word for word in following[0].words[1:] if not _GREP_OPTION.fullmatch(word)]
    return len(wanted) == 1 and bool(_LOOKED_FOR.fullmatch(wanted[0])) and not _MAY_BE_SECRET.search(wanted[0])


def _is_version_or_help(words: tuple[str, ...]) -> bool:
    return len(words) == 2 and words[1] in ("--version", "-V", "--help", "-h", "-v", "version", "help")


def _only_tells_its_version(words: tuple[str, ...]) -> bool:
    return len(words) == 2 and words[1] in ("--version", "--help", "-version") and "/" not in words[0]


def _is_unclear(name: str) -> bool:
    return is_unknown(name) or not name.isascii() or any(char in name for char in "*?[")


def _verdict(
    findings: list[Finding],
    commands: list[Command],
    shown: list[str],
    *,
    is_lookup_changed: bool = False,
    only_reads: bool = False,
) -> Verdict:
    decision = max((finding.decision for finding in findings), default=Decision.ALLOW)
    strictest = [finding for finding in findings if finding.decision is decision]
    hosts = tuple(dict.fromkeys(host for command in commands for host in _hosts(command)))
    # With another PATH, or after `source`, a program name does not determine what runs.
    is_doubtful = is_lookup_changed or any(finding.is_doubt or not finding.command for finding in findings)
    modules = (replace(command, launcher=()).display for command in commands if command.launcher)
    return Verdict(
        decision=decision,
        reasons=tuple(dict.fromkeys(finding.reason for finding in strictest)),
        rule=strictest[0].rule if strictest else "",
        commands=tuple(dict.fromkeys((*shown, *modules))),
        # If the text could not be parsed reliably, approving one of its commands must not approve all of it.
        commands_to_approve=() if is_doubtful else tuple(dict.fromkeys(finding.command for finding in findings)),
        programs=tuple(dict.fromkeys(display_word(command.program) for command in commands if command.words)),
        targets=tuple(dict.fromkeys(display_word(r.target) for command in commands for r in command.redirects)),
        hosts=hosts,
        scripts=tuple(_scripts(commands, shown)),
        is_only_network=bool(hosts) and bool(findings) and all(finding.category == "network" for finding in findings),
        only_reads=only_reads,
    )


def _scripts(commands: list[Command], shown: list[str]) -> Iterator[Script]:
    for command, text in zip(commands[:_MAX_SCRIPTS], shown, strict=False):
        for path in script_files(command):
            if path.startswith("/"):
                yield Script(command=text, path=Path(path))


def _hosts(command: Command) -> Iterator[str]:
    for word in command.words[1:]:
        if ":" in word:
            for found in _HOST.finditer(word):
                yield found[1] or found[2]
    for redirect in command.redirects:
        if connection := _DEV_TCP.match(redirect.target):
            yield connection[1]


def _is_reverse_shell(commands: Sequence[Command]) -> bool:
    """Return whether the commands connect a shell to another machine, with or without a named pipe."""
    programs = {command.program for command in commands}
    if not (programs & _NETWORK_CLIENTS or _is_tls_client(commands)):
        return False
    shells = [command for command in commands if command.program in SHELLS]
    has_fifo = bool(programs & _FIFO_PROGRAMS)
    return any(has_fifo or "-i" in shell.words or (shell.has_piped_stdin and len(shell.words) == 1) for shell in shells)


def _is_tls_client(commands: Sequence[Command]) -> bool:
    return any(command.program == "openssl" and "s_client" in command.words for command in commands)


def _kills_found_processes(commands: Sequence[Command], shown: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each `kill` whose targets another command lists by name or owner."""
    if {command.program for command in commands} & _PROCESS_LISTS:
        for command, text in zip(commands, shown, strict=True):
            if command.program == "kill" and any(map(is_unknown, command.words)):
                yield ask("kill-by-name", "it kills processes that it looks up, including those of others", text)


def _deletion_problems(
    command: Command, access: PathAccess, effects: SideEffects, number: int
) -> Iterator[tuple[str, str]]:
    """Yield rule and reason for each target of a deletion that cannot simply be recreated."""
    program = command.program
    if program not in _DELETERS:
        return
    options = [word for word in command.words[1:] if word.startswith("-")]
    is_recursive = program in _ALWAYS_RECURSIVE or any(
        option in ("--recursive", "--dir") or (option[1:2] != "-" and ("r" in option or "R" in option))
        for option in options
    )
    for target in _deletion_targets(command.words):
        yield from _target_problems(
            target, command, access, effects, number, is_recursive=is_recursive or "**" in target
        )


def _deletion_targets(words: tuple[str, ...]) -> list[str]:
    if "--" in words:
        at = words.index("--")
        return [*(word for word in words[1:at] if not word.startswith("-")), *words[at + 1 :]]
    return [word for word in words[1:] if not word.startswith("-")]


def _target_problems(
    target: str, command: Command, access: PathAccess, effects: SideEffects, number: int, *, is_recursive: bool
) -> Iterator[tuple[str, str]]:
    name = display_word(target)
    canonical = access.canonical(target, command.cwd)
    if access.is_temporary(target, command.cwd) and not canonical.rstrip("/").endswith("/*"):
        return
    if is_unknown(target) or is_unknown(command.cwd):
        yield "delete-unknown", "what it deletes is only known at run time"
    elif not command.is_cwd_certain and is_recursive and not target.startswith(("/", "~")):
        yield "delete-unknown", f"{name} may be somewhere else if `cd` fails"
    elif _EVERYTHING.fullmatch(canonical) and not is_recursive:
        yield "delete-many", f"{name} matches every file in the workspace"
    elif canonical == "./.git" or canonical.startswith("./.git/"):
        yield "delete-history", f"{name} is the git history of the workspace"
    elif is_recursive and not (
        effects.created_before(join_path(command.cwd, target), number) or is_build_artifact(canonical)
    ):
        yield "delete-tree", f"it deletes {name} and everything in it"
