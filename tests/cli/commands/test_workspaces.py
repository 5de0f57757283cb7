"""`agent workspaces`: list, archive, remove and collect garbage, as a user types it."""

import os
import time
from pathlib import Path

import pytest

from agent.service.workspaces.layout import WorkspaceLock, WorkspaceStore
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow


@pytest.fixture
def store(user: User) -> WorkspaceStore:
    user.data.mkdir(mode=0o700, exist_ok=True)
    found = WorkspaceStore(user.data / "workspaces")
    for session, mode in (("one", "ephemeral"), ("two", "persistent")):
        workspace = found.open("anna", session, mode)  # type: ignore[arg-type]
        (workspace.path / "output" / "report.txt").write_text("12345")
    return found


def test_workspaces_are_listed_with_their_size_and_mode(user: User, store: WorkspaceStore) -> None:
    lock = WorkspaceLock(store.find("anna", "two"))
    shown = user.agent("workspaces").stdout.splitlines()
    lock.release()
    assert [line.split()[:4] for line in shown[-2:]] == [
        ["anna/one", "ephemeral", "idle", "1"],
        ["anna/two", "persistent", "running", "1"],
    ]
    found = user.agent("workspaces", "list", "--json")
    assert '"size_bytes": 5' in found.stdout
    assert '"container_mode": "persistent"' in found.stdout


def test_a_workspace_is_archived_and_the_archive_listed(user: User, store: WorkspaceStore) -> None:
    assert user.agent("workspaces", "archive", "anna/one", "--dry-run").stdout.startswith("would archive ")
    archived = user.agent("workspaces", "archive", "anna/one", "--rm").stdout.strip()
    assert Path(archived).name == "session_one.tar.gz"
    assert Path(archived).is_file()
    assert archived in user.agent("workspaces", "list", "--archives").stdout
    assert [one.session_id for one in store.all()] == ["two"]


def test_removing_asks_and_a_persistent_one_needs_force(user: User, store: WorkspaceStore) -> None:
    asked = user.agent("workspaces", "rm", "anna/one")
    assert (asked.exit_code, "--yes" in asked.stderr) == (2, True)
    assert user.agent("workspaces", "rm", "anna/one", "--yes").exit_code == 0
    kept = user.agent("workspaces", "rm", "anna/two", "--yes")
    assert kept.exit_code == 42
    assert "--force" in kept.stderr
    assert user.agent("workspaces", "rm", "anna/two", "--yes", "--force").exit_code == 0
    assert list(store.all()) == []


def test_one_in_use_is_neither_removed_nor_archived(user: User, store: WorkspaceStore) -> None:
    lock = WorkspaceLock(store.find("anna", "one"))
    for words in (("archive", "anna/one"), ("rm", "anna/one", "--yes")):
        refused = user.agent("workspaces", *words)
        assert refused.exit_code == 75
        assert "busy" in refused.stderr
    lock.release()


@pytest.mark.parametrize("name", ["nobody/one", "anna", "../x", "anna/.."])
def test_a_wrong_name_is_said(user: User, store: WorkspaceStore, name: str) -> None:
    refused = user.agent("workspaces", "rm", name, "--yes")
    assert refused.exit_code in (2, 42)
    assert refused.stderr.startswith("error: ")


def test_gc_does_what_the_settings_say(user: User, store: WorkspaceStore) -> None:
    old = time.time() - 3 * 86_400
    for workspace in store.all():
        os.utime(workspace.record, (old, old))
    assert user.agent("workspaces", "gc").stdout == ""
    user.environ["WORKSPACE_CLEANUP_ENABLED"] = "true"
    planned = user.agent("workspaces", "gc", "--dry-run").stdout.splitlines()
    assert [line.split("/")[0].strip() for line in planned] == ["would remove", "would archive"]
    assert len(list(store.all())) == 2
    assert user.agent("workspaces", "gc").exit_code == 0
    assert list(store.all()) == []
    assert (store.archives / "user_anna" / "session_two.tar.gz").is_file()
