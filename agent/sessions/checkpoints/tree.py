"""A folder as of a checkpoint: finds changes since then, and saves the contents from before and after."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from agent.sessions.checkpoints.heaps import (
    HEAP_MARKS,
    IGNORE_FILE,
    MAX_IGNORE_BYTES,
    IgnoreRule,
    is_heap,
    parse_ignore_file,
)
from agent.sessions.checkpoints.pack import Entry, IndexLine, Pack
from agent.sessions.checkpoints.watch import FolderWatch
from tooling.contract.fast_dataclass import dataclass
from tooling.files.openat2 import DIR_FLAGS, open_beneath
from tooling.files.pending_write import MAX_CHANGED_BYTES
from tooling.files.regular_file import READ_FLAGS

_LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Two changes within one tick of the kernel's clock have the same time.
_TICK_NS = 20_000_000
_KINDS = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Size limits of a saved folder; in a larger one, changes by commands cannot be undone."""

    max_entries: int = 30_000
    max_bytes: int = 300_000_000
    max_file_bytes: int = MAX_CHANGED_BYTES
    max_seconds: float = 10.0


class TooLarge(Exception):
    """The folder exceeds a limit; the message completes "the folder …"."""


class Stopped(Exception):
    """The operation was cancelled."""


class Difference(NamedTuple):
    """A path whose entry has changed; None if it did not or does not exist."""

    path: str
    before: Entry | None
    after: Entry | None


class FolderTree:
    """The entries below one folder, by subfolder; links are never followed, and excluded folders are skipped."""

    def __init__(
        self,
        number: int,
        root: Path,
        pack: Pack,
        *,
        watch: FolderWatch | None = None,
        hidden: tuple[Path, ...] = (),
        limits: Limits | None = None,
    ) -> None:
        self.number = number
        self.root = root
        self._pack = pack
        self._watch = watch
        self._hidden = frozenset(map(str, hidden))
        self._limits = limits or Limits()
        self._is_stopped: Callable[[], bool] | None = None
        self._fd = os.open(root, DIR_FLAGS)
        self._folders: dict[str, dict[str, Entry]] = {}
        self._rules: dict[str, tuple[IgnoreRule, ...]] = {}
        self._racy: set[tuple[str, str]] = set()
        self._count = 0
        self._until = float("inf")

    def build(self, is_stopped: Callable[[], bool]) -> None:
        """Save the whole folder; raises TooLarge and Stopped."""
        self._until, self._is_stopped = time.monotonic() + self._limits.max_seconds, is_stopped
        found = list(self._scan_new(""))
        largest = self._largest_saved(entry.size for _, entries in found for entry in entries.values())
        for folder, entries in found:
            self._check_progress()
            self._save_entries(folder, entries, largest)
        # Later scans belong to other runs, too, and are never given up.
        self._until, self._is_stopped = float("inf"), None

    def load(self, entries: dict[str, Entry]) -> None:
        """Load the entries saved by another process."""
        self._folders = {"": {}}
        for path, entry in entries.items():
            folder, _, name = path.rpartition("/")
            self._folders.setdefault(folder, {})[name] = entry
            if entry.kind == "folder":
                self._folders.setdefault(path, {})
            self._racy.add((folder, name))
        for folder in self._folders:
            self._load_rules(folder)

    def watch(self, watch: FolderWatch) -> bool:
        """Watch all known folders, and new ones, from now on; False if there are too many, and none is watched."""
        for folder in self._folders:
            try:
                fd = open_beneath(self._fd, folder or ".", _LIST_FLAGS)
            except OSError:
                # It is gone: its own folder has the news.
                continue
            try:
                watch.add(self._watch_name(folder), fd)
            except OSError:
                return False
            finally:
                os.close(fd)
        self._watch = watch
        return True

    def lines(self) -> Iterator[IndexLine]:
        """Yield all entries for the index of the pack."""
        for folder, entries in self._folders.items():
            for name, entry in entries.items():
                yield IndexLine(root=self.number, path=_join(folder, name), entry=entry)

    def refresh(self, changed: set[str] | None) -> list[Difference]:
        """Return the differences in the given folders, or in all of them, sorted by path."""
        found: list[Difference] = []
        for folder in list(self._folders):
            is_changed = changed is None or self._watch_name(folder) in changed
            # A folder removed together with its parent is not known any more.
            if is_changed and folder in self._folders:
                found += self._refresh_folder(folder)
        # An entry that changed its type was removed first.
        return sorted(found, key=lambda one: (one.path, one.after is not None))

    def entry(self, path: str) -> Entry | None:
        """Return the entry of a path, as last seen."""
        folder, _, name = path.rpartition("/")
        return self._folders.get(folder, {}).get(name)

    def close(self) -> None:
        """Release the folder."""
        os.close(self._fd)

    def _refresh_folder(self, folder: str) -> Iterator[Difference]:
        known = self._folders[folder]
        seen = self._list(folder)
        if seen is None:
            # It was removed: its parent reports that.
            return
        for name in known.keys() - seen.keys():
            yield from self._drop(folder, name)
        for name, entry in seen.items():
            before = known.get(name)
            if before is not None and before.kind != entry.kind:
                yield from self._drop(folder, name)
                before = None
            if before is None:
                yield from self._take(folder, name, entry)
            elif not before.has_same_signature(entry) or (folder, name) in self._racy:
                yield from self._compare(folder, name, before, entry)

    def _compare(self, folder: str, name: str, before: Entry, entry: Entry) -> Iterator[Difference]:
        """Yield the difference of an entry whose signature differs or is unreliable."""
        after = self._save(folder, name, entry)
        if before.is_saved and after.is_saved:
            has_same_content = before.length == after.length and self._pack.read(before) == self._pack.read(after)
            is_same = has_same_content and before.mode == after.mode
            if has_same_content:
                after = after._replace(offset=before.offset, length=before.length)
        else:
            is_same = before.has_same_signature(entry)
        self._keep(folder, name, after)
        if not is_same:
            yield Difference(_join(folder, name), before, after)

    def _take(self, folder: str, name: str, entry: Entry) -> Iterator[Difference]:
        """Yield a new entry, and everything in it."""
        path = _join(folder, name)
        if entry.kind == "folder":
            if self._is_left_out(path):
                return
            found = list(self._scan_new(path))
            if not found:
                return
            self._keep(folder, name, entry)
            yield Difference(path, None, entry)
            for inner, entries in found:
                self._save_entries(inner, entries, self._limits.max_file_bytes)
                yield from (
                    Difference(_join(inner, child), None, saved) for child, saved in self._folders[inner].items()
                )
            return
        after = self._save(folder, name, entry)
        self._keep(folder, name, after)
        yield Difference(path, None, after)

    def _drop(self, folder: str, name: str) -> Iterator[Difference]:
        """Yield a removed entry, and everything that was in it."""
        entry = self._folders[folder].pop(name)
        self._racy.discard((folder, name))
        self._count -= 1
        path = _join(folder, name)
        if entry.kind == "folder" and path in self._folders:
            for child in list(self._folders[path]):
                yield from self._drop(path, child)
            del self._folders[path]
            self._rules.pop(path, None)
            self._unwatch(path)
        yield Difference(path, entry, None)

    def _scan_new(self, top: str) -> Iterator[tuple[str, dict[str, Entry]]]:
        """Yield an unknown folder and its subfolders, with their entries; nothing if it is excluded."""
        pending = [top]
        while pending:
            self._check_progress()
            folder = pending.pop()
            entries = self._list(folder, is_new=True)
            if entries is None or (folder and HEAP_MARKS & entries.keys()):
                self._unwatch(folder)
                continue
            self._folders[folder] = {}
            self._load_rules(folder)
            for name in [name for name, entry in entries.items() if entry.kind == "folder"]:
                if self._is_left_out(_join(folder, name)):
                    del entries[name]
                else:
                    pending.append(_join(folder, name))
            self._count += len(entries)
            if self._count > self._limits.max_entries:
                raise TooLarge(f"has more than {self._limits.max_entries:,} files")
            yield folder, entries

    def _list(self, folder: str, *, is_new: bool = False) -> dict[str, Entry] | None:
        """Return the entries of a folder, or None if it is unreadable; a new one is watched from now on."""
        try:
            fd = open_beneath(self._fd, folder or ".", _LIST_FLAGS)
        except OSError:
            return None
        try:
            if is_new and self._watch:
                self._watch.add(self._watch_name(folder), fd)
            with os.scandir(fd) as found:
                return {entry.name: _entry(entry.stat(follow_symlinks=False)) for entry in _existing(found)}
        except OSError:
            return None
        finally:
            os.close(fd)

    def _unwatch(self, folder: str) -> None:
        if self._watch:
            self._watch.remove(self._watch_name(folder))

    def _watch_name(self, folder: str) -> str:
        return f"{self.number}/{folder}"

    def _save_entries(self, folder: str, entries: dict[str, Entry], largest: int) -> None:
        try:
            fd = open_beneath(self._fd, folder or ".", _LIST_FLAGS)
        except OSError:
            return
        try:
            for name, entry in entries.items():
                saved = entry if entry.size > largest else self._save_at(fd, name, entry)
                self._folders[folder][name] = saved
                self._note_racy(folder, name, saved)
        finally:
            os.close(fd)

    def _save(self, folder: str, name: str, entry: Entry) -> Entry:
        try:
            fd = open_beneath(self._fd, folder or ".", _LIST_FLAGS)
        except OSError:
            return entry
        try:
            return self._save_at(fd, name, entry)
        finally:
            os.close(fd)

    def _save_at(self, folder_fd: int, name: str, entry: Entry) -> Entry:
        """Return an entry with its content in the pack, if it can be read and is small enough."""
        limits = self._limits
        if entry.size > limits.max_file_bytes or self._pack.size + entry.size > limits.max_bytes:
            return entry
        try:
            if entry.kind == "link":
                target = os.fsencode(os.readlink(name, dir_fd=folder_fd))
                return entry._replace(offset=self._pack.append(target), length=len(target))
            if entry.kind != "file":
                return entry
            fd = os.open(name, READ_FLAGS, dir_fd=folder_fd)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return entry
                offset, length = self._pack.add(fd, entry.size)
            finally:
                os.close(fd)
        except OSError:
            return entry
        return entry._replace(offset=offset, length=length)

    def _keep(self, folder: str, name: str, entry: Entry) -> None:
        self._count += name not in self._folders[folder]
        self._folders[folder][name] = entry
        self._note_racy(folder, name, entry)
        if name == IGNORE_FILE:
            self._load_rules(folder)

    def _note_racy(self, folder: str, name: str, entry: Entry) -> None:
        """Record whether a later change could leave the signature unchanged."""
        is_torn = entry.is_saved and entry.kind == "file" and entry.length != entry.size
        if is_torn or (entry.kind != "folder" and entry.ctime_ns > time.time_ns() - _TICK_NS):
            self._racy.add((folder, name))
        else:
            self._racy.discard((folder, name))

    def _load_rules(self, folder: str) -> None:
        try:
            fd = open_beneath(self._fd, _join(folder, IGNORE_FILE), READ_FLAGS)
        except OSError:
            return
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                text = file.read(MAX_IGNORE_BYTES).decode("utf-8", "replace")
                self._rules[folder] = parse_ignore_file(text)

    def _is_left_out(self, path: str) -> bool:
        if str(self.root / path) in self._hidden:
            return True
        parts = path.split("/")
        above = ["", *("/".join(parts[:count]) for count in range(1, len(parts)))]
        return is_heap(path, ((base, self._rules[base]) for base in above if base in self._rules))

    def _largest_saved(self, sizes: Iterator[int]) -> int:
        """Return the size up to which files are saved, so that their total stays within the limit."""
        total, largest = 0, 0
        for size in sorted(sizes):
            total += size
            if total > self._limits.max_bytes:
                return largest
            largest = size
        return self._limits.max_file_bytes

    def _check_progress(self) -> None:
        if self._is_stopped and self._is_stopped():
            raise Stopped
        if time.monotonic() > self._until:
            raise TooLarge(f"takes longer than {self._limits.max_seconds:g} s to save")


def _existing(found: Iterator["os.DirEntry[str]"]) -> Iterator["os.DirEntry[str]"]:
    """Yield the entries of a listing that are still there."""
    for entry in found:
        try:
            entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield entry


def _entry(status: os.stat_result) -> Entry:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
    size = 0 if kind == "folder" else status.st_size
    mode = 0 if kind == "link" else stat.S_IMODE(status.st_mode)
    return Entry(kind, mode, size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
