"""The rule files: what to block and what to ask about, matched on one canonical command at a time."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tooling.contract.action import Decision
from tooling.contract.shape import JsonObject, ShapeError, decode

# In a checkout and in an installed wheel alike, `patterns` lies beside `tooling`.
PATTERNS_DIR = Path(__file__).resolve().parents[2] / "patterns"


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
    def decision(self) -> Decision:
        """Return what a match means."""
        return Decision.BLOCK if self.blocked else Decision.ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """The rules that could be read, and what is wrong with the others."""

    rules: tuple[tuple[Rule, "re.Pattern[str]"], ...] = ()
    problems: tuple[str, ...] = ()
    is_complete: bool = True

    def hits(self, command: str, *, chat_type: str = "private") -> list[Rule]:
        """Return the rules that match a canonical command."""
        return [
            rule
            for rule, regex in self.rules
            if (not rule.group_only or chat_type == "group") and regex.search(command)
        ]


def load_rules(folder: Path = PATTERNS_DIR) -> RuleBook:
    """Read every rule file of a folder; a missing or broken one leaves the book incomplete."""
    files = sorted(folder.glob("*.json"))
    if not files:
        return RuleBook(problems=(f"no rule files in {folder}",), is_complete=False)
    rules: list[tuple[Rule, re.Pattern[str]]] = []
    problems: list[str] = []
    is_complete = True
    for file in files:
        try:
            raw = _patterns(file)
        except (OSError, ValueError) as error:
            problems.append(f"{file.name} cannot be read: {error}")
            is_complete = False
            continue
        for item in raw:
            try:
                rules.append(_compiled(item))
            except (ShapeError, re.error) as error:
                problems.append(f"{file.name}: a rule was skipped: {error}")
    return RuleBook(rules=tuple(rules), problems=tuple(problems), is_complete=is_complete and bool(rules))


def _patterns(file: Path) -> list[object]:
    data: object = json.loads(file.read_text(encoding="utf-8"))
    patterns = data.get("patterns") if isinstance(data, dict) else None
    if not isinstance(patterns, list):
        raise ShapeError("it has no list of patterns")
    return patterns


def _compiled(item: object) -> tuple[Rule, "re.Pattern[str]"]:
    raw: JsonObject | object = item
    rule = decode(Rule, raw, extra="ignore")
    return rule, re.compile(rule.pattern, re.IGNORECASE)
