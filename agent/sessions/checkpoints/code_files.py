"""Finds files that commands left in the workspace for other tools to run, by comparing the workspace before the first
and after the last command; `.gitignore` and the exclusions of checkpoints do not apply."""

import os
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agent.sessions.checkpoints.code_names import ENVIRONMENT_PROGRAMS, INSTALLED_PROGRAMS, find_runner
from agent.vocabulary.outcome import RunnableFile
from tooling.files.blobs import content_hash
from tooling.files.regular_file import READ_FLAGS

_MAX_ENTRIES = 100_000
_MAX_FILE_BYTES = 1_000_000
_MAX_READ_BYTES = 64_000_000
_GIT, _PACKAGES, _ENVIRONMENT_MARK = ".git", "node_modules", "pyvenv.cfg"
_PROGRAM_FOLDERS = ("bin", "Scripts")
# Libraries of an environment: only the files that Python runs at its start are checked.
_LIBRARY_FOLDERS = frozenset({"lib", "lib64", "Lib", "include", "share", "man", "etc"})
_NAME_IN_A_FOLDER = "x"


class _State(NamedTuple):
    """State of a file: the tool that runs it, the path to report, and the signature that shows a change."""

    runner: str
    shown: str
    signature: tuple[int | str, ...]
    digest: str | None
    changed_ns: tuple[int, ...]

    def is_same(self, other: "_State") -> bool:
        """Whether nothing but timestamps has changed."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest and self.signature[0] == other.signature[0]
        return self.signature == other.signature


class CodeFiles:
    """Scans the files of a workspace that tools run; both methods block, so call them in a thread."""

    def __init__(self, roots: Iterable[Path], cwd: Path, hidden: Collection[Path]) -> None:
        self._roots = tuple(roots)
        self._cwd = cwd
        self._hidden = frozenset(hidden)
        self._before: dict[str, _State] = {}
        self.is_complete = True

    def remember(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Record the state before the first command; a run without commands need not wait for it."""
        self._before = self._look(is_stopped)

    def find_changed(
        self,
        was_running_at: Callable[[int], bool],
        recorded: Mapping[str, str | None],
        is_declared: Callable[[str], bool],
    ) -> tuple[RunnableFile, ...]:
        """Return the new and changed files, by reported path.

        `was_running_at` returns whether a command ran at a time; files written by a file tool (`recorded`, by content)
        and files declared in the plan are left out.
        """
        found: dict[str, str] = {}
        for path, now in self._look().items():
            before = self._before.get(path)
            if before is not None and before.is_same(now):
                continue
            # A moved folder keeps the timestamps of its contents.
            moments = now.changed_ns[:1] if before is not None else now.changed_ns
            is_tools_work = path in recorded and recorded[path] == now.digest
            if any(map(was_running_at, moments)) and not is_tools_work and not is_declared(path):
                found.setdefault(now.shown, now.runner)
        return tuple(RunnableFile(path=path, runs=runner) for path, runner in sorted(found.items()))

    def _look(self, is_stopped: Callable[[], bool] = lambda: False) -> dict[str, _State]:
        states: dict[str, _State] = {}
        bytes_left = _MAX_READ_BYTES
        for root in self._roots:
            walk = _Walk(root, self._hidden, is_stopped)
            for path, runner, shown in walk.files():
                state = _read_state(root, path, runner, self._shown(root, shown), bytes_left)
                if state is not None:
                    bytes_left -= int(state.signature[1]) if state.digest is not None else 0
                    states[self._shown(root, path)] = state
            self.is_complete = self.is_complete and walk.is_complete
        return states

    def _shown(self, root: Path, path: str) -> str:
        full = root / path
        ending = "/" if path.endswith("/") else ""
        return (str(full.relative_to(self._cwd)) if full.is_relative_to(self._cwd) else str(full)) + ending


class _Walk:
    """Yields the files of a folder that tools run, top down; the number of entries is limited."""

    def __init__(self, root: Path, hidden: Collection[Path], is_stopped: Callable[[], bool]) -> None:
        self._root = root
        self._hidden = hidden
        self._is_stopped = is_stopped
        self._left = _MAX_ENTRIES
        self._pending: deque[tuple[str, bool]] = deque([("", False)])
        self.is_complete = True

    def files(self) -> Iterator[tuple[str, str, str]]:
        """Yield paths with the tool that runs them, and the path to report."""
        while self._pending and not self._is_stopped():
            folder, is_behind_link = self._pending.popleft()
            entries = self._list(folder)
            is_environment = _ENVIRONMENT_MARK in entries
            if is_environment:
                yield from self._environment(folder, entries)
            for name, entry in entries.items():
                path = f"{folder}/{name}" if folder else name
                if entry.is_symlink():
                    yield from self._link(path, is_behind_link=is_behind_link)
                elif not entry.is_dir(follow_symlinks=False):
                    if (runner := find_runner(path)) is not None:
                        yield path, runner, path
                elif name == _PACKAGES:
                    yield from self._programs(f"{path}/.bin", f"{path}/", INSTALLED_PROGRAMS)
                elif name != _GIT and not (is_environment and name in {*_LIBRARY_FOLDERS, *_PROGRAM_FOLDERS}):
                    self._pending.append((path, is_behind_link))

    def _link(self, path: str, *, is_behind_link: bool) -> Iterator[tuple[str, str, str]]:
        """Yield a link that a tool follows; links to folders of the workspace are followed."""
        if (runner := find_runner(path) or find_runner(f"{path}/{_NAME_IN_A_FOLDER}")) is None:
            return
        yield path, runner, path
        target = (self._root / path).resolve()
        if not is_behind_link and target.is_relative_to(self._root) and target.is_dir():
            self._pending.append((path, True))

    def _environment(self, folder: str, entries: "Mapping[str, os.DirEntry[str]]") -> Iterator[tuple[str, str, str]]:
        below = f"{folder}/" if folder else ""
        yield f"{below}{_ENVIRONMENT_MARK}", ENVIRONMENT_PROGRAMS, below or "./"
        for name in _PROGRAM_FOLDERS:
            if name in entries:
                yield from self._programs(f"{below}{name}", below or "./", ENVIRONMENT_PROGRAMS)
        for library in ("lib", "Lib"):
            for python in self._list(f"{below}{library}") if library in entries else ():
                packages = f"{below}{library}/{python}/site-packages"
                for name in self._list(packages):
                    if (runner := find_runner(name)) is not None:
                        yield f"{packages}/{name}", runner, f"{packages}/{name}"

    def _programs(self, folder: str, shown: str, runner: str) -> Iterator[tuple[str, str, str]]:
        for name in self._list(folder):
            yield f"{folder}/{name}", runner, shown

    def _list(self, folder: str) -> "dict[str, os.DirEntry[str]]":
        if self._left <= 0 or self._root / folder in self._hidden:
            self.is_complete = self.is_complete and self._left > 0
            return {}
        try:
            with os.scandir(self._root / folder) as entries:
                found = {entry.name: entry for entry in entries}
        except OSError:
            return {}
        self._left -= len(found)
        return found


def _read_state(root: Path, path: str, runner: str, shown: str, bytes_left: int) -> _State | None:
    full = root / path
    try:
        status = full.lstat()
        target = str(full.readlink()) if stat.S_ISLNK(status.st_mode) else ""
        behind = full.resolve() if target else full
        # Commands cannot change the target of a link to outside.
        content = behind.stat() if target and behind.is_relative_to(root) else status
    except (OSError, RuntimeError):
        return None
    moments = [status.st_ctime_ns, content.st_ctime_ns, *_folder_times(root, path)]
    digest = None
    if stat.S_ISREG(content.st_mode) and content.st_size <= min(_MAX_FILE_BYTES, bytes_left):
        digest = _digest(behind)
    if target and digest is not None:
        digest = f"{target}\0{digest}"
    signature = (content.st_mode, content.st_size, content.st_mtime_ns, content.st_ctime_ns, content.st_ino, target)
    return _State(runner, shown, signature, digest, tuple(moments))


def _folder_times(root: Path, path: str) -> Iterator[int]:
    for parent in PurePosixPath(path).parents:
        if str(parent) != ".":
            yield (root / parent).lstat().st_ctime_ns


def _digest(path: Path) -> str | None:
    try:
        fd = os.open(path, READ_FLAGS)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return content_hash(file.read(_MAX_FILE_BYTES + 1))
