"""The table of figures in docs/security.md; `python -m tests.docs.security_figures` updates it."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

from agent.backends.sandbox.seccomp import ARCHITECTURES
from agent.backends.sandbox.self_test import ESCAPE_NAMES
from agent.backends.sandbox.types import GIB, ResourceLimits
from tests.house.source_tree import ROOT
from tests.sandbox.probes import ESCAPES
from tests.tooling.tool_harness import TASK, USER
from tooling.contract.action import Action, Decision
from tooling.contract.context import ExecCtx
from tooling.safety.action_judge import ActionJudge
from tooling.safety.secrets.patterns import ANCHORED_PATTERNS, PREFIXED_PATTERNS, TOKEN_PATTERNS
from tooling.safety.shell.rules import load_rules

PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
CORPORA = ROOT / "tests" / "data" / "commands"
# Not below /tmp, which is world-writable; the folder is never created.
_WORKSPACE = Path("/srv/project")
# Encodes a line feed in the corpora, which hold one command per line.
_LINE_FEED = "⏎"
_JUDGE = ActionJudge()


def table() -> str:
    """Return the figures as Markdown."""
    return "\n".join(("| what | figure | where |", "|---|---|---|", *map(_row, (*_rules(), *_corpora(), *_sandbox()))))


def update_table(page: str) -> str:
    """Return the page with its table replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def _rules() -> Iterator[tuple[str, str, str]]:
    rules = load_rules().rules
    examples = sum(len(rule.match) + len(rule.not_match) for rule in rules)
    yield (
        "rules for commands",
        f"{len(rules)}, of which {sum(rule.blocked for rule in rules)} block; {examples} examples",
        "`patterns/`",
    )
    patterns = len(TOKEN_PATTERNS) + len(PREFIXED_PATTERNS) + len(ANCHORED_PATTERNS)
    yield "patterns for secrets", str(patterns), "`tooling/safety/secrets/patterns.py`"


def _corpora() -> Iterator[tuple[str, str, str]]:
    everyday = Counter(_decisions(_lines("everyday.txt")))
    yield (
        f"everyday commands, {everyday.total()}",
        f"{everyday[Decision.ASK]} ask, {everyday[Decision.BLOCK]} blocked",
        "`tests/data/commands/everyday.txt`",
    )
    expected = [line.split("\t", 1) for line in _lines("dangerous.txt")]
    decisions = _decisions(command for _, command in expected)
    dangerous = Counter(decisions)
    wanted = [decision for decision, _ in expected]
    softened = sum(pair[0] == "block" and pair[1] is not Decision.BLOCK for pair in zip(wanted, decisions, strict=True))
    yield (
        f"dangerous commands, {dangerous.total()}",
        f"{dangerous[Decision.ALLOW]} allowed; {dangerous[Decision.ASK]} ask, {dangerous[Decision.BLOCK]} blocked, "
        f"{softened} ask instead of being blocked",
        "`tests/data/commands/dangerous.txt`",
    )


def _sandbox() -> Iterator[tuple[str, str, str]]:
    kinds = Counter(escape.name.partition("/")[0] for escape in ESCAPES)
    yield (
        "escape attempts in the tests",
        f"{len(ESCAPES)}: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}",
        "`tests/sandbox/probes.py`",
    )
    yield "escape attempts in every run", str(len(ESCAPE_NAMES)), "`agent/backends/sandbox/self_test.py`"
    calls = ARCHITECTURES["x86_64"]
    sandboxed = len(calls.denied) + len(calls.absent)
    yield (
        "blocked system calls (x86_64)",
        f"{sandboxed} in bubblewrap, {sandboxed + len(calls.denied_without_namespaces)} with Landlock alone",
        "`agent/backends/sandbox/seccomp.py`",
    )
    limits = ResourceLimits()
    memory, file = (limits.memory_bytes or 0) // GIB, (limits.file_bytes or 0) // GIB
    yield (
        "limits of one command",
        f"{limits.processes} processes, {memory} GiB of memory (or three quarters of the machine's), "
        f"{file} GiB per file, {limits.open_files} open files, "
        f"{limits.scratch_bytes // GIB} GiB each in `/tmp` and home, "
        f"{limits.free_disk_bytes // GIB} GiB of the disk left free",
        "`agent/backends/sandbox/types.py`",
    )


def _lines(name: str) -> list[str]:
    text = (CORPORA / name).read_text("utf-8")
    return [line.replace(_LINE_FEED, "\n") for line in text.split("\n") if line]


def _decisions(commands: Iterable[str]) -> list[Decision]:
    """Judge with an ordinary home: below /tmp, where tests may have theirs, it would be world-writable."""
    ctx = ExecCtx(user_id=USER, task_id=TASK, working_dir=_WORKSPACE)
    actions = (Action(tool="run_command", effect="execute", subject=text, cwd=_WORKSPACE) for text in commands)
    with patch.dict(os.environ, HOME="/home/me"):
        return [_JUDGE.judge(action, ctx).decision for action in actions]


def _row(cells: tuple[str, str, str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(update_table(PAGE.read_text()))
