"""Files are changed whole, by their only name, and what they held is kept first."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tooling.tool_harness import FakeUser, ToolHarness
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import change_file
from tooling.files.pending_write import MAX_CHANGED_BYTES


@pytest.fixture
def place(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path, approver=FakeUser())


@pytest.fixture
def ctx(place: ToolHarness, tmp_path: Path) -> ExecCtx:
    return replace(place.ctx(), blobs_dir=tmp_path / "blobs")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_change_names_both_contents_and_keeps_the_first(place: ToolHarness, ctx: ExecCtx) -> None:
    path = place.write("a.txt", "old")
    path.chmod(0o640)
    change = change_file("a.txt", ctx, lambda before, shown: b"new")
    assert (change.before, change.after, change.mode) == (content_hash(b"old"), content_hash(b"new"), 0o640)
    assert ctx.blobs_dir is not None
    assert BlobStore(ctx.blobs_dir).read(content_hash(b"old")) == b"old"
    assert (ctx.blobs_dir / content_hash(b"old")).stat().st_mode & 0o777 == 0o600
    assert ctx.blobs_dir.stat().st_mode & 0o777 == 0o700


def test_a_new_and_a_deleted_file_have_one_content(place: ToolHarness, ctx: ExecCtx) -> None:
    made = change_file("new/a.txt", ctx, lambda before, shown: b"x\n", makes_folders=True)
    gone = change_file("new/a.txt", ctx, lambda before, shown: None)
    assert (made.status, made.before, made.after, made.mode) == ("added", None, content_hash(b"x\n"), None)
    assert (gone.status, gone.before, gone.after, gone.deleted_lines) == ("deleted", content_hash(b"x\n"), None, 1)
    assert gone.diff == "--- a/new/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"
    assert names_in(place.root / "new") == []


def test_nothing_is_changed_when_its_content_cannot_be_kept(place: ToolHarness, ctx: ExecCtx, tmp_path: Path) -> None:
    place.write("a.txt", "old")
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(ToolError, match="cannot be written"):
        change_file("a.txt", ctx, lambda before, shown: b"new")
    assert (place.root / "a.txt").read_text() == "old"


def test_a_damaged_copy_is_not_taken_for_one(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    name = store.put(b"content")
    (tmp_path / name).write_bytes(b"damaged")
    assert store.read(name) is None
    assert (store.put(b"content"), store.read(name)) == (name, b"content")
    assert store.read("0" * 64) is None


async def test_a_file_with_two_names_is_not_written(place: ToolHarness) -> None:
    path = place.write("a.txt", "old")
    os.link(path, place.root / "b.txt")
    for tool, args in (
        ("write_file", {"content": "new"}),
        ("edit_file", {"old_text": "old", "new_text": "new"}),
        ("delete_file", {}),
    ):
        result = await place.call(tool, path="b.txt", **args)
        assert (result.exit_code, "hard links" in result.content) == (1, True), result
    assert path.read_text() == "old"
    assert (await place.call("read_file", path="b.txt")).content == "old"


def test_a_file_that_changes_meanwhile_is_left_alone(place: ToolHarness, ctx: ExecCtx) -> None:
    path = place.write("a.txt", "old")

    def slow(before: bytes | None, shown: str) -> bytes:
        path.write_text("by somebody else")
        return b"new"

    def appears(before: bytes | None, shown: str) -> bytes:
        (place.root / "b.txt").write_text("by somebody else")
        return b"new"

    for name, decide in (("a.txt", slow), ("b.txt", appears)):
        with pytest.raises(ToolError, match="meanwhile"):
            change_file(name, ctx, decide)
        assert (place.root / name).read_text() == "by somebody else"
    assert names_in(place.root) == ["a.txt", "b.txt"]


def test_a_huge_file_is_left_to_commands(place: ToolHarness, ctx: ExecCtx) -> None:
    path = place.write("big", "")
    os.truncate(path, MAX_CHANGED_BYTES + 1)
    with pytest.raises(ToolError, match="larger than"):
        change_file("big", ctx, lambda before, shown: b"new")


def test_owner_and_mode_stay_and_lent_rights_go(place: ToolHarness, ctx: ExecCtx) -> None:
    path = place.write("a.sh", "old")
    if os.getuid() == 0:
        os.chown(path, 1234, 1234)
    path.chmod(0o4755)
    change_file("a.sh", ctx, lambda before, shown: b"new")
    status = path.stat()
    assert status.st_mode & 0o7777 == 0o755
    assert os.getuid() != 0 or (status.st_uid, status.st_gid) == (1234, 1234)


async def test_a_binary_file_may_be_replaced_but_not_edited(place: ToolHarness) -> None:
    place.write("a.bin", b"\0old")
    assert "binary" in (await place.call("edit_file", path="a.bin", old_text="old", new_text="new")).content
    result = await place.call("write_file", path="a.bin", content="new")
    assert result.meta.changes[0].diff == "--- a/a.bin\n+++ b/a.bin\nBinary files differ\n"


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/x", ".GIT/config", "alias/hooks/x"]
)
async def test_what_git_runs_by_itself_cannot_be_written(place: ToolHarness, path: str) -> None:
    (place.root / ".git" / "hooks").mkdir(parents=True)
    (place.root / "alias").symlink_to(".git")
    result = await place.call("write_file", path=path, content="#!/bin/sh\n")
    assert (result.meta.status, "git commands" in result.content) == ("blocked", True)
    assert names_in(place.root / ".git" / "hooks") == []


async def test_deleting_asks_and_refuses_secrets_folders_and_ways_out(place: ToolHarness, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    (place.root / "out.txt").symlink_to(tmp_path / "outside.txt")
    place.write("dir/.env", "KEY=1")
    place.write("a.txt", "x")
    for path in (".env", "dir/.env", "out.txt", "../outside.txt", "/etc/hosts"):
        assert (await place.call("delete_file", path=path)).meta.status == "blocked"
    for path, words in (
        ("dir", "is a directory"),
        (".", "is a directory"),
        ("nope", "does not exist"),
        ("no/pe", "not exist"),
    ):
        result = await place.call("delete_file", path=path)
        assert (result.exit_code, words in result.content) == (1, True), result
    assert (await place.call("delete_file", path="a.txt")).content == "Deleted a.txt."
    assert not (place.root / "a.txt").exists()
    assert (tmp_path / "outside.txt").read_text() == "x"


async def test_deleting_needs_an_approval_that_nobody_gives(tmp_path: Path) -> None:
    place = ToolHarness(tmp_path)
    path = place.write("a.txt", "x")
    assert (await place.call("delete_file", path="a.txt")).meta.status == "denied"
    assert path.exists()


async def test_a_folder_added_inside_the_workspace_is_reached_through_it(place: ToolHarness, tmp_path: Path) -> None:
    inner = place.root / "inner"
    inner.mkdir()
    ctx = place.ctx(extra_dirs=(inner,))
    (tmp_path / "outside").mkdir()
    inner.rmdir()
    inner.symlink_to(tmp_path / "outside")
    result = await place.executor.call_tool("write_file", {"path": "inner/a.txt", "content": "x"}, ctx)
    assert names_in(tmp_path / "outside") == [], result
