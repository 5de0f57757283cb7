"""Stores of archives behave alike: a folder, and a bucket of a real S3 server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.service.workspaces.archive import ArchiveError
from agent.service.workspaces.storage import ArchiveStore, BucketSettings, open_archive_store
from tests.agent.service.workspaces.s3_server import run_s3_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bucket() -> Iterator[BucketSettings]:
    with run_s3_server("archives") as settings:
        yield settings


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArchiveStore:
    bucket = request.getfixturevalue("bucket") if request.param == "bucket" else None
    return open_archive_store(tmp_path / "archives", bucket)


def file_with(folder: Path, content: bytes) -> Path:
    file = folder / "upload"
    file.write_bytes(content)
    return file


async def test_an_archive_comes_back_and_a_newer_one_replaces_it(store: ArchiveStore, tmp_path: Path) -> None:
    for content in (b"old" * 1000, b"new" * 2_000_000):
        file = file_with(tmp_path, content)
        stored = await store.put("user_a/session_1.tar.gz", file)
        assert not file.exists()
        assert stored.size_bytes == len(content)
    await store.fetch("user_a/session_1.tar.gz", tmp_path / "back", 10_000_000)
    assert (tmp_path / "back").read_bytes() == b"new" * 2_000_000
    assert [one.key for one in await store.list("user_a/session_1")] == ["user_a/session_1.tar.gz"]


async def test_archives_are_listed_by_prefix_and_deleted(store: ArchiveStore, tmp_path: Path) -> None:
    for key in ("user_b/session_1.tar.gz", "user_b/session_2.tar.gz", "user_bb/session_1.tar.gz", "user_b/other"):
        await store.put(key, file_with(tmp_path, b"x"))
    assert [one.key for one in await store.list("user_b/")] == ["user_b/session_1.tar.gz", "user_b/session_2.tar.gz"]
    await store.delete("user_b/session_1.tar.gz")
    await store.delete("user_b/session_1.tar.gz")
    assert [one.key for one in await store.list("user_b/")] == ["user_b/session_2.tar.gz"]


async def test_a_missing_archive_is_said(store: ArchiveStore, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="there is no archive missing"):
        await store.fetch("missing.tar.gz", tmp_path / "back", 1000)
    assert not (tmp_path / "back").exists()


async def test_an_archive_that_is_too_large_is_not_fetched(store: ArchiveStore, tmp_path: Path) -> None:
    await store.put("large.tar.gz", file_with(tmp_path, b"x" * 1000))
    with pytest.raises(ArchiveError, match="larger than 999 bytes"):
        await store.fetch("large.tar.gz", tmp_path / "back", 999)
    assert not (tmp_path / "back").exists()


async def test_a_bucket_that_does_not_exist_is_said_without_the_keys(bucket: BucketSettings, tmp_path: Path) -> None:
    store = open_archive_store(tmp_path, replace(bucket, bucket="no-such-bucket"))
    file = file_with(tmp_path, b"x")
    with pytest.raises(ArchiveError, match=r"s3://no-such-bucket/a\.tar\.gz could not be written") as caught:
        await store.put("a.tar.gz", file)
    assert "s3_bucket" in caught.value.hint
    assert bucket.secret_key not in str(caught.value)
    assert file.exists()
