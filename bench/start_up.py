"""How soon the program is there and how soon it is gone: `--version`, `--help`, Tab, the first request, the exit."""

import json
import tempfile
from pathlib import Path

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import AGENT, PYTHON, Home, ProcessRun
from bench.replies import DIRECT_ANSWER
from tests.house.program import run_agent
from tests.provider.threaded import ThreadedProvider

ROUNDS = 40
REQUEST_ROUNDS = 30
HEAVY = ("litellm", "pydantic", "httpx", "prompt_toolkit", "trafilatura")


def version() -> list[BenchResult]:
    """Measure `agent --version` against an interpreter that does nothing."""
    return [_compare_to_bare_python("`agent --version` against `python -c pass`", 2.0, "--version")]


def help_page() -> list[BenchResult]:
    """Measure `agent --help` against an interpreter that does nothing, and look for what it may not load."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = [name for name in HEAVY if name in run_agent(Path(folder), "--help").loaded_modules]
    detail = ", ".join(loaded) or f"none of {', '.join(HEAVY)}"
    return [
        _compare_to_bare_python("`agent --help` against `python -c pass`", 8.0, "--help"),
        BenchResult(
            what="heavy libraries loaded by `agent --help`", measured=len(loaded), limit=0, unit="", detail=detail
        ),
    ]


def completion() -> list[BenchResult]:
    """Measure one Tab in a shell: behind the command with the most flags, and behind one that looks into sessions."""
    lines = (("run", "--model", ""), ("sessions", "show", ""))
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        taken = [
            sample_interleaved(ROUNDS // 2, lambda words=words: home.run([AGENT, "__complete", "zsh", *words]).seconds)[
                0
            ]
            for words in lines
        ]
    return [
        milliseconds(f"Tab behind `agent {' '.join(words).strip()}`", 300, samples)
        for words, samples in zip(lines, taken, strict=True)
    ]


def first_request() -> list[BenchResult]:
    """Measure start to first request against the bare script sending the same body, and last byte to exit."""
    runs: list[ProcessRun] = []
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DIRECT_ANSWER) as provider:
        home, body = Home(Path(name), provider), Path(name, "body.json")

        def ours() -> float:
            runs.append(home.agent_run())
            return runs[-1].until_first_request

        def floor() -> float:
            body.write_text(json.dumps(runs[-1].requests[0].body, separators=(",", ":")))
            return home.bare_request(body).until_first_request

        samples, floors = sample_interleaved(REQUEST_ROUNDS, ours, floor)
    return [
        ratio("start → first request, `agent run`, against bare Python + httpx", 1.6, samples, floors),
        milliseconds("last byte of the last reply → process exit", 60, [run.after_last_byte for run in runs[1:]]),
    ]


def _compare_to_bare_python(what: str, limit: float, flag: str) -> BenchResult:
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        samples, floors = sample_interleaved(
            ROUNDS, lambda: home.run([AGENT, flag]).seconds, lambda: home.run([PYTHON, "-c", "pass"]).seconds
        )
    return ratio(what, limit, samples, floors)
