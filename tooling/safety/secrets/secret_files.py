"""The values in files that tools refuse to read, used to mask the output of commands."""

import asyncio
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.result import ToolResult
from tooling.files.open_regular import open_regular
from tooling.files.sensitive_files import is_sensitive_file
from tooling.safety.secrets.dumps import find_dumped, find_spread
from tooling.safety.secrets.redact import MASK, Redactor, encoded_forms, merge_spans

_SKIPPED_FOLDERS = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", "target"}
    | {".pytest_cache", ".gradle", ".next", ".terraform", "site-packages", "vendor", "bower_components"}
)
_MAX_ENTRIES = 20_000
_MAX_DEPTH = 8
_MAX_FILES = 200
_MAX_FILE_BYTES = 256_000
_MAX_VALUES = 500
_MAX_DUMP_CHARS = 2_000_000
_SECRET_KEY = lazy_pattern(
    r"key|token|secret|passw|pwd|passphrase|credential|auth|private|signature|salt|dsn|webhook|cookie|session|\bpass\b|_pass",
    re.IGNORECASE,
)
_ASSIGNMENT = lazy_pattern(
    r"""^\s*(?:export\s+)?["']?([\w.:/-]+?)["']?\s*(?:=|:\s)\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s#"'][^\n]*))"""
)
_OPEN_QUOTE = lazy_pattern(r"""^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*(["'])([^"']*)$""")
_JSON_PAIR = lazy_pattern(r'"([\w.-]+)"\s*:\s*"((?:[^"\\\n]|\\.)*)"')
_WORD_PAIR = lazy_pattern(r"\b(password|passwd|account|secret|token)\s+(\S+)", re.IGNORECASE)
_URL_PASSWORD = lazy_pattern(r"://[^/\s:@]*:([^/\s@]+)@")
_KEY_LINE = lazy_pattern(r"^[A-Za-z0-9+/]{40,}={0,2}$")
_TOKEN = lazy_pattern(r"[A-Za-z0-9_+/=.-]{20,}")
_KINDS = (lazy_pattern(r"[a-z]"), lazy_pattern(r"[A-Z]"), lazy_pattern(r"\d"), lazy_pattern(r"[^A-Za-z\d]"))
_MIN_LENGTH = 8
_COLONS = frozenset({".pgpass", ".htpasswd"})
# Number of folders that can be checked again faster than a thread can be started.
_FEW_FOLDERS = 30
# A folder changed just before it was listed may change again within the same clock tick.
_TICK_NS = 2_000_000_000


class SecretFiles(Interceptor):
    """Adds the values in secret files to the redactor before each command; file tools do not read these files."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._finder = SecretFileFinder()
        self._known: dict[Path, tuple[int, int]] = {}
        self._values: set[bytes] = set()
        self._forms: set[str] = set()

    async def before(self, call: PendingCall) -> ToolResult | None:
        """Read secret files that are new or have changed."""
        if call.action.effect == "execute":
            folders = (call.ctx.working_dir, *call.ctx.extra_dirs)
            if 0 < self._finder.folder_count <= _FEW_FOLDERS:
                self.learn(folders)
            else:
                await asyncio.to_thread(self.learn, folders)
        return None

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Mask dumps of a secret file, in which no value is visible as a whole."""
        if call.action.effect != "execute" or not self._values or len(result.content) > _MAX_DUMP_CHARS:
            return result
        content = result.content
        found = [*find_dumped(content, self._values), *find_spread(content, self._forms)]
        for start, end in reversed(merge_spans(sorted(found))):
            content = f"{content[:start]}{MASK}{content[end:]}"
        return replace(result, content=content)

    def learn(self, folders: Sequence[Path]) -> None:
        """Read new and changed secret files in these folders, within fixed limits."""
        for path in self._finder.find(folders):
            try:
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                state = (status.st_mtime_ns, status.st_size)
                if self._known.get(path) == state:
                    continue
                # A command may have replaced it meanwhile.
                with open_regular(path) as file:
                    text = file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
            except OSError:
                continue
            self._known[path] = state
            values = secret_values(path.name, text)
            self._redactor.learn(values)
            self._values |= {value.encode("utf-8", "surrogateescape") for value in values}
            self._forms |= {form for value in values for form in encoded_forms(value)}


class _Listing(NamedTuple):
    """The relevant contents of a folder: subfolders, and files with the name of a secret."""

    ctime_ns: int
    listed_ns: int
    entries: int
    folders: tuple[Path, ...]
    secrets: tuple[Path, ...]


class SecretFileFinder:
    """Finds files with the names of secret files; only changed folders are listed again."""

    def __init__(self) -> None:
        self._listings: dict[Path, _Listing] = {}

    @property
    def folder_count(self) -> int:
        """Number of folders visited by the last search."""
        return len(self._listings)

    def find(self, folders: Sequence[Path]) -> list[Path]:
        """Return the files in folders, within fixed limits; dependencies are not searched."""
        found: list[Path] = []
        pending = [(folder, 0) for folder in reversed(folders)]
        left, before, self._listings = _MAX_ENTRIES, self._listings, {}
        while pending and left > 0 and len(found) < _MAX_FILES:
            folder, depth = pending.pop()
            try:
                listing = self._listings[folder] = _list_folder(folder, before.get(folder))
            except OSError:
                continue
            left -= listing.entries
            found += listing.secrets
            if depth < _MAX_DEPTH:
                pending += ((inner, depth + 1) for inner in listing.folders)
        return found


def _list_folder(folder: Path, known: _Listing | None) -> _Listing:
    # Unlike mtime, no command can set it back.
    ctime_ns = folder.stat().st_ctime_ns
    if known and known.ctime_ns == ctime_ns and known.listed_ns - ctime_ns > _TICK_NS:
        return known
    listed_ns = time.time_ns()
    folders: list[Path] = []
    secrets: list[Path] = []
    number = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            number += 1
            if not entry.is_dir(follow_symlinks=False):
                if is_sensitive_file(entry.path):
                    secrets.append(Path(entry.path))
            elif entry.name not in _SKIPPED_FOLDERS:
                folders.append(Path(entry.path))
    return _Listing(ctime_ns, listed_ns, number, tuple(folders), tuple(secrets))


def secret_values(name: str, text: str) -> list[str]:
    """Return the values in a file that are secret by their key or their form; settings like a port are not."""
    found: dict[str, None] = {}
    for value in _candidates(name.lower(), text):
        found.setdefault(value.strip())
        if len(found) >= _MAX_VALUES:
            break
    return [value for value in found if len(value) >= _MIN_LENGTH]


def _candidates(name: str, text: str) -> Iterator[str]:
    for key, value in _JSON_PAIR.findall(text):
        yield from _secret_parts(key, value.replace("\\/", "/").replace("\\n", "\n"))
    key, quote = "", ""
    for line in text.splitlines():
        # A value in quotes may have several lines.
        if quote:
            yield from _secret_parts(key, line.partition(quote)[0].strip())
            quote = "" if quote in line else quote
        elif opened := _OPEN_QUOTE.match(line):
            key, quote = opened[1], opened[2]
            yield from _secret_parts(key, opened[3].strip())
        if name in _COLONS and ":" in line:
            yield line.rpartition(":")[2]
        if assigned := _ASSIGNMENT.match(line):
            value = next((group for group in assigned.groups()[1:] if group is not None), "")
            yield from _secret_parts(assigned[1], value.strip().rstrip(","))
        if _KEY_LINE.match(line.strip()):
            yield line.strip()
        for _, value in _WORD_PAIR.findall(line):
            yield from _secret_parts("password", value)


def _secret_parts(key: str, value: str) -> Iterator[str]:
    yield from _URL_PASSWORD.findall(value)
    if "\n" in value:
        yield from (line for line in value.splitlines() if _KEY_LINE.match(line))
        return
    is_named = _SECRET_KEY.search(key) is not None and len(value) >= _MIN_LENGTH and _kind_count(value) >= 2
    is_token = _TOKEN.fullmatch(value) is not None and _kind_count(value) >= 3 and value[:1] != "/"
    if is_named or is_token:
        yield value


def _kind_count(value: str) -> int:
    return sum(kind.search(value) is not None for kind in _KINDS)
