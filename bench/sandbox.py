"""What the box costs: a command in it against the same command without."""

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
    """Measure `bash -c true` in the box against plain, and the self-test at the start of a run."""
    with tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        folder = Path(name).resolve()
        boxed = build_sandbox_runner(workspace=folder, environ=os.environ)
        environment = clean_environment(os.environ)

        def in_box() -> float:
            request = CommandRequest(argv=WORDS, cwd=folder, timeout_s=30)
            began = time.perf_counter()
            assert loop.run(boxed.run(request)).exit_code == 0
            return time.perf_counter() - began

        def plain() -> float:
            began = time.perf_counter()
            subprocess.run(
                WORDS, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True
            )
            return time.perf_counter() - began

        def tested() -> float:
            began = time.perf_counter()
            loop.run(self_test(boxed))
            return time.perf_counter() - began

        samples, floors = sample_interleaved(ROUNDS, in_box, plain)
        (tests,) = sample_interleaved(TEST_ROUNDS, tested)
        boxed.close()
    return [
        ratio("`bash -c true` in the box against plain", 5.0, samples, floors),
        milliseconds("self-test of the box", 50, tests),
    ]
