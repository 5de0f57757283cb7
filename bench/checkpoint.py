"""Measure the checkpoint of a project with 5,000 files: the initial save, and the scans around each command."""

import tempfile
import time
from pathlib import Path

from agent.sessions.checkpoints.command_window import Workspace
from agent.sessions.checkpoints.keeper import CheckpointKeeper
from bench.measure import BenchResult, milliseconds
from tooling.contract.secrets import NoSecrets

FILES, FOLDERS = 5000, 500
SAVES = 5
LOOKS = 40


def checkpoint() -> list[BenchResult]:
    """Measure CPU time of the initial save, which happens while the model responds, and the delay of a command."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        workspace = Workspace(cwd=root / "ws", folder=root / "checkpoint", blobs=root / "blobs", run_id="run")
        for number in range(FILES):
            path = workspace.cwd / f"d{number % FOLDERS}" / f"{number}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {number}\n" * 500)
        saves = [_save(workspace) for _ in range(SAVES)]
        keeper = CheckpointKeeper.create(workspace, NoSecrets())
        unchanged = [_look(keeper) for _ in range(LOOKS)]
        changed = [_change_and_look(keeper, workspace.cwd / "d1" / "1.py", number) for number in range(LOOKS)]
        resumed = [_pause_and_resume(keeper, workspace) for _ in range(LOOKS)]
        keeper.close()
    return [
        milliseconds(f"save {FILES} files (processor time)", 400, saves),
        milliseconds("next request at the prompt, nothing changed", 2, resumed),
        milliseconds("look after a command that changed nothing", 2, unchanged),
        milliseconds("look after a command that changed a file", 20, changed),
    ]


def _save(workspace: Workspace) -> float:
    started = time.process_time()
    CheckpointKeeper.create(workspace, NoSecrets()).close()
    return time.process_time() - started


def _pause_and_resume(keeper: CheckpointKeeper, workspace: Workspace) -> float:
    started = time.perf_counter()
    keeper.pause()
    assert keeper.resume(workspace)
    return time.perf_counter() - started


def _look(keeper: CheckpointKeeper) -> float:
    started = time.perf_counter()
    keeper.commit(keeper.look())
    return time.perf_counter() - started


def _change_and_look(keeper: CheckpointKeeper, path: Path, number: int) -> float:
    path.write_text(f"{number}\n")
    started = time.perf_counter()
    found = keeper.look()
    keeper.record(found)
    keeper.commit(found)
    return time.perf_counter() - started
