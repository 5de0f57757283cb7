"""Load the rule files, and build the canonical text of a command that rules match."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path

from tooling.contract.action import Decision
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import Command, display_word, is_unknown, program_name
from tooling.safety.shell.path_access import PathAccess

# `patterns` is next to `tooling` both in a checkout and in an installed wheel.
PATTERNS_DIR = Path(__file__).resolve().parents[3] / "patterns"
# A program name at the start of a pattern, and the characters that may follow it.
_PROGRAM = lazy_pattern(r"((?:[\w+-]|\\[.+])+)(?= |=|\$|$|\(\?[:=!] |\(\?: )")
_AFTER_PROGRAM = (" ", "=", "$", "(?: ", "(?= ", "(?! ")
_BLANK = lazy_pattern(r"\s")
_REDIRECTION = lazy_pattern(r" [<>] \S*$")
_OPERATOR = lazy_pattern(r"[<>|&]")
_CROSS_TARGET = lazy_pattern(
    r"(?:[\w]+-)+(?:linux|elf|eabi|mingw32|apple)\w*(?:-\w+)*-(gcc|g\+\+|ld|ar|objdump|strip|nm|clang)|([a-z+]+)-?[\d.]+"
)
_FAMILIES = lazy_pattern(r"(clang|cargo|protoc|dart|flutter)-\w")
_VERSIONED = lazy_pattern(
    r"(python|pypy|pip|node|ruby|perl|php|lua|gcc|clang|go|exim|frida|stunnel|fusermount)[\d.]+"
    r"|(mkfs|nc|iptables|ip6tables)[.-]\w+"
)
# All plain words of these are paths; for other programs only words that look like one are canonicalized.
_DELETERS = frozenset({"rm", "grm", "rmdir", "unlink", "srm", "shred", "rimraf", "trash"})
_PATHS_MATTER = _DELETERS | {
    *("mv", "cp", "ln", "install", "rsync", "tee", "truncate", "chmod", "chown", "chgrp", "chattr", "setfacl", "dd"),
    *("tar", "unzip", "touch", "sed"),
}
# Programs that are told by an assignment where to install.
_INSTALLERS = frozenset({"make", "gmake", "bmake"})
_PREFIXES = frozenset({"DESTDIR", "PREFIX", "prefix"})
# Options in front of a subcommand that take the next word.
_VALUE_OPTIONS = frozenset(
    """
    -A -C -D -F -H -P -R -X -a -c -d -h -j -n -p -t -u -w --app --arch --broker --color --cwd --config --dir --directory
    --endpoints --file --filter --host --job --loglevel --manifest-path --package --path --pattern --port --prefix
    --profile --profiles-dir --project --project-dir --property --repository --state --target-dir --type --workspace
    """.split()  # noqa: SIM905 (a list that is read as words)
)
_NAMES_FILE = lazy_pattern(r".*/.*|\.+|.*\.\w{1,5}")
_HELP = frozenset({"--help", "help", "--version", "version"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A pattern with its consequence, its reason, and examples that tests check."""

    id: str
    pattern: str
    blocked: bool
    category: str
    reason: str
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    group_only: bool = False

    @property
    def is_group_only(self) -> bool:
        """Whether the rule only applies on shared machines."""
        return self.group_only or self.category == "group_only"

    @property
    def decision(self) -> Decision:
        return Decision.BLOCK if self.blocked else Decision.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """A kind of command that some rules do not apply to, unless `forbidden` is found in it."""

    id: str
    pattern: str
    forbidden: str
    exempts: tuple[str, ...]
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    def covers(self, rule: Rule, text: str) -> bool:
        """Return whether a rule does not apply to a canonical command; never for a rule that blocks."""
        if rule.blocked or rule.id not in self.exempts:
            return False
        return _compile(self.pattern).match(text) is not None and _compile(self.forbidden).search(text) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules that could be loaded, and problems with the others."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    is_complete: bool = True
    by_program: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    programs: frozenset[str] = frozenset()
    subcommands: dict[str, frozenset[str]] = field(default_factory=dict)
    exemptions: tuple[Exemption, ...] = ()

    def has_program(self, program: str) -> bool:
        """Return whether a program is listed or has a rule; without a list every program is known."""
        return not self.programs or program in self.programs or program.lower() in self.by_program

    def find_matches(self, text: str, *, chat_type: str = "private") -> list[Rule]:
        """Return the rules that match a canonical command."""
        program = text.partition(" ")[0].partition("=")[0].lower()
        candidates = (*self.by_program.get(program, ()), *self.by_program.get("", ()))
        return [
            rule
            for rule in candidates
            if _matches(rule, text)
            and (chat_type == "group" or not rule.is_group_only)
            and not self._is_exempt(rule, text)
        ]

    def _is_exempt(self, rule: Rule, text: str) -> bool:
        # A redirection is at the end; the rules about its target are never exempt.
        command = _REDIRECTION.sub("", text)
        return any(exemption.covers(rule, command) for exemption in self.exemptions)


def load_rules(folder: Path = PATTERNS_DIR) -> RuleSet:
    """Load all rule files in a folder; a missing or unreadable file makes the set incomplete."""
    files = sorted(folder.glob("*.json"))
    if not files:
        return RuleSet(problems=(f"no rule files in {folder}",), is_complete=False)
    rules: list[Rule] = []
    problems: list[str] = []
    programs: set[str] = set()
    subcommands: dict[str, frozenset[str]] = {}
    exemptions: list[Exemption] = []
    is_complete = True
    for file in files:
        try:
            raw, known, listed, exempt = _read_file(file)
        except (OSError, ValueError) as error:
            problems.append(f"{file.name} cannot be read: {error}")
            is_complete = False
            continue
        programs |= known
        subcommands |= listed
        for item in raw:
            try:
                rules.append(_parse_rule(item, is_shipped=folder == PATTERNS_DIR))
            except (DecodeError, re.error) as error:
                problems.append(f"{file.name}: a rule was skipped: {error}")
        for item in exempt:
            try:
                exemptions.append(_parse_exemption(item))
            except (DecodeError, re.error) as error:
                problems.append(f"{file.name}: an exemption was skipped: {error}")
    if not rules and is_complete:
        problems.append(f"no rule in {folder} can be used")
    return RuleSet(
        rules=tuple(rules),
        problems=tuple(problems),
        is_complete=is_complete and bool(rules),
        by_program=_index_by_program(rules),
        programs=frozenset(programs),
        subcommands=subcommands,
        exemptions=tuple(exemptions),
    )


def rule_texts(command: Command, access: PathAccess) -> Iterator[str]:
    """Yield the canonical text of a command, without and with each of its redirections.

    The program has no folder, single blanks separate the words, and paths are relative to the workspace if they matter.
    """
    program = strip_version(command.program)
    words = command.words[1:]
    if program in _PATHS_MATTER:
        words = tuple(_relative_to_workspace(program, word, command.cwd, access) for word in words)
    elif program in _INSTALLERS:
        words = tuple(_prefix_in_workspace(word, command.cwd, access) for word in words)
    text = " ".join((program, *map(rule_word, words)))
    if text:
        yield text
    for redirect in command.redirects:
        target = rule_word(access.canonical(redirect.target, command.cwd))
        yield f"{text} {'>' if redirect.writes else '<'} {target}".lstrip()


def strip_version(program: str) -> str:
    """Return a program's name without version or variant where rules cover all of them: `python3.11`, `mkfs.ext4`."""
    match = _VERSIONED.fullmatch(program)
    return (match[1] or match[2]) if match else program


def base_program(program: str) -> str:
    """Return the name of a program without version or target machine: `arm-linux-gnueabi-gcc`."""
    match = _CROSS_TARGET.fullmatch(program) or _FAMILIES.match(program)
    return next(group for group in match.groups() if group) if match else program


def rule_word(word: str) -> str:
    """Return a word in the form that rules match: without blanks, and never mistaken for a redirection."""
    if _OPERATOR.match(word):
        word = "\\" + word
    return _BLANK.sub("\u2423", display_word(word))


def unknown_subcommand(words: tuple[str, ...], known: Mapping[str, frozenset[str]]) -> str:
    """Return the unknown subcommand of a listed program, or an empty string."""
    program = strip_version(program_name(words))
    expected = known.get(program)
    if expected is None or not _HELP.isdisjoint(words):
        return ""
    name, at = program, 1
    while expected is not None:
        at = _next_plain(words, at, expected)
        word = words[at].lower() if at < len(words) else ""
        if not word or is_unknown(word):
            return ""
        if word not in expected:
            return "" if _NAMES_FILE.fullmatch(word) and not _has_dots(expected) else word
        name, at = f"{name} {word}", at + 1
        expected = known.get(name)
    return ""


def _has_dots(expected: frozenset[str]) -> bool:
    """Return whether subcommands look like file names, as `mix deps.get`."""
    return any("." in word for word in expected)


def _next_plain(words: tuple[str, ...], at: int, expected: frozenset[str]) -> int:
    """Return the position of the next word that is neither an option nor the value of one."""
    while at < len(words) and (words[at][:1] in ("-", "+", "@") or words[at] == ""):
        value = words[at + 1] if at + 1 < len(words) else "-"
        at += 2 if words[at] in _VALUE_OPTIONS and value[:1] != "-" and value not in expected else 1
    return at


def _read_file(file: Path) -> tuple[list[object], set[str], dict[str, frozenset[str]], list[object]]:
    data: object = json.loads(file.read_text(encoding="utf-8"))
    content = data if isinstance(data, dict) else {}
    patterns, programs, subcommands, exemptions = (
        content.get("patterns"),
        content.get("programs", []),
        content.get("subcommands", {}),
        content.get("exemptions", []),
    )
    if not (isinstance(patterns, list) and isinstance(programs, list) and isinstance(subcommands, dict)):
        raise DecodeError("it has no list of patterns")
    if not isinstance(exemptions, list):
        raise DecodeError("its exemptions are no list")
    listed = {name: frozenset(str(words).split()) for name, words in subcommands.items()}
    return patterns, {program for program in programs if isinstance(program, str)}, listed, exemptions


def _parse_exemption(item: object) -> Exemption:
    exemption = decode(Exemption, item, extra="ignore")
    if not exemption.exempts or not exemption.forbidden:
        raise DecodeError(f"{exemption.id} exempts nothing or forbids nothing")
    return exemption


def _parse_rule(item: object, *, is_shipped: bool) -> Rule:
    rule = decode(Rule, item, extra="ignore")
    if not is_shipped:
        _compile(rule.pattern)
    return rule


def _matches(rule: Rule, text: str) -> bool:
    try:
        return _compile(rule.pattern).search(text) is not None
    except re.error:
        # Shipped rules are compiled on first use; a broken one counts as a match.
        return True


@cache
def _compile(pattern: str) -> "re.Pattern[str]":
    return re.compile(pattern, re.IGNORECASE)


def _leading_programs(pattern: str) -> tuple[str, ...]:
    """Return the programs a pattern starts with, so that it is only tried on those; none means all."""
    names: list[str] = []
    for branch in _split_alternatives(pattern):
        if not branch.startswith("^"):
            return ()
        group = _leading_group(branch[1:])
        inside, after = (branch[4 : len(group)], branch[len(group) + 1 :]) if group else (branch[1:], "")
        for choice in _split_alternatives(inside):
            name = _PROGRAM.match(choice)
            if name is None or (name.end() == len(choice) and after and not after.startswith(_AFTER_PROGRAM)):
                return ()
            names.append(name[1].replace("\\", "").lower())
    return tuple(dict.fromkeys(names))


def _split_alternatives(pattern: str) -> list[str]:
    """Split a pattern at `|` outside groups and sets."""
    branches, depth, start, in_set, is_escaped = [], 0, 0, False, False
    for at, char in enumerate(pattern):
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = True
        elif in_set:
            in_set = char != "]"
        elif char == "[":
            in_set = True
        elif char == "|" and depth == 0:
            branches.append(pattern[start:at])
            start = at + 1
        else:
            depth += (char == "(") - (char == ")")
    return [*branches, pattern[start:]]


def _leading_group(text: str) -> str:
    """Return the group at the start of a text, or an empty string."""
    if not text.startswith("(?:"):
        return ""
    end = next(
        (at for at in range(3, len(text)) if text[at] == ")" and len(_split_alternatives(text[: at + 1] + "|")) > 1), 0
    )
    return text[: end + 1]


def _index_by_program(rules: list[Rule]) -> dict[str, tuple[Rule, ...]]:
    index: dict[str, list[Rule]] = {}
    for rule in rules:
        for program in _leading_programs(rule.pattern) or ("",):
            index.setdefault(program, []).append(rule)
    return {program: tuple(items) for program, items in index.items()}


def _prefix_in_workspace(word: str, cwd: str, access: PathAccess) -> str:
    name, _, value = word.partition("=")
    return f"{name}={access.canonical(value, cwd)}" if name in _PREFIXES and value and not is_unknown(value) else word


def _relative_to_workspace(program: str, word: str, cwd: str, access: PathAccess) -> str:
    name, equals, value = word.partition("=")
    if equals and name in ("if", "of"):
        return f"{name}={access.canonical(value, cwd)}"
    is_path = program in _DELETERS or word[:1] in ("/", "~", ".", "*")
    if not word or not is_path or word.startswith("-") or is_unknown(word) or "://" in word:
        return word
    ending = "/" if word.endswith("/") and word.strip("/") else ""
    return access.canonical(word, cwd).rstrip("/") + ending or "/"
