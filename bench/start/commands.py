"""Measure the commands that answer at once: `--version`, `--help`, completion in a shell."""

import tempfile
from pathlib import Path

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import AGENT, PYTHON, Home
from tests.house.program import run_agent

ROUNDS = 40
HEAVY = ("litellm", "pydantic", "httpx", "prompt_toolkit", "trafilatura")


def version() -> list[BenchResult]:
    """Measure `agent --version` against an idle interpreter."""
    return [_compare_to_bare_python(1.3, "--version")]


def help_page() -> list[BenchResult]:
    """Measure `agent --help` and `agent run --help` against an idle interpreter; count the heavy libraries loaded."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = [name for name in HEAVY if name in run_agent(Path(folder), "--help").loaded_modules]
    detail = ", ".join(loaded) or f"none of {', '.join(HEAVY)}"
    return [
        _compare_to_bare_python(4.0, "--help"),
        _compare_to_bare_python(8.0, "run", "--help"),
        BenchResult(
            what="heavy libraries loaded by `agent --help`", measured=len(loaded), limit=0, unit="", detail=detail
        ),
    ]


def completion() -> list[BenchResult]:
    """Measure completion in a shell: for the command with the most flags, and for one that reads sessions."""
    lines = (("run", "--model", ""), ("sessions", "show", ""))
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        samples_by_line = [
            sample_interleaved(ROUNDS // 2, lambda words=words: home.run([AGENT, "__complete", "zsh", *words]).seconds)[
                0
            ]
            for words in lines
        ]
    return [
        milliseconds(f"completion after `agent {' '.join(words).strip()}`", 300, samples)
        for words, samples in zip(lines, samples_by_line, strict=True)
    ]


def _compare_to_bare_python(limit: float, *words: str) -> BenchResult:
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        samples, baselines = sample_interleaved(
            ROUNDS, lambda: home.run([AGENT, *words]).seconds, lambda: home.run([PYTHON, "-c", "pass"]).seconds
        )
    return ratio(f"`agent {' '.join(words)}` against `python -c pass`", limit, samples, baselines)
