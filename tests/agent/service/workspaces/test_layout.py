"""Workspaces of users and sessions: where they are, who uses them, how they are removed."""

import os
from pathlib import Path

import pytest

from agent.service.workspaces.layout import WorkspaceLock, WorkspaceStore, is_running, measure
from agent.sessions.store import SessionLock, SessionStore
from agent.vocabulary.errors import InputError, SessionBusy


def test_a_workspace_has_the_folders_of_a_session(tmp_path: Path) -> None:
    workspace = WorkspaceStore(tmp_path).open("anna", "s1")
    assert workspace.path == tmp_path / "user_anna" / "session_s1"
    assert sorted(path.name for path in workspace.path.iterdir()) == [".mcp-servers", ".skills", "input", "output"]
    assert oct(workspace.path.stat().st_mode)[-3:] == "700"
    assert workspace.data.is_dir()
    assert not workspace.data.is_relative_to(workspace.path)
    assert workspace.mode == "ephemeral"


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "x" * 65, "a\0b", "a b"])
def test_ids_that_are_not_plain_names_are_refused(tmp_path: Path, name: str) -> None:
    store = WorkspaceStore(tmp_path)
    for user, session in ((name, "s1"), ("anna", name)):
        with pytest.raises(InputError, match="id"):
            store.open(user, session)
    assert list(tmp_path.iterdir()) == []


def test_workspaces_are_listed_by_user_and_session_and_nothing_else_is(tmp_path: Path) -> None:
    store = WorkspaceStore(tmp_path)
    for user, session in (("b", "2"), ("a", "1"), ("b", "1")):
        store.open(user, session, "persistent")
    (tmp_path / "user_a" / "other").mkdir()
    (tmp_path / "user_a" / "session_link").symlink_to(tmp_path)
    assert [(one.user_id, one.session_id, one.mode) for one in store.all()] == [
        ("a", "1", "persistent"),
        ("b", "1", "persistent"),
        ("b", "2", "persistent"),
    ]


def test_sizes_leave_out_dot_files_if_asked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "b").write_bytes(b"123")
    assert measure(tmp_path, ignores_dot_files=True).size_bytes == 5
    assert measure(tmp_path, ignores_dot_files=False).size_bytes == 8
    assert measure(tmp_path, ignores_dot_files=False).files == 2


def test_a_workspace_in_use_is_locked_for_everybody_else(tmp_path: Path) -> None:
    store = WorkspaceStore(tmp_path)
    workspace = store.open("anna", "s1")
    lock = WorkspaceLock(workspace)
    assert is_running(workspace)
    with pytest.raises(SessionBusy):
        WorkspaceLock(workspace)
    lock.release()
    assert not is_running(workspace)


def test_a_run_that_has_outlived_its_pool_keeps_its_workspace(tmp_path: Path) -> None:
    workspace = WorkspaceStore(tmp_path).open("anna", "s1")
    run = SessionLock(SessionStore(workspace.data).open("s1"))
    assert is_running(workspace)
    run.release()
    assert not is_running(workspace)


def test_a_session_folder_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    workspace = WorkspaceStore(tmp_path / "root").open("anna", "s1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (workspace.data / "sessions").mkdir()
    workspace.session.root.symlink_to(elsewhere)
    WorkspaceLock(workspace).release()
    assert list(elsewhere.iterdir()) == []


def test_a_removed_workspace_is_gone_with_everything_beside_it(tmp_path: Path) -> None:
    store = WorkspaceStore(tmp_path)
    workspace = store.open("anna", "s1")
    SessionStore(workspace.data).open("s1")
    (workspace.path / "deep").mkdir()
    (workspace.path / "deep").chmod(0o500)
    store.remove(workspace, WorkspaceLock(workspace))
    assert list(tmp_path.iterdir()) == []


def test_only_one_of_many_workspaces_is_removed(tmp_path: Path) -> None:
    store = WorkspaceStore(tmp_path)
    one, other = store.open("anna", "s1"), store.open("anna", "s2")
    store.remove(one, WorkspaceLock(one))
    assert [workspace.session_id for workspace in store.all()] == ["s2"]
    assert other.data.is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_folders_belong_to_the_user_of_containers(tmp_path: Path) -> None:
    workspace = WorkspaceStore(tmp_path, owner=(65534, 65534)).open("anna", "s1")
    for folder in (workspace.path, workspace.path / "input", workspace.data):
        assert folder.stat().st_uid == 65534
    assert workspace.private.stat().st_uid == 0
