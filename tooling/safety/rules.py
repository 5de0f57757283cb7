"""The rule files: what to block and what to ask about, matched on one canonical command at a time."""

import json
import re
from dataclasses import field
from functools import cache
from pathlib import Path

from tooling.contract.action import Decision
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode

# In a checkout and in an installed wheel alike, `patterns` lies beside `tooling`.
PATTERNS_DIR = Path(__file__).resolve().parents[2] / "patterns"
# A program at the head of a pattern, and what may follow it there.
_NAME = re.compile(r"((?:[\w+-]|\\[.+])+)(?= |=|\$|$|\(\?[:=!] |\(\?: )")
_AFTER = (" ", "=", "$", "(?: ", "(?= ", "(?! ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One pattern with its consequence, its reason and the examples that prove it."""

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
        """Say whether the rule only holds on shared machines."""
        return self.group_only or self.category == "group_only"

    @property
    def decision(self) -> Decision:
        """Return what a match means."""
        return Decision.BLOCK if self.blocked else Decision.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules that could be read, and what is wrong with the others."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    is_complete: bool = True
    by_program: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    programs: frozenset[str] = frozenset()

    def has_program(self, program: str) -> bool:
        """Say whether anybody has judged a program by its name; without a list of programs none is unfamiliar."""
        return not self.programs or program in self.programs or program.lower() in self.by_program

    def find_matches(self, text: str, *, chat_type: str = "private") -> list[Rule]:
        """Return the rules that match a canonical command."""
        program = text.partition(" ")[0].partition("=")[0].lower()
        candidates = (*self.by_program.get(program, ()), *self.by_program.get("", ()))
        return [
            rule for rule in candidates if _matches(rule, text) and (chat_type == "group" or not rule.is_group_only)
        ]


def load_rules(folder: Path = PATTERNS_DIR) -> RuleSet:
    """Read every rule file of a folder; a missing or broken one leaves the book incomplete."""
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
                rules.append(_parse_rule(item, is_ours=folder == PATTERNS_DIR))
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


def _read_file(file: Path) -> tuple[list[object], set[str]]:
    data: object = json.loads(file.read_text(encoding="utf-8"))
    patterns = data.get("patterns") if isinstance(data, dict) else None
    programs = data.get("programs", []) if isinstance(data, dict) else None
    if not isinstance(patterns, list) or not isinstance(programs, list):
        raise DecodeError("it has no list of patterns")
    return patterns, {program for program in programs if isinstance(program, str)}


def _parse_rule(item: object, *, is_ours: bool) -> Rule:
    rule = decode(Rule, item, extra="ignore")
    if not is_ours:
        _compile(rule.pattern)
    return rule


def _matches(rule: Rule, text: str) -> bool:
    try:
        return _compile(rule.pattern).search(text) is not None
    except re.error:
        # Our own rules are compiled when they are needed; one that somebody broke counts as if it matched.
        return True


@cache
def _compile(pattern: str) -> "re.Pattern[str]":
    return re.compile(pattern, re.IGNORECASE)


def _leading_programs(pattern: str) -> tuple[str, ...]:
    """Return the programs that a pattern names at its head, so that it is only tried on theirs; none means all."""
    names: list[str] = []
    for branch in _split_alternatives(pattern):
        if not branch.startswith("^"):
            return ()
        group = _leading_group(branch[1:])
        inside, after = (branch[4 : len(group)], branch[len(group) + 1 :]) if group else (branch[1:], "")
        for choice in _split_alternatives(inside):
            name = _NAME.match(choice)
            if name is None or (name.end() == len(choice) and after and not after.startswith(_AFTER)):
                return ()
            names.append(name[1].replace("\\", "").lower())
    return tuple(dict.fromkeys(names))


def _split_alternatives(pattern: str) -> list[str]:
    """Split a pattern at the bars that stand in no group and no set."""
    branches, depth, begin, is_set, is_escaped = [], 0, 0, False, False
    for at, char in enumerate(pattern):
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = True
        elif is_set:
            is_set = char != "]"
        elif char == "[":
            is_set = True
        elif char == "|" and depth == 0:
            branches.append(pattern[begin:at])
            begin = at + 1
        else:
            depth += (char == "(") - (char == ")")
    return [*branches, pattern[begin:]]


def _leading_group(text: str) -> str:
    """Return the group that a text begins with, or nothing."""
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
