"""Load the rule files, and build the canonical text of a command that rules match."""

import json
import re
from collections.abc import Iterator
from dataclasses import field
from functools import cache
from pathlib import Path

from tooling.contract.action import Decision
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import Command, display_word, is_unknown
from tooling.safety.shell.path_access import PathAccess

# `patterns` is next to `tooling` both in a checkout and in an installed wheel.
PATTERNS_DIR = Path(__file__).resolve().parents[3] / "patterns"
# A program name at the start of a pattern, and what may follow it.
_PROGRAM = lazy_pattern(r"((?:[\w+-]|\\[.+])+)(?= |=|\$|$|\(\?[:=!] |\(\?: )")
_AFTER_PROGRAM = (" ", "=", "$", "(?: ", "(?= ", "(?! ")
_BLANK = lazy_pattern(r"\s")
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
class RuleSet:
    """The rules that could be loaded, and problems with the others."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    is_complete: bool = True
    by_program: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    programs: frozenset[str] = frozenset()

    def has_program(self, program: str) -> bool:
        """Return whether a program is listed or has a rule; without a list every program is known."""
        return not self.programs or program in self.programs or program.lower() in self.by_program

    def find_matches(self, text: str, *, chat_type: str = "private") -> list[Rule]:
        """Return the rules that match a canonical command."""
        program = text.partition(" ")[0].partition("=")[0].lower()
        candidates = (*self.by_program.get(program, ()), *self.by_program.get("", ()))
        return [
            rule for rule in candidates if _matches(rule, text) and (chat_type == "group" or not rule.is_group_only)
        ]


def load_rules(folder: Path = PATTERNS_DIR) -> RuleSet:
    """Load all rule files in a folder; a missing or unreadable file makes the set incomplete."""
    files = sorted(folder.glob("*.json"))
    if not files:
        return RuleSet(problems=(f"no rule files in {folder}",), is_complete=False)
    rules: list[Rule] = []
    problems: list[str] = []
    programs: set[str] = set()
    is_complete = True
    for file in files:
        try:
            raw, known = _read_file(file)
        except (OSError, ValueError) as error:
            problems.append(f"{file.name} cannot be read: {error}")
            is_complete = False
            continue
        programs |= known
        for item in raw:
            try:
                rules.append(_parse_rule(item, is_shipped=folder == PATTERNS_DIR))
            except (DecodeError, re.error) as error:
                problems.append(f"{file.name}: a rule was skipped: {error}")
    if not rules and is_complete:
        problems.append(f"no rule in {folder} can be used")
    return RuleSet(
        rules=tuple(rules),
        problems=tuple(problems),
        is_complete=is_complete and bool(rules),
        by_program=_index_by_program(rules),
        programs=frozenset(programs),
    )


def rule_texts(command: Command, access: PathAccess) -> Iterator[str]:
    """Yield the canonical text of a command, without and with each of its redirections.

    The program has no folder, single blanks separate the words, and paths are relative to the workspace if they matter.
    """
    program = strip_version(command.program)
    words = command.words[1:]
    if program in _PATHS_MATTER:
        words = tuple(_relative_to_workspace(program, word, command.cwd, access) for word in words)
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
    """Return a word as rules match it: without blanks, and never mistaken for a redirection."""
    if _OPERATOR.match(word):
        word = "\\" + word
    return _BLANK.sub("\u2423", display_word(word))


def _read_file(file: Path) -> tuple[list[object], set[str]]:
    data: object = json.loads(file.read_text(encoding="utf-8"))
    patterns = data.get("patterns") if isinstance(data, dict) else None
    programs = data.get("programs", []) if isinstance(data, dict) else None
    if not isinstance(patterns, list) or not isinstance(programs, list):
        raise DecodeError("it has no list of patterns")
    return patterns, {program for program in programs if isinstance(program, str)}


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


def _relative_to_workspace(program: str, word: str, cwd: str, access: PathAccess) -> str:
    name, equals, value = word.partition("=")
    if equals and name in ("if", "of"):
        return f"{name}={access.canonical(value, cwd)}"
    is_path = program in _DELETERS or word[:1] in ("/", "~", ".", "*")
    if not word or not is_path or word.startswith("-") or is_unknown(word) or "://" in word:
        return word
    ending = "/" if word.endswith("/") and word.strip("/") else ""
    return access.canonical(word, cwd).rstrip("/") + ending or "/"
