"""The values in files that tools refuse to read, so that the output of commands can be masked for them."""

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.result import ToolResult
from tooling.files.sensitive_files import is_sensitive_file
from tooling.safety.secrets.dumps import find_dumped
from tooling.safety.secrets.redact import MASK, Redactor

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
_JSON_PAIR = lazy_pattern(r'"([\w.-]+)"\s*:\s*"((?:[^"\\\n]|\\.)*)"')
_WORD_PAIR = lazy_pattern(r"\b(password|passwd|account|secret|token)\s+(\S+)", re.IGNORECASE)
_URL_PASSWORD = lazy_pattern(r"://[^/\s:@]*:([^/\s@]+)@")
_KEY_LINE = lazy_pattern(r"^[A-Za-z0-9+/]{40,}={0,2}$")
_TOKEN = lazy_pattern(r"[A-Za-z0-9_+/=.-]{20,}")
_KINDS = (lazy_pattern(r"[a-z]"), lazy_pattern(r"[A-Z]"), lazy_pattern(r"\d"), lazy_pattern(r"[^A-Za-z\d]"))
_MIN_LENGTH = 8
_COLONS = frozenset({".pgpass", ".htpasswd"})


class SecretFiles(Interceptor):
    """Teaches the redactor the values in secret files before each command; file tools do not read these files."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: dict[Path, tuple[int, int]] = {}
        self._values: set[bytes] = set()

    async def before(self, call: PendingCall) -> ToolResult | None:
        """Look for secret files that are new or have changed."""
        if call.action.effect == "execute":
            await asyncio.to_thread(self.learn, (call.ctx.working_dir, *call.ctx.extra_dirs))
        return None

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Mask dumps of a secret file, in which no value is to be seen as a whole."""
        if call.action.effect != "execute" or not self._values or len(result.content) > _MAX_DUMP_CHARS:
            return result
        content = result.content
        for start, end in sorted(find_dumped(content, self._values), reverse=True):
            content = f"{content[:start]}{MASK}{content[end:]}"
        return replace(result, content=content)

    def learn(self, folders: Sequence[Path]) -> None:
        """Read new and changed secret files in these folders, within fixed limits."""
        for path in find_secret_files(folders):
            try:
                status = path.stat()
                state = (status.st_mtime_ns, status.st_size)
                if self._known.get(path) == state:
                    continue
                with path.open("rb") as file:
                    text = file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
            except OSError:
                continue
            self._known[path] = state
            values = secret_values(path.name, text)
            self._redactor.learn(values)
            self._values |= {value.encode("utf-8", "surrogateescape") for value in values}


def find_secret_files(folders: Sequence[Path]) -> list[Path]:
    """Return the regular files in folders whose names say that they hold secrets; dependencies are not searched."""
    found: list[Path] = []
    pending = [(folder, 0) for folder in reversed(folders)]
    left = _MAX_ENTRIES
    while pending and left > 0 and len(found) < _MAX_FILES:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _MAX_DEPTH and entry.name not in _SKIPPED_FOLDERS:
                            pending.append((Path(entry.path), depth + 1))
                    elif entry.is_file() and is_sensitive_file(entry.path):
                        found.append(Path(entry.path))
        except OSError:
            continue
    return found


def secret_values(name: str, text: str) -> list[str]:
    """Return the values in a file that are secret by their key or their look; settings like a port are not."""
    found: dict[str, None] = {}
    for value in _candidates(name.lower(), text):
        found.setdefault(value.strip())
        if len(found) >= _MAX_VALUES:
            break
    return [value for value in found if len(value) >= _MIN_LENGTH]


def _candidates(name: str, text: str) -> Iterator[str]:
    for key, value in _JSON_PAIR.findall(text):
        yield from _secret_parts(key, value.replace("\\/", "/").replace("\\n", "\n"))
    for line in text.splitlines():
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
