"""Measure a command in the sandbox against the same command outside."""

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from agent.backends.process.environment import clean_environment
from agent.backends.sandbox.runner import build_sandbox_runner
from agent.backends.sandbox.self_test import self_test
from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from tooling.contract.command import CommandRequest

ROUNDS = 150
TEST_ROUNDS = 20
WORDS = ("bash", "-c", "true")


def sandbox() -> list[BenchResult]:
    """Measure `bash -c true` in the sandbox and outside, from the second command on, the first, and the self-test."""
    with tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        folder = Path(name).resolve()
        runner = build_sandbox_runner(workspace=folder, environ=os.environ)
        environment = clean_environment(os.environ)

        def in_sandbox() -> float:
            request = CommandRequest(argv=WORDS, cwd=folder, timeout_s=30)
            started = time.perf_counter()
            assert loop.run(runner.run(request)).exit_code == 0
            return time.perf_counter() - started

        def outside() -> float:
            started = time.perf_counter()
            subprocess.run(
                WORDS, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True
            )
            return time.perf_counter() - started

        def run_self_test() -> float:
            started = time.perf_counter()
            loop.run(self_test(runner))
            return time.perf_counter() - started

        def first_command() -> float:
            loop.run(runner.stop())
            return in_sandbox()

        in_sandbox()
        samples, baselines = sample_interleaved(ROUNDS, in_sandbox, outside)
        (firsts,) = sample_interleaved(TEST_ROUNDS, first_command)
        (tests,) = sample_interleaved(TEST_ROUNDS, run_self_test)
        runner.close()
    return [
        ratio("`bash -c true` in the sandbox against outside, from the second command on", 3.0, samples, baselines),
        milliseconds("first `bash -c true` in a new sandbox", 60, firsts),
        milliseconds("self-test of the sandbox", 50, tests),
    ]
