"""Measure operations that must scale linearly: long logs, huge outputs, many files and long chains of steps."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agent.sessions.log.event_log import FileLog
from agent.sessions.resume.resume_state import unfinished_run
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.upkeep.export import load_document, render_markdown
from agent.sessions.views.evidence import read_bounded
from bench.measure import BenchResult, ratio, sample_interleaved
from bench.program import AGENT, Home
from bench.resume import RUN, write_interrupted_session

EVENTS = 100_000
TORN_BYTES = 40_000_000
OUTPUT_BYTES = 200_000_000
FILES, FILES_PER_FOLDER = 100_000, 500
STEPS = 1000
ROUNDS = 3


def large_logs() -> list[BenchResult]:
    """Measure reading logs of 100,000 events against parsing their JSON, and a torn line against reading it."""
    with tempfile.TemporaryDirectory() as name:
        folder = SessionStore(_data_dir(Path(name))).open("long")
        write_interrupted_session(folder, events=EVENTS)
        exported, resumed, parsed = sample_interleaved(
            ROUNDS,
            lambda: _processor_time(lambda: render_markdown(load_document(folder))),
            lambda: _processor_time(lambda: unfinished_run(folder.events, RUN, lambda tool: "execute")),
            lambda: _processor_time(lambda: _parse(folder)),
        )
        torn = Path(name, "torn.jsonl")
        repaired, read = sample_interleaved(
            ROUNDS,
            lambda: _repair(torn),
            lambda: _processor_time(_write_torn(torn).read_bytes),
        )
    return [
        ratio("`sessions export` of 100,000 events, against parsing their JSON", 3, exported, parsed),
        ratio("state for `agent resume` of 100,000 events, against parsing their JSON", 3, resumed, parsed),
        ratio("a torn last line of 40 MB removed, against reading the file", 3, repaired, read),
    ]


def large_outputs() -> list[BenchResult]:
    """Measure time and memory of `runs why` on an output of 200 MB against reading it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "output.txt")
        with path.open("wb") as file:
            for _ in range(OUTPUT_BYTES // 1_000_000):
                file.write(b"a line of output of a command ..\n" * 30_303)
        shown, read = sample_interleaved(
            ROUNDS,
            lambda: _processor_time(lambda: _show(path)),
            lambda: _processor_time(path.read_bytes),
        )
        size = len(_show(path)) / 1_000_000
    detail = f"of an output of {OUTPUT_BYTES // 1_000_000} MB"
    return [
        ratio("`runs why` on an output of 200 MB, against reading it", 1, shown, read),
        BenchResult(what="what it keeps of it", measured=size, limit=5, unit="MB", detail=detail),
    ]


def many_files() -> list[BenchResult]:
    """Measure the tool `search_text` in 100,000 files against ripgrep alone."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        root = Path(name, "project")
        for number in range(FILES):
            folder = root / f"d{number // FILES_PER_FOLDER}"
            if number % FILES_PER_FOLDER == 0:
                folder.mkdir(parents=True)
            (folder / f"f{number}.txt").write_text(f"content {number}\n")
        words = ["tools", "call", "search_text", "pattern=content 99999", "-C", str(root)]
        searched, bare = sample_interleaved(
            ROUNDS,
            lambda: home.run([AGENT, *words]).seconds,
            lambda: home.run(["rg", "--hidden", "content 99999", str(root)]).seconds,
        )
    return [ratio("`search_text` in 100,000 files, with the start of the program, against `rg`", 3, searched, bare)]


def chain() -> list[BenchResult]:
    """Measure a chain of steps that take no time: log, saved results and scheduling."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name))
        times = [_run_chain(home, count) for count in (STEPS // 10, STEPS)]
    a_step = (times[1] - times[0]) / (STEPS - STEPS // 10) * 1000
    detail = f"{STEPS} steps of one call each, less the time of {STEPS // 10}"
    return [BenchResult(what="a step in a chain of steps", measured=a_step, limit=10, unit="ms", detail=detail)]


def _run_chain(home: Home, count: int) -> float:
    steps: list[dict[str, object]] = []
    for number in range(count):
        after = [f"s{number - 1}"] if number else []
        steps.append({"id": f"s{number}", "tool": "list_directory", "args": {"path": "."}, "depends_on": after})
    plan = home.folder / "plan.json"
    plan.write_text(json.dumps({"request": "chain", "steps": steps}))
    work = home.folder / "work"
    work.mkdir(exist_ok=True)
    return home.run([AGENT, "run", "--plan", str(plan), "-C", str(work), "--set", f"max_steps={count}", "-q"]).seconds


def _data_dir(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir(mode=0o700)
    return data


def _processor_time(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _parse(folder: SessionFolder) -> None:
    with folder.events.open("rb") as log:
        for line in log:
            json.loads(line)


def _write_torn(path: Path) -> Path:
    path.write_bytes(b'{"v": 1}\n{"v": 1, "type": "warning", "message": "' + b"x" * TORN_BYTES)
    return path


def _repair(path: Path) -> float:
    _write_torn(path)
    return _processor_time(lambda: FileLog(path).close())


def _show(path: Path) -> bytes:
    with path.open("rb") as file:
        return read_bounded(file, path)
