"""The folder of a pool: secrets, claims of warm workspaces, and managers that were killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.service.containers.pool_folder import PoolFolder
from agent.service.workspaces.layout import WorkspaceStore
from agent.vocabulary.errors import AgentError
from tests.house.source_tree import ROOT


@pytest.fixture
def store(tmp_path: Path) -> WorkspaceStore:
    return WorkspaceStore(tmp_path / "root")


def test_secrets_are_readable_by_their_owner_only_and_soon_gone(store: WorkspaceStore) -> None:
    folder = PoolFolder(store, None)
    folders = folder.folders("exec-1", None)
    folder.write_secrets("exec-1", {"KEY": "$abc"})
    file = folders.run / "environment"
    assert oct(file.stat().st_mode)[-3:] == "600"
    assert file.read_text() == f"KEY='$abc'\nINTERNAL_API_TOKEN='{folder.token('exec-1')}'\n"
    folder.remove_secrets("exec-1")
    assert list(folders.run.iterdir()) == []
    folder.close()


@pytest.mark.parametrize("value", ["a\nB=1", "it's", "\0"])
def test_a_secret_that_would_change_the_file_is_refused(store: WorkspaceStore, value: str) -> None:
    folder = PoolFolder(store, None)
    folder.folders("exec-1", None)
    with pytest.raises(AgentError, match="the value of KEY"):
        folder.write_secrets("exec-1", {"KEY": value})
    folder.close()


def test_every_container_has_a_token_that_all_managers_of_the_pool_know(store: WorkspaceStore, tmp_path: Path) -> None:
    first, second, other = PoolFolder(store, None), PoolFolder(store, None), PoolFolder(WorkspaceStore(tmp_path), None)
    assert first.token("exec-1") == second.token("exec-1")
    assert len({first.token("exec-1"), first.token("exec-2"), other.token("exec-1")}) == 3
    for folder in (first, second, other):
        folder.close()


def test_a_warm_workspace_becomes_that_of_a_session_with_its_files(store: WorkspaceStore) -> None:
    folder = PoolFolder(store, None)
    folders = folder.folders("exec-1", None)
    # What the container has open is the folder itself, whatever its name.
    inside = os.open(folders.workspace, os.O_DIRECTORY)
    workspace = store.open("anna", "s1")
    (workspace.path / "input" / "data.csv").write_text("1")
    folder.claim("exec-1", workspace)
    assert os.stat("input/data.csv", dir_fd=inside).st_size == 1
    os.close(inside)
    assert (workspace.path / "input" / "data.csv").read_text() == "1"
    folder.remove("exec-1")
    assert folder.ids() == []
    assert (workspace.path / "input" / "data.csv").exists()
    folder.close()


@pytest.mark.parametrize("renames", range(8))
def test_a_claim_that_was_killed_loses_no_file(
    store: WorkspaceStore, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    folder = PoolFolder(store, None)
    folder.folders("exec-1", None)
    workspace = store.open("anna", "s1")
    for name in ("a", "b"):
        (workspace.path / name).write_text(name)
    (workspace.data / "log").write_text("log")
    count, rename = 0, Path.rename

    def rename_until_killed(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count > renames:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_until_killed)
    with pytest.raises(KeyboardInterrupt):
        folder.claim("exec-1", workspace)
    monkeypatch.undo()
    folder.remove("exec-1")
    assert {path.name for path in workspace.path.iterdir()} >= {"a", "b", "input", "output"}
    assert (workspace.data / "log").read_text() == "log"
    assert folder.ids() == []
    folder.close()


_LIVE = """
import sys, time
from pathlib import Path
from agent.service.containers.pool_folder import PoolFolder
from agent.service.workspaces.layout import WorkspaceStore
folder = PoolFolder(WorkspaceStore(Path(sys.argv[1])), None)
print(folder.manager, flush=True)
time.sleep(600)
"""


def test_a_manager_that_was_killed_is_known_to_be_dead(store: WorkspaceStore) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _LIVE, str(store.root)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout
    manager = process.stdout.readline().strip()
    folder = PoolFolder(store, None)
    assert folder.is_alive(manager)
    assert folder.is_alive(folder.manager)
    process.kill()
    process.communicate()
    assert not folder.is_alive(manager)
    assert not folder.is_alive("../secret")
    assert not folder.is_alive("")
    folder.close()
