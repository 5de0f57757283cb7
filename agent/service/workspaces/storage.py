"""Storage of archives: a folder of this machine, or a bucket of S3 or a compatible server."""

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from agent.service.workspaces.archive import SUFFIX, ArchiveError
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import TEMP_SUFFIX, fsync_dir

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

MISSING = "archives in a bucket need obstore, which is not installed"
INSTALL = "pip install 'windlass[storage]'"
_CHUNK_BYTES = 4 * 1024 * 1024
_RETRY = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """Connection to a bucket; without an `endpoint` it is on AWS."""

    bucket: str
    endpoint: str = ""
    access_key: str = ""
    secret_key: str = ""
    region: str = "us-east-1"
    has_path_style: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArchive:
    """An archive in a store; `location` is shown to users."""

    key: str
    location: str
    size_bytes: int
    modified_at: datetime


class ArchiveStore(Protocol):
    """Stores archives by key. An archive is complete or absent. Raises ArchiveError."""

    async def put(self, key: str, file: Path) -> StoredArchive:
        """Store a file and remove the original; an archive with this key is replaced."""

    async def fetch(self, key: str, target: Path, max_bytes: int) -> None:
        """Write an archive to a file."""

    async def list(self, prefix: str = "") -> list[StoredArchive]:
        """Return the archives whose key starts with `prefix`, by key."""

    async def delete(self, key: str) -> None:
        """Delete an archive; a missing one is no error."""


def open_archive_store(folder: Path, bucket: BucketSettings | None) -> ArchiveStore:
    """Return the bucket if there is one, otherwise the folder. Raises ConfigError if a library is missing."""
    return BucketArchives(bucket) if bucket else FolderArchives(folder)


class FolderArchives:
    """Archives as local files that only their owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, key: str, file: Path) -> StoredArchive:
        """Copy a file into place atomically."""
        target = self._folder / key
        try:
            await asyncio.to_thread(_move, file, target)
        except OSError as error:
            raise ArchiveError(f"{target} could not be written: {error.strerror}") from error
        return self._describe(target)

    async def fetch(self, key: str, target: Path, max_bytes: int) -> None:
        """Copy an archive."""
        source = self._folder / key
        try:
            if source.stat().st_size > max_bytes:
                raise ArchiveError(f"{key} is larger than {max_bytes:,} bytes")
            await asyncio.to_thread(shutil.copyfile, source, target, follow_symlinks=False)
        except FileNotFoundError as error:
            raise _not_found(key, str(self._folder)) from error
        except OSError as error:
            raise ArchiveError(f"{source} could not be read: {error.strerror}") from error

    async def list(self, prefix: str = "") -> list[StoredArchive]:
        """Return the archives in the folder."""
        return [found for found in self._all() if found.key.startswith(prefix)]

    async def delete(self, key: str) -> None:
        """Delete a file."""
        (self._folder / key).unlink(missing_ok=True)

    def _all(self) -> Iterator[StoredArchive]:
        for path in sorted(self._folder.rglob(f"*{SUFFIX}")):
            if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                yield self._describe(path)

    def _describe(self, path: Path) -> StoredArchive:
        found = path.stat()
        return StoredArchive(
            key=path.relative_to(self._folder).as_posix(),
            location=str(path),
            size_bytes=found.st_size,
            modified_at=datetime.fromtimestamp(found.st_mtime, UTC),
        )


class BucketArchives:
    """Archives as objects in a bucket."""

    def __init__(self, settings: BucketSettings) -> None:
        self._settings = settings
        self._store = _open_bucket(settings)

    async def put(self, key: str, file: Path) -> StoredArchive:
        """Upload a file; a bucket shows an object only once it is complete."""
        import obstore

        try:
            await obstore.put_async(self._store, key, file)
            # The time of the bucket's clock, as in its listing.
            found = await obstore.head_async(self._store, key)
        except Exception as error:
            raise self._problem("written", key, error) from error
        await asyncio.to_thread(file.unlink)
        return self._describe(key, found["size"], found["last_modified"])

    async def fetch(self, key: str, target: Path, max_bytes: int) -> None:
        """Download an archive up to the size limit."""
        import obstore

        try:
            found = await obstore.get_async(self._store, key)
            size = found.meta["size"]
            if size > max_bytes:
                raise ArchiveError(f"{key} is larger than {max_bytes:,} bytes")
            fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                    file.write(chunk)
        except (ArchiveError, asyncio.CancelledError):
            raise
        except FileNotFoundError as error:
            raise _not_found(key, self._settings.bucket) from error
        except Exception as error:
            raise self._problem("read", key, error) from error

    async def list(self, prefix: str = "") -> list[StoredArchive]:
        """Return the archives in the bucket."""
        import obstore

        # A prefix in the protocol ends at a slash; the rest is compared here.
        folder = prefix.rpartition("/")[0]
        try:
            found = [entry async for page in obstore.list(self._store, folder or None) for entry in page]
        except Exception as error:
            raise self._problem("listed", prefix or "/", error) from error
        archives = [self._describe(entry["path"], entry["size"], entry["last_modified"]) for entry in found]
        return sorted(
            (one for one in archives if one.key.startswith(prefix) and one.key.endswith(SUFFIX)),
            key=lambda one: one.key,
        )

    async def delete(self, key: str) -> None:
        """Delete an object."""
        import obstore

        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._problem("deleted", key, error) from error

    def _describe(self, key: str, size: int, modified_at: datetime) -> StoredArchive:
        location = f"s3://{self._settings.bucket}/{key}"
        return StoredArchive(key=key, location=location, size_bytes=size, modified_at=modified_at)

    def _problem(self, what: str, key: str, error: Exception) -> ArchiveError:
        # Messages of the library are pages long and may quote the request.
        first = str(error).strip().splitlines()[:1]
        where = self._settings.endpoint or "AWS"
        message = (
            f"s3://{self._settings.bucket}/{key} could not be {what}: {(first or [type(error).__name__])[0][:300]}"
        )
        return ArchiveError(message, f"check s3_bucket, s3_access_key and s3_secret_key, and that {where} is reachable")


def _open_bucket(settings: BucketSettings) -> "S3Store":
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        raise ConfigError(MISSING, INSTALL) from error
    config: S3Config = {
        "bucket": settings.bucket,
        "region": settings.region,
        "virtual_hosted_style_request": not settings.has_path_style,
    }
    if settings.endpoint:
        config["endpoint"] = settings.endpoint
    if settings.access_key:
        config["access_key_id"] = settings.access_key
        config["secret_access_key"] = settings.secret_key
    return S3Store(
        config=config,
        client_options={"allow_http": settings.endpoint.startswith("http://"), "timeout": "300s"},
        retry_config={"max_retries": 3, "retry_timeout": _RETRY},
    )


def _move(file: Path, target: Path) -> None:
    """Move a file, possibly from another file system."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with file.open("rb") as source, os.fdopen(fd, "wb") as copy:
            shutil.copyfileobj(source, copy, _CHUNK_BYTES)
            copy.flush()
            os.fsync(fd)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    fsync_dir(target.parent)
    file.unlink()


def _not_found(key: str, where: str) -> ArchiveError:
    return ArchiveError(f"there is no archive {key} in {where}", "`agent workspaces list --archives` shows them")
