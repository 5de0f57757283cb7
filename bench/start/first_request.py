"""Measure a run with one request: time to the request, time to exit, CPU time, and possible delays."""

import json
import tempfile
from pathlib import Path

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import Home, ProcessRun
from bench.replies import DIRECT_ANSWER
from tests.provider.replies import Pace
from tests.provider.threaded import ThreadedProvider

ROUNDS = 30
MANY_FILES = 50_000
# Delay of the model's reply: the program imports modules meanwhile, as with every real model.
_THINKING = Pace(head_s=0.2)


def first_request() -> list[BenchResult]:
    """Measure a run with one request against bare scripts that send the same body: with httpx, and without it."""
    runs: dict[str, list[ProcessRun]] = {"agent": [], "httpx": [], "stdlib": []}
    with (
        tempfile.TemporaryDirectory() as name,
        ThreadedProvider(otherwise=DIRECT_ANSWER, pace=_THINKING) as provider,
    ):
        home, body = Home(Path(name), provider), Path(name, "body.json")

        def ours() -> float:
            runs["agent"].append(home.agent_run())
            content = runs["agent"][-1].requests[0].body
            body.write_text(json.dumps(content, separators=(",", ":")))
            return runs["agent"][-1].until_first_request

        def bare(script: str) -> float:
            runs[script].append(home.bare_request(body, script))
            return runs[script][-1].until_first_request

        times = sample_interleaved(ROUNDS, ours, lambda: bare("httpx"), lambda: bare("stdlib"))
    used = {script: [run.cpu_s for run in done[1:]] for script, done in runs.items()}
    ends = {script: [run.after_last_byte for run in done[1:]] for script, done in runs.items()}
    start, cpu, end = "start → first request, `agent run`", "CPU time of a run with one request", "last byte → exit"
    return [
        ratio(f"{start}, against bare Python + httpx", 0.85, times[0], times[1]),
        ratio(f"{start}, against the bare standard library", 3.3, times[0], times[2]),
        ratio(f"{cpu}, against bare Python + httpx", 0.9, used["agent"], used["httpx"]),
        ratio(f"{end}, against bare Python + httpx", 1.5, ends["agent"], ends["httpx"]),
        ratio(f"{end}, against the bare standard library", 1.8, ends["agent"], ends["stdlib"]),
    ]


def many_files() -> list[BenchResult]:
    """Measure the time to the first request in a folder of very many files, against an empty one."""
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=DIRECT_ANSWER) as provider:
        home, full, empty = Home(Path(name), provider), Path(name, "full"), Path(name, "empty")
        empty.mkdir()
        for number in range(MANY_FILES // 100):
            folder = full / f"part-{number}"
            folder.mkdir(parents=True)
            for file in range(100):
                (folder / f"file-{file}.txt").touch()
        samples = sample_interleaved(
            ROUNDS,
            lambda: home.agent_run("-C", str(full)).until_first_request,
            lambda: home.agent_run("-C", str(empty)).until_first_request,
        )
    return [ratio(f"start → first request in a folder of {MANY_FILES} files, against an empty one", 1.1, *samples)]


def mcp_servers() -> list[BenchResult]:
    """Measure the overhead of twenty configured MCP servers for the first request: in time, and in bytes."""
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
            ROUNDS, lambda: measure(with_servers, has_servers=True), lambda: measure(plain, has_servers=False)
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
