"""Measure verdicts on typical commands and on lines of five thousand commands."""

import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from tooling.safety.action_judge import ActionJudge
from tooling.safety.check import judge_command
from tooling.safety.shell.parse import parse

ROUNDS = 40
LONG_ROUNDS = 10
COMMANDS = 5000
WORKSPACE = Path(__file__).resolve().parents[1]
TYPICAL = (
    "git status --short",
    "cd src && grep -rn 'TODO' . | head -20",
    "python3 -m pytest tests/test_a.py -x -q 2>&1 | tail -20",
    'for f in *.md; do wc -l "$f"; done',
    "git add -A && git commit -m 'fix: one thing'",
)
PIPELINE = "a|" * 50_000 + "a"
LINE = ("echo one", "ls -la src", "cat notes.txt | wc -l", "git status", "x=1")


def judge() -> list[BenchResult]:
    """Measure verdicts, excluding the first one, which loads the grammar and the rules."""
    action_judge = ActionJudge()
    long_line = "; ".join(f"{LINE[number % len(LINE)]}" for number in range(COMMANDS))
    distinct = "; ".join(f"touch note{number}.txt" for number in range(COMMANDS))

    def timed(text: str) -> float:
        started = time.perf_counter()
        judge_command(text, workspace=WORKSPACE, judge=action_judge)
        return time.perf_counter() - started

    def parsed() -> float:
        started = time.perf_counter()
        parse(PIPELINE)
        return time.perf_counter() - started

    timed(TYPICAL[0])
    piped, bare = sample_interleaved(LONG_ROUNDS, lambda: timed(PIPELINE), parsed)
    return [
        milliseconds("verdict on a typical command", 1, _samples(ROUNDS, lambda: max(map(timed, TYPICAL)))),
        milliseconds(f"verdict on a line of {COMMANDS} commands", 200, _samples(LONG_ROUNDS, lambda: timed(long_line))),
        milliseconds(
            f"verdict on a line of {COMMANDS} different commands", 400, _samples(LONG_ROUNDS, lambda: timed(distinct))
        ),
        ratio("verdict on a pipeline of 50,000 commands, against parsing it", 3, piped, bare),
    ]


def _samples(rounds: int, measure: Callable[[], float]) -> list[float]:
    return [measure() for _ in range(rounds)]
