"""While a process keeps swapping a folder for a link to the outside, no tool reads or writes there."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import tooling.files.openat2
from tests.tooling.tool_harness import ToolHarness
from tooling.contract.result import ToolError
from tooling.files.resolve import open_to_read
from tooling.files.workspace_files import WorkspaceFiles
from tooling.files.workspace_paths import PathRefused, readable_path
from tooling.tools.line_search import Search, search_by_walking
from tooling.tools.walk import walk_files

pytestmark = pytest.mark.slow

# Check-then-open (last test) is caught in far less than a second; the maximum is for busy machines.
MIN_SECONDS, MAX_SECONDS = 1.0, 60.0
INSIDE, OUTSIDE = "inside\n", "OUTSIDE SECRET\n"
# RENAME_EXCHANGE: `d` always exists, alternately a folder and a link.
SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None)
here, other = sys.argv[1].encode(), sys.argv[2].encode()
print("ready", flush=True)
while True:
    if libc.syscall(316 if sys.argv[3] == "x86_64" else 276, -100, here, -100, other, 2) != 0:
        raise SystemExit("renameat2 failed")
"""


@pytest.fixture(params=["openat2", "walk"])
def harness(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolHarness:
    if request.param == "walk":
        monkeypatch.setattr(tooling.files.openat2, "openat2", lambda: None)
    return ToolHarness(tmp_path)


@pytest.fixture
def outside(harness: ToolHarness, tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    for base in (folder, harness.root / "d"):
        (base / "sub").mkdir(parents=True)
        for name in ("a.txt", "sub/b.txt"):
            (base / name).write_text(OUTSIDE if base == folder else INSIDE)
    return folder


@pytest.fixture
def swapping(harness: ToolHarness, outside: Path) -> Iterator[None]:
    """Keep swapping `d` for a link to the outside while a test runs."""
    link = harness.root / ".swap"
    link.symlink_to(outside)
    machine = platform.machine()
    argv = [sys.executable, "-c", SWAPPER, str(harness.root / "d"), str(link), machine]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        assert process.poll() is None, "the swapping process died"
        process.kill()


def race_iterations(is_enough: Callable[[], bool]) -> Iterator[int]:
    """Yield numbers for MIN_SECONDS, and then until `is_enough` or MAX_SECONDS."""
    start = time.monotonic()
    for number in count(1):
        if (elapsed := time.monotonic() - start) > MAX_SECONDS or (elapsed > MIN_SECONDS and is_enough()):
            return
        yield number


def snapshot(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def test_no_tool_reads_or_writes_outside(harness: ToolHarness, outside: Path, swapping: None) -> None:
    before = snapshot(outside)
    done = {"read": 0, "written": 0, "listed": 0, "refused": 0}

    def was_a_race() -> bool:
        """Whether every outcome happened often enough."""
        return min(done.values()) > 10 and sum(done.values()) > 500

    for number in race_iterations(was_a_race):
        for tool, args in (
            ("read_file", {"path": "d/a.txt"}),
            ("read_file", {"path": "d/sub/b.txt"}),
            ("write_file", {"path": f"d/sub/new{number % 50}.txt", "content": "x"}),
            ("write_file", {"path": f"d/made{number % 50}/x.txt", "content": "x"}),
            ("edit_file", {"path": "d/a.txt", "old_text": "inside", "new_text": "inside "}),
            ("list_directory", {"path": "d/sub"}),
        ):
            result = await harness.call(tool, **args)
            assert "OUTSIDE" not in result.content
            kind = {"read_file": "read", "list_directory": "listed"}.get(tool, "written")
            done[kind if result.is_ok else "refused"] += 1
        with suppress(ToolError):
            assert await WorkspaceFiles(harness.ctx()).read_text("d/sub/b.txt") == INSIDE
    assert snapshot(outside) == before
    assert was_a_race(), done


async def test_searching_without_ripgrep_stays_inside(harness: ToolHarness, outside: Path, swapping: None) -> None:
    search = Search(pattern="i", glob=None, ignore_case=True, context=0, deadline=time.monotonic() + 60)
    found: list[int] = []
    for _ in race_iterations(lambda: len(found) > 20 and any(found)):
        lines, _ = search_by_walking(".", harness.ctx(), search)
        assert not any("OUTSIDE" in line.text for line in lines)
        found.append(len(lines))
        root, _ = open_to_read(".", harness.ctx(), os.O_RDONLY)
        assert sum(1 for _ in walk_files(root, deadline=search.deadline)) <= 4
        os.close(root)
    assert len(found) > 20 and any(found)


async def test_check_then_open_is_caught_by_the_race(harness: ToolHarness, outside: Path, swapping: None) -> None:
    """Prove that the race is real."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if readable_path("d/a.txt", harness.ctx()).read_text() == OUTSIDE:
                return
        except (PathRefused, OSError):
            continue
    raise AssertionError("no swap ever happened between check and open")
