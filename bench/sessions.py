"""Measure listing and searching thousands of past sessions."""

import os
import tempfile
from pathlib import Path

from bench.measure import BenchResult, milliseconds, sample_interleaved
from bench.program import AGENT, Home
from tests.agent.sessions.past_runs import completed_run, write_run

COUNT = 10_000
ROUNDS = 10
_FIRST = "20250101-000000-000000"
_STARTED_AT = 1_735_689_600


def sessions() -> list[BenchResult]:
    """Measure `agent sessions list` and a search through every session, including process start."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        write_sessions(Path(name) / "data", COUNT)
        listed, searched = sample_interleaved(
            ROUNDS,
            lambda: home.run([AGENT, "sessions", "list"]).seconds,
            lambda: home.run([AGENT, "sessions", "search", "answer 000000"]).seconds,
        )
    many = f"{COUNT} sessions"
    return [
        milliseconds(f"`agent sessions list` with {many}", 500, listed),
        milliseconds(f"`agent sessions search` with {many}", 1500, searched),
    ]


def write_sessions(data: Path, count: int) -> None:
    """Write sessions as runs leave them: one real session, and copies with other ids of the same length."""
    first = write_run(data, _FIRST, completed_run("count the lines " * 4, "answer 000000 " * 20), mtime=_STARTED_AT)
    files = {path.name: path.read_bytes() for path in (first.events, first.summary)}
    for number in range(1, count):
        session = f"20250101-000000-{number:06d}"
        root = first.root.with_name(session)
        for folder in (root, root / "outputs", root / "workspace"):
            folder.mkdir(mode=0o700)
        for name, data_of_first in files.items():
            own = data_of_first.replace(_FIRST.encode(), session.encode())
            (root / name).write_bytes(own.replace(b"answer 000000", f"answer {number:06d}".encode()))
            os.utime(root / name, (_STARTED_AT + number, _STARTED_AT + number))
