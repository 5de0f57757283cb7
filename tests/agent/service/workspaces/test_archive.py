"""Archives: complete or not there, bounded, and harmless wherever they come from."""

import io
import json
import os
import random
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.service.workspaces.archive import ArchiveError, ArchiveLimits, pack, unpack


def write_tar(path: Path, *entries: tuple[tarfile.TarInfo, bytes], version: int = 1) -> None:
    with tarfile.open(path, "w:gz") as tar:
        text = json.dumps({"v": version}).encode()
        info = tarfile.TarInfo("ARCHIVE.json")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
        for entry, content in entries:
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def tree(folder: Path) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else None
        if path.is_dir()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "file").write_bytes(b"\0" * 100_000)
    (source / "run.sh").write_text("#!/bin/sh")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("deep/file")
    packed = pack({"workspace": source}, tmp_path / "a.tar.gz", info={"kind": "x"})
    assert packed.left_out == ()
    assert unpack(tmp_path / "a.tar.gz", tmp_path / "target") == {"v": 1, "kind": "x"}
    assert tree(tmp_path / "target" / "workspace") == tree(source)
    assert os.access(tmp_path / "target" / "workspace" / "run.sh", os.X_OK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "source", "target"]


def test_links_that_lead_out_and_special_files_are_left_out_and_named(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "out").symlink_to("../../etc/passwd")
    (source / "absolute").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    packed = pack({"workspace": source}, tmp_path / "a.tar.gz", info={})
    assert packed.left_out == ("workspace/absolute", "workspace/out", "workspace/pipe")
    unpack(tmp_path / "a.tar.gz", tmp_path / "target")
    assert tree(tmp_path / "target") == {}


@pytest.mark.parametrize(
    "entries",
    [
        [(entry("../x"), b"1")],
        [(entry("/etc/x"), b"1")],
        [(entry("a/../../x"), b"1")],
        [(entry("workspace/link", tarfile.SYMTYPE, "/etc"), b"")],
        [(entry("workspace/link", tarfile.SYMTYPE, "../../x"), b"")],
        [(entry("workspace/link", tarfile.SYMTYPE, "../session/x"), b"")],
        [(entry("workspace/hard", tarfile.LNKTYPE, "/etc/passwd"), b"")],
        [(entry("workspace/dev", tarfile.CHRTYPE), b"")],
        [(entry("workspace/pipe", tarfile.FIFOTYPE), b"")],
        [(entry("a"), b"1"), (entry("a"), b"2")],
        [(entry("a"), b"1"), (entry("a/b"), b"2")],
    ],
)
def test_an_archive_that_could_do_harm_is_refused_and_leaves_nothing(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    write_tar(tmp_path / "bad.tar.gz", *entries)
    with pytest.raises(ArchiveError):
        unpack(tmp_path / "bad.tar.gz", tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tar.gz"]


def test_nothing_is_written_through_a_link_of_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    link, file = entry("w/link", tarfile.SYMTYPE, "inner"), entry("w/link/file")
    write_tar(tmp_path / "bad.tar.gz", (link, b""), (file, b"x"))
    with pytest.raises(ArchiveError):
        unpack(tmp_path / "bad.tar.gz", tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_an_archive_of_another_version_is_refused(tmp_path: Path) -> None:
    write_tar(tmp_path / "new.tar.gz", version=99)
    with pytest.raises(ArchiveError, match="another version"):
        unpack(tmp_path / "new.tar.gz", tmp_path / "target")


def test_a_bomb_is_stopped_by_what_it_unpacks_to(tmp_path: Path) -> None:
    write_tar(tmp_path / "bomb.tar.gz", (entry("w/zeros"), b"\0" * 3_000_000))
    assert (tmp_path / "bomb.tar.gz").stat().st_size < 10_000
    with pytest.raises(ArchiveError, match="bytes for one archive"):
        unpack(tmp_path / "bomb.tar.gz", tmp_path / "target", ArchiveLimits(max_bytes=1_000_000))
    assert [path.name for path in tmp_path.iterdir()] == ["bomb.tar.gz"]


@pytest.mark.parametrize("limits", [ArchiveLimits(max_bytes=10), ArchiveLimits(max_entries=2)])
def test_too_much_is_not_archived_and_the_archive_before_stays(tmp_path: Path, limits: ArchiveLimits) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in "abc":
        (source / name).write_text("12345")
    (tmp_path / "a.tar.gz").write_bytes(b"before")
    with pytest.raises(ArchiveError, match="for one archive"):
        pack({"workspace": source}, tmp_path / "a.tar.gz", info={}, limits=limits)
    assert (tmp_path / "a.tar.gz").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "source"]


@given(seed=st.integers(0, 2**32), damage=st.integers(1, 30))
def test_a_damaged_archive_raises_one_error_or_unpacks(
    tmp_path_factory: pytest.TempPathFactory, seed: int, damage: int
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    source = folder / "source"
    source.mkdir()
    (source / "a").write_text("text" * 50)
    (source / "b").symlink_to("a")
    pack({"workspace": source}, folder / "a.tar.gz", info={})
    content = bytearray((folder / "a.tar.gz").read_bytes())
    chance = random.Random(seed)
    for _ in range(damage):
        content[chance.randrange(len(content))] = chance.randrange(256)
    (folder / "a.tar.gz").write_bytes(bytes(content[: chance.randrange(1, len(content) + 1)]))
    try:
        unpack(folder / "a.tar.gz", folder / "target")
    except ArchiveError:
        assert not (folder / "target").exists()
