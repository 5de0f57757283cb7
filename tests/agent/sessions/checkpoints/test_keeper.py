"""The keeper of a checkpoint finds every change in a folder, with and without inotify, and saves what undo needs."""

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agent.sessions.checkpoints.command_window import Workspace
from agent.sessions.checkpoints.keeper import CheckpointKeeper, KeptCheckpoint
from agent.sessions.checkpoints.pack import open_pack, remove_pack
from agent.sessions.checkpoints.tree import Limits, TooLarge
from tooling.contract.secrets import NoSecrets
from tooling.files.blobs import BlobStore
from tooling.safety.secrets.redact import Redactor


@pytest.fixture(params=["inotify", "inotify-later", "scan"])
def is_watching(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "inotify":
        monkeypatch.setattr("agent.sessions.checkpoints.keeper.SMALL_FOLDER_ENTRIES", -1)
    return bool(request.param != "scan")


def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "ws"
    root.mkdir(exist_ok=True)
    return Workspace(cwd=root, folder=tmp_path / "checkpoint", blobs=tmp_path / "blobs", run_id="r")


def changes(keeper: CheckpointKeeper) -> list[tuple[str, str, str]]:
    found = keeper.look()
    recorded = keeper.record(found)
    keeper.commit(found)
    return [(change.path, change.status, change.kind) for change in recorded.changes]


def test_everything_that_a_command_can_do_is_found(tmp_path: Path, is_watching: bool) -> None:
    space = workspace(tmp_path)
    root = space.cwd
    (root / "d" / "e").mkdir(parents=True)
    for name in ("a", "b", "d/c", "d/e/f"):
        (root / name).write_text(name)
    (root / "l").symlink_to("a")
    keeper = CheckpointKeeper.create(space, NoSecrets(), is_watching=is_watching)
    assert changes(keeper) == []

    (root / "a").write_text("A")
    (root / "b").unlink()
    (root / "d" / "c").chmod(0o755)
    (root / "l").unlink()
    (root / "l").symlink_to("b")
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "g").write_text("g")
    (root / "d" / "e").rename(root / "moved")
    assert changes(keeper) == [
        ("a", "modified", "file"),
        ("b", "deleted", "file"),
        ("d/c", "modified", "file"),
        ("d/e", "deleted", "folder"),
        ("d/e/f", "deleted", "file"),
        ("l", "modified", "link"),
        ("moved", "added", "folder"),
        ("moved/f", "added", "file"),
        ("new", "added", "folder"),
        ("new/deep", "added", "folder"),
        ("new/deep/g", "added", "file"),
    ]
    # What is new or was moved is followed as well.
    (root / "moved" / "f").write_text("changed")
    (root / "new" / "deep" / "h").write_text("h")
    shutil.rmtree(root / "d")
    assert changes(keeper) == [
        ("d", "deleted", "folder"),
        ("d/c", "deleted", "file"),
        ("moved/f", "modified", "file"),
        ("new/deep/h", "added", "file"),
    ]
    assert changes(keeper) == []
    assert BlobStore(space.blobs).read("559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd") == b"A"
    keeper.close()
    assert not space.folder.exists()


def test_a_small_folder_is_watched_from_the_first_look_on(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    (space.cwd / "d").mkdir()
    (space.cwd / "d" / "a").write_text("a")
    before = open_inotify()
    keeper = CheckpointKeeper.create(space, NoSecrets())
    assert open_inotify() == before and not keeper.is_unchanged()
    (space.cwd / "d" / "a").write_text("changed before anybody looked")
    assert changes(keeper) == [("d/a", "modified", "file")]
    assert open_inotify() == before + 1 and keeper.is_unchanged()
    (space.cwd / "d" / "b").write_text("b")
    assert not keeper.is_unchanged() and changes(keeper) == [("d/b", "added", "file")]
    keeper.close()
    assert open_inotify() == before


def open_inotify() -> int:
    links = (entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
    return sum(str(link.readlink()) == "anon_inode:inotify" for link in links)


def test_a_file_that_was_only_touched_is_no_change(tmp_path: Path, is_watching: bool) -> None:
    space = workspace(tmp_path)
    (space.cwd / "a").write_text("a")
    keeper = CheckpointKeeper.create(space, NoSecrets(), is_watching=is_watching)
    os.utime(space.cwd / "a")
    (space.cwd / "a").write_text("a")
    assert changes(keeper) == []
    # Same size, and so soon that its time may be the same.
    (space.cwd / "a").write_text("b")
    assert changes(keeper) == [("a", "modified", "file")]
    keeper.close()


def test_a_file_becomes_a_folder_and_a_folder_a_link(tmp_path: Path, is_watching: bool) -> None:
    space = workspace(tmp_path)
    (space.cwd / "a").write_text("a")
    (space.cwd / "d").mkdir()
    (space.cwd / "d" / "x").write_text("x")
    keeper = CheckpointKeeper.create(space, NoSecrets(), is_watching=is_watching)
    (space.cwd / "a").unlink()
    (space.cwd / "a").mkdir()
    shutil.rmtree(space.cwd / "d")
    (space.cwd / "d").symlink_to("/etc")
    assert sorted(changes(keeper)) == [
        ("a", "added", "folder"),
        ("a", "deleted", "file"),
        ("d", "added", "link"),
        ("d", "deleted", "folder"),
        ("d/x", "deleted", "file"),
    ]
    keeper.close()


def test_heaps_are_left_out(tmp_path: Path, is_watching: bool) -> None:
    space = workspace(tmp_path)
    root = space.cwd
    (root / ".gitignore").write_text("# built\nbuild/\n/out\n*.egg-info\n!keep.egg-info\n")
    heaps = [".git", "node_modules", "build", "sub/build", "out", "x.egg-info", "env", "cache"]
    for name in (*heaps, "sub/out", "keep.egg-info", "src"):
        (root / name).mkdir(parents=True)
    (root / "env" / "pyvenv.cfg").touch()
    (root / "cache" / "CACHEDIR.TAG").touch()
    keeper = CheckpointKeeper.create(space, NoSecrets(), is_watching=is_watching)
    for name in (*heaps, "sub/out", "keep.egg-info", "src"):
        (root / name / "file").write_text("x")
    (root / "src" / "__pycache__").mkdir()
    (root / "src" / "__pycache__" / "a.pyc").touch()
    assert [path for path, _, _ in changes(keeper)] == ["keep.egg-info/file", "src/file", "sub/out/file"]
    keeper.close()


def test_what_cannot_be_saved_is_named_when_it_changes(tmp_path: Path, is_watching: bool) -> None:
    space = workspace(tmp_path)
    (space.cwd / "small").write_text("x" * 10)
    (space.cwd / "large").write_text("x" * 1000)
    os.mkfifo(space.cwd / "pipe")
    limits = Limits(max_file_bytes=100)
    keeper = CheckpointKeeper.create(space, NoSecrets(), limits=limits, is_watching=is_watching)
    (space.cwd / "small").write_text("y" * 10)
    assert keeper.record(keeper.look()).skipped == ()
    (space.cwd / "large").write_text("y" * 1000)
    (space.cwd / "pipe").unlink()
    assert keeper.record(keeper.look()).skipped == (
        "large is too large to be saved, or cannot be read",
        "pipe is a pipe, a socket or a device",
    )
    keeper.close()


def test_a_folder_with_too_many_files_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    for number in range(5):
        (space.cwd / f"f{number}").touch()
    with pytest.raises(TooLarge, match="has more than 3 files"):
        CheckpointKeeper.create(space, NoSecrets(), limits=Limits(max_entries=3))
    assert not space.folder.exists()


def test_the_largest_files_are_left_out_if_everything_is_too_much(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    for name, size in (("a", 10), ("b", 50), ("c", 60)):
        (space.cwd / name).write_bytes(b"x" * size)
    keeper = CheckpointKeeper.create(space, NoSecrets(), limits=Limits(max_bytes=100))
    for name in "abc":
        (space.cwd / name).unlink()
    recorded = keeper.record(keeper.look())
    assert [change.path for change in recorded.changes] == ["a", "b"]
    assert [text.split()[0] for text in recorded.skipped] == ["c"]
    keeper.close()


def test_a_later_process_finds_what_a_killed_one_did_not_record(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    (space.cwd / "a").write_text("a")
    (space.cwd / "b").write_text("b")
    killed = CheckpointKeeper.create(space, NoSecrets())
    (space.cwd / "b").write_text("B")
    assert changes(killed) == [("b", "modified", "file")]
    (space.cwd / "a").unlink()
    (space.cwd / "n").write_text("n")

    opened = open_pack(space.folder)
    assert opened is not None
    keeper = CheckpointKeeper.reopen(opened, space.blobs, NoSecrets())
    assert changes(keeper) == [("a", "deleted", "file"), ("n", "added", "file")]
    keeper.close()


def test_hidden_folders_are_left_out_also_after_a_kill(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    data = root / "data"
    data.mkdir(parents=True)
    space = Workspace(cwd=root, folder=data / "checkpoint", blobs=data / "blobs", run_id="r", hidden=(data,))
    keeper = CheckpointKeeper.create(space, NoSecrets())
    (data / "log").write_text("x")
    (root / "a").write_text("a")
    opened = open_pack(space.folder)
    assert opened is not None
    again = CheckpointKeeper.reopen(opened, space.blobs, NoSecrets())
    assert changes(again) == changes(keeper) == [("a", "added", "file")]
    again.close()


def test_a_damaged_index_counts_as_none(tmp_path: Path) -> None:
    for index in (b"", b"garbage\n", b"[1]\n", b'["r", "/", ["/"], []]\n[0, "a", [1]]\n'):
        (tmp_path / "index").write_bytes(index)
        assert open_pack(tmp_path) is None


def test_a_secret_that_a_command_wrote_is_not_kept_in_another_place(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    (space.cwd / "a").write_text("old")
    keeper = CheckpointKeeper.create(space, Redactor(["SENTINEL-1234"]))
    (space.cwd / "a").write_text("key: SENTINEL-1234")
    (change,) = keeper.record(keeper.look()).changes
    assert "SENTINEL" not in change.diff
    assert [path.read_text() for path in space.blobs.iterdir()] == ["old"]
    keeper.close()


def test_the_saved_files_are_private(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    (space.cwd / "a").write_text("a")
    keeper = CheckpointKeeper.create(space, NoSecrets())
    assert space.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in space.folder.iterdir()} == {0o600}
    keeper.close()


def test_the_next_run_continues_from_the_kept_checkpoint(tmp_path: Path, is_watching: bool) -> None:
    first = workspace(tmp_path)
    (first.cwd / "a").write_text("one")
    keeper = CheckpointKeeper.create(first, NoSecrets(), is_watching=is_watching)
    kept = KeptCheckpoint()
    kept.keep(keeper, first)
    assert kept.holds(first.folder) and open_pack(first.folder) is None
    # Between the runs: this was no command of the next one.
    (first.cwd / "a").write_text("by the user")
    (first.cwd / "b").write_text("b")
    second = replace(first, run_id="second")
    resumed = kept.take(second)
    assert resumed is keeper and not kept.holds(first.folder)
    assert changes(resumed) == []
    (first.cwd / "a").write_text("by a command")
    # A kill now leaves what the next process needs.
    opened = open_pack(first.folder)
    assert opened is not None and opened.head.run_id == "second"
    assert opened.pack.read(opened.entries[(0, "a")]) == b"by the user"
    assert changes(resumed) == [("a", "modified", "file")]
    resumed.close()


def test_a_later_run_finds_a_new_folder_though_the_first_one_has_ended(tmp_path: Path, is_watching: bool) -> None:
    space, kept, ended = workspace(tmp_path), KeptCheckpoint(), threading.Event()
    keeper = CheckpointKeeper.create(space, NoSecrets(), is_stopped=ended.is_set, is_watching=is_watching)
    kept.keep(keeper, space)
    ended.set()
    resumed = kept.take(replace(space, run_id="second"))
    assert resumed is keeper
    (space.cwd / "new").mkdir()
    (space.cwd / "new" / "file").write_text("by a command")
    assert changes(resumed) == [("new", "added", "folder"), ("new/file", "added", "file")]
    resumed.close()


def test_a_kept_checkpoint_of_another_workspace_or_one_that_is_gone_is_not_used(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    for spoil in ("other", "removed"):
        kept = KeptCheckpoint()
        kept.keep(CheckpointKeeper.create(space, NoSecrets()), space)
        if spoil == "removed":
            remove_pack(space.folder)
        assert kept.take(replace(space, cwd=tmp_path) if spoil == "other" else space) is None
        assert not space.folder.exists()
    kept.close()
