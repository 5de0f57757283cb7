"""Measure startup and exit: `--version`, `--help`, completion, time to the first request, time to exit."""

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
    """Measure `agent --version` against an idle interpreter."""
    return [_compare_to_bare_python("`agent --version` against `python -c pass`", 2.0, "--version")]


def help_page() -> list[BenchResult]:
    """Measure `agent --help` against an idle interpreter, and count the heavy libraries it loads."""
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


def first_request() -> list[BenchResult]:
    """Measure the time to the first request against a bare script that sends the same body, and the time to exit."""
    runs: list[ProcessRun] = []
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DIRECT_ANSWER) as provider:
        home, body = Home(Path(name), provider), Path(name, "body.json")

        def ours() -> float:
            runs.append(home.agent_run())
            return runs[-1].until_first_request

        def baseline() -> float:
            body.write_text(json.dumps(runs[-1].requests[0].body, separators=(",", ":")))
            return home.bare_request(body).until_first_request

        samples, baselines = sample_interleaved(REQUEST_ROUNDS, ours, baseline)
    return [
        ratio("start → first request, `agent run`, against bare Python + httpx", 1.6, samples, baselines),
        milliseconds("last byte of the last reply → process exit", 60, [run.after_last_byte for run in runs[1:]]),
    ]


def mcp_servers() -> list[BenchResult]:
    """Measure what twenty configured MCP servers add to the first request: in time, and in bytes of its body."""
    entry = {"command": "no-such-server", "args": ["--verbose"], "env": {"TOKEN": "${NONE}"}}
    servers = {"mcpServers": {f"server-{number}": entry for number in range(20)}}
    plain: list[ProcessRun] = []
    with_servers: list[ProcessRun] = []
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DIRECT_ANSWER) as provider:
        home = Home(Path(name), provider)
        file = Path(name, ".config", "agent", "mcp.json")
        file.parent.mkdir(parents=True)

        def measure(runs: list[ProcessRun], *, has_servers: bool) -> float:
            file.unlink(missing_ok=True)
            if has_servers:
                file.write_text(json.dumps(servers))
            runs.append(home.agent_run())
            return runs[-1].until_first_request

        samples, baselines = sample_interleaved(
            REQUEST_ROUNDS, lambda: measure(with_servers, has_servers=True), lambda: measure(plain, has_servers=False)
        )
    added = [ours - theirs for ours, theirs in zip(sorted(samples), sorted(baselines), strict=True)]
    sizes = [len(json.dumps(runs[-1].requests[0].body)) for runs in (with_servers, plain)]
    return [
        milliseconds("20 configured MCP servers: added to the first request", 20, added),
        BenchResult(
            what="20 configured MCP servers: added to its body",
            measured=sizes[0] - sizes[1],
            limit=0,
            unit="",
            detail="bytes, if the request names none of them",
        ),
    ]


def _compare_to_bare_python(what: str, limit: float, flag: str) -> BenchResult:
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        samples, baselines = sample_interleaved(
            ROUNDS, lambda: home.run([AGENT, flag]).seconds, lambda: home.run([PYTHON, "-c", "pass"]).seconds
        )
    return ratio(what, limit, samples, baselines)
