"""Changing files: atomically, with the old content saved for undo."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tooling.tool_harness import FakeUser, ToolHarness
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError
from tooling.contract.secrets import NoSecrets
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import change_file, preview_diff
from tooling.files.pending_write import CHANGED_CONCURRENTLY, MAX_CHANGED_BYTES
from tooling.files.resolve import resolve_writable
from tooling.files.workspace_paths import PathRefused


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path, approver=FakeUser())


@pytest.fixture
def ctx(harness: ToolHarness, tmp_path: Path) -> ExecCtx:
    return replace(harness.ctx(), blobs_dir=tmp_path / "blobs")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_change_records_both_hashes_and_saves_the_old_content(harness: ToolHarness, ctx: ExecCtx) -> None:
    path = harness.write("a.txt", "old")
    path.chmod(0o640)
    change = change_file("a.txt", ctx, lambda before, name: b"new")
    assert (change.before, change.after, change.mode) == (content_hash(b"old"), content_hash(b"new"), 0o640)
    assert ctx.blobs_dir is not None
    assert BlobStore(ctx.blobs_dir).read(content_hash(b"old")) == b"old"
    assert (ctx.blobs_dir / content_hash(b"old")).stat().st_mode & 0o777 == 0o600
    assert ctx.blobs_dir.stat().st_mode & 0o777 == 0o700


def test_the_preview_of_an_edit_fails_as_the_edit_would(harness: ToolHarness, ctx: ExecCtx) -> None:
    def edit(before: bytes | None, name: str) -> bytes:
        raise ToolError(f"old_text is not in {name}.")

    harness.write("a.txt", "old")
    with pytest.raises(ToolError):
        preview_diff("a.txt", ctx, edit, NoSecrets())
    # Whether it may be read at all is not decided yet.
    assert preview_diff("missing.txt", ctx, edit, NoSecrets()) == ""


def test_a_created_or_deleted_file_has_only_one_hash(harness: ToolHarness, ctx: ExecCtx) -> None:
    created = change_file("new/a.txt", ctx, lambda before, name: b"x\n", makes_folders=True)
    deleted = change_file("new/a.txt", ctx, lambda before, name: None)
    assert (created.status, created.before, created.after, created.mode) == ("added", None, content_hash(b"x\n"), None)
    assert (deleted.status, deleted.before, deleted.after) == ("deleted", content_hash(b"x\n"), None)
    assert deleted.deleted_lines == 1
    assert deleted.diff == "--- a/new/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"
    assert names_in(harness.root / "new") == []


def test_a_file_is_not_changed_if_its_old_content_cannot_be_saved(
    harness: ToolHarness, ctx: ExecCtx, tmp_path: Path
) -> None:
    harness.write("a.txt", "old")
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(ToolError, match="cannot be written"):
        change_file("a.txt", ctx, lambda before, name: b"new")
    assert (harness.root / "a.txt").read_text() == "old"


def test_a_damaged_blob_is_not_read_and_is_stored_again(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    name = store.put(b"content")
    (tmp_path / name).write_bytes(b"damaged")
    assert store.read(name) is None
    assert (store.put(b"content"), store.read(name)) == (name, b"content")
    assert store.read("0" * 64) is None


async def test_a_file_with_hard_links_is_not_written(harness: ToolHarness) -> None:
    path = harness.write("a.txt", "old")
    os.link(path, harness.root / "b.txt")
    for tool, args in (
        ("write_file", {"content": "new"}),
        ("edit_file", {"old_text": "old", "new_text": "new"}),
        ("delete_file", {}),
    ):
        result = await harness.call(tool, path="b.txt", **args)
        assert (result.exit_code, "hard links" in result.content) == (1, True), result
    assert path.read_text() == "old"
    assert (await harness.call("read_file", path="b.txt")).content == "old"


def test_a_file_that_changes_concurrently_is_left_alone(harness: ToolHarness, ctx: ExecCtx) -> None:
    path = harness.write("a.txt", "old")

    def change_meanwhile(before: bytes | None, name: str) -> bytes:
        path.write_text("by another program")
        return b"new"

    def create_meanwhile(before: bytes | None, name: str) -> bytes:
        (harness.root / "b.txt").write_text("by another program")
        return b"new"

    for name, transform in (("a.txt", change_meanwhile), ("b.txt", create_meanwhile)):
        with pytest.raises(ToolError, match=CHANGED_CONCURRENTLY):
            change_file(name, ctx, transform)
        assert (harness.root / name).read_text() == "by another program"
    assert names_in(harness.root) == ["a.txt", "b.txt"]


def test_a_huge_file_is_not_changed(harness: ToolHarness, ctx: ExecCtx) -> None:
    path = harness.write("big", "")
    os.truncate(path, MAX_CHANGED_BYTES + 1)
    with pytest.raises(ToolError, match="larger than"):
        change_file("big", ctx, lambda before, name: b"new")


def test_owner_and_mode_are_preserved_but_setuid_is_cleared(harness: ToolHarness, ctx: ExecCtx) -> None:
    path = harness.write("a.sh", "old")
    if os.getuid() == 0:
        os.chown(path, 1234, 1234)
    path.chmod(0o4755)
    change_file("a.sh", ctx, lambda before, name: b"new")
    status = path.stat()
    assert status.st_mode & 0o7777 == 0o755
    assert os.getuid() != 0 or (status.st_uid, status.st_gid) == (1234, 1234)


async def test_a_binary_file_can_be_replaced_but_not_edited(harness: ToolHarness) -> None:
    harness.write("a.bin", b"\0old")
    assert "binary" in (await harness.call("edit_file", path="a.bin", old_text="old", new_text="new")).content
    result = await harness.call("write_file", path="a.bin", content="new")
    assert result.meta.changes[0].diff == "--- a/a.bin\n+++ b/a.bin\nBinary files differ\n"


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/x", ".GIT/config", "alias/hooks/x"]
)
async def test_files_inside_git_folders_cannot_be_written(harness: ToolHarness, path: str) -> None:
    (harness.root / ".git" / "hooks").mkdir(parents=True)
    (harness.root / "alias").symlink_to(".git")
    result = await harness.call("write_file", path=path, content="#!/bin/sh\n")
    assert (result.meta.status, "git commands" in result.content) == ("blocked", True)
    assert names_in(harness.root / ".git" / "hooks") == []


async def test_a_repository_with_another_name_belongs_to_git_too(harness: ToolHarness) -> None:
    for name in ("store/HEAD", "store/objects/x", "store/refs/x", "tree/HEAD", "tree/commondir", "code/HEAD"):
        harness.write(name, "x")
    ctx = harness.ctx()
    refused = ["store/config", "store/hooks/post-commit", "store/info/attributes", "tree/config.worktree"]
    # The last part of a repository that a tool puts together.
    for name in ("new/HEAD", "new/refs/x"):
        harness.write(name, "x")
    refused += ["new/objects/x", "code/commondir", "other/HEAD"]
    for path in refused:
        with pytest.raises(PathRefused, match="belongs to git itself"):
            resolve_writable(path, ctx)
    # Folders of work trees in a bare repository are not git's own, nor is a folder that only has such names.
    for path in ("store/main/config", "store/main/src/a.py", "code/config", "code/refs/x"):
        assert resolve_writable(path, ctx).relative_path == path


async def test_secrets_folders_and_files_outside_cannot_be_deleted(harness: ToolHarness, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    (harness.root / "out.txt").symlink_to(tmp_path / "outside.txt")
    harness.write("dir/.env", "KEY=1")
    harness.write("a.txt", "x")
    for path in (".env", "dir/.env", "out.txt", "../outside.txt", "/etc/hosts"):
        assert (await harness.call("delete_file", path=path)).meta.status == "blocked"
    for path, words in (
        ("dir", "is a directory"),
        (".", "is a directory"),
        ("nope", "does not exist"),
        ("no/pe", "not exist"),
    ):
        result = await harness.call("delete_file", path=path)
        assert (result.exit_code, words in result.content) == (1, True), result
    assert (await harness.call("delete_file", path="a.txt")).content == "Deleted a.txt."
    assert not (harness.root / "a.txt").exists()
    assert (tmp_path / "outside.txt").read_text() == "x"


async def test_deleting_requires_approval(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    path = harness.write("a.txt", "x")
    assert (await harness.call("delete_file", path="a.txt")).meta.status == "denied"
    assert path.exists()


async def test_an_extra_folder_inside_the_workspace_cannot_be_swapped_for_a_link(
    harness: ToolHarness, tmp_path: Path
) -> None:
    inner = harness.root / "inner"
    inner.mkdir()
    ctx = harness.ctx(extra_dirs=(inner,))
    (tmp_path / "outside").mkdir()
    inner.rmdir()
    inner.symlink_to(tmp_path / "outside")
    result = await harness.executor.call_tool("write_file", {"path": "inner/a.txt", "content": "x"}, ctx)
    assert names_in(tmp_path / "outside") == [], result
