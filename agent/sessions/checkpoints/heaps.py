"""Folders excluded from checkpoints: git data, caches, environments, and folders in `.gitignore`."""

import re
from collections.abc import Collection, Iterable

from tooling.contract.fast_dataclass import dataclass
from tooling.tools.walk import glob_regex

HEAP_NAMES = frozenset({".git", "node_modules", "__pycache__", ".venv", ".tox", ".nox"})
# Files that mark the folder around them as an environment or a cache: https://bford.info/cachedir/
HEAP_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
IGNORE_FILE = ".gitignore"
MAX_IGNORE_BYTES = 64_000
_MAX_PATTERNS = 500
# A pattern with many wildcards can take very long to match.
_MAX_WILDCARDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRule:
    """One pattern of a `.gitignore`; a negated one cancels an earlier match."""

    pattern: re.Pattern[str]
    is_negated: bool

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path relative to the folder of its file."""
        return self.pattern.match(path) is not None


def parse_ignore_file(text: str) -> tuple[IgnoreRule, ...]:
    """Parse a `.gitignore`; patterns that are too complex are skipped, so that their folders are saved."""
    lines = (line.rstrip() for line in text.splitlines())
    return tuple(rule for line in list(lines)[:_MAX_PATTERNS] if (rule := _parse_rule(line)))


def _parse_rule(line: str) -> IgnoreRule | None:
    if not line or line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    pattern = line.removeprefix("!").removeprefix("\\").rstrip("/")
    if not pattern or pattern.count("*") > _MAX_WILDCARDS:
        return None
    try:
        return IgnoreRule(pattern=glob_regex(pattern), is_negated=is_negated)
    except re.error:
        return None


def is_heap(folder: str, rules: Iterable[tuple[str, Collection[IgnoreRule]]]) -> bool:
    """Whether a folder is excluded; `rules` has the ignore files above it, each with its folder, outermost first."""
    if folder.rpartition("/")[2] in HEAP_NAMES:
        return True
    is_ignored = False
    for base, parsed in rules:
        path = folder[len(base) + 1 :] if base else folder
        for rule in parsed:
            if rule.matches(path):
                is_ignored = not rule.is_negated
    return is_ignored
