"""Hooks of a project: used only if the user has trusted the folder, and only as long as they have not changed."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from agent.config.user_dirs import PROJECT_HOOK_FILES
from agent.hooks.command_config import CommandSpec, parse_commands
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.atomic_write import write_atomic

_SCRIPT_FOLDERS = (".windlass/hooks", ".claude/hooks")
_FOLDER_VARIABLES = lazy_pattern(r"\$\{?(?:CLAUDE|WINDLASS)_PROJECT_DIR\}?/?")
_WORDS = lazy_pattern(r"[^\s\"'`;|&()<>=]+")
MAX_FILES = 200
REVOKED = "is not run: the hooks of {folder} are no longer trusted (agent trust shows them)"
CHANGED = "is not run: the hooks of {folder} have changed since you trusted them (agent trust shows them)"
TrustStatus: TypeAlias = Literal["none", "untrusted", "changed", "trusted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHooks:
    """The hook commands of a folder, and the files in it that they run, each with the hash of its content."""

    folder: Path
    specs: tuple[CommandSpec, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The hash of everything that the user trusts."""
        commands = [[spec.event, spec.matcher, spec.command, spec.timeout_s, spec.on_failure] for spec in self.specs]
        return hashlib.sha256(json.dumps([commands, self.files]).encode()).hexdigest()


def read_project_hooks(folder: Path) -> ProjectHooks:
    """Read the hooks of a folder without running anything. Raises ConfigError if a file of them cannot be used."""
    folder = folder.resolve()
    specs: list[CommandSpec] = []
    unused: list[str] = []
    for name in PROJECT_HOOK_FILES:
        text = _read(folder / name)
        if text is not None:
            found = parse_commands(text, name)
            specs += found.specs
            unused += found.unused
    if not specs:
        return ProjectHooks(folder=folder, unused=tuple(unused))
    paths = sorted({path for spec in specs for path in _named_files(spec.command, folder)} | set(_scripts(folder)))
    if len(paths) > MAX_FILES:
        raise ConfigError(f"the hooks of {folder} concern more than {MAX_FILES} files")
    files = tuple((str(path.relative_to(folder)), _hash(path)) for path in paths)
    return ProjectHooks(folder=folder, specs=tuple(specs), files=files, unused=tuple(unused))


class TrustStore:
    """The folders whose hooks the user has trusted, each with the fingerprint of that moment."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / "trusted.json"

    def all(self) -> dict[str, dict[str, str]]:
        """Return what was trusted and when, by folder; a damaged file trusts nothing."""
        try:
            data = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        entries = data.items() if isinstance(data, Mapping) else ()
        return {str(folder): dict(entry) for folder, entry in entries if isinstance(entry, Mapping)}

    def status(self, hooks: ProjectHooks) -> TrustStatus:
        """Return whether the hooks of a folder are trusted as they are now."""
        if not hooks.specs:
            return "none"
        entry = self.all().get(str(hooks.folder))
        if entry is None:
            return "untrusted"
        return "trusted" if entry.get("fingerprint") == hooks.fingerprint else "changed"

    def trust(self, hooks: ProjectHooks) -> None:
        """Trust the hooks of a folder as they are now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._write({**self.all(), str(hooks.folder): {"fingerprint": hooks.fingerprint, "since": now}})

    def revoke(self, folder: Path) -> bool:
        """Trust a folder no more; False if it was not trusted."""
        entries = self.all()
        if entries.pop(str(folder.resolve()), None) is None:
            return False
        self._write(entries)
        return True

    def _write(self, entries: Mapping[str, Mapping[str, str]]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(self._file, f"{json.dumps(entries, indent=2)}\n".encode())


def check_trusted(store: TrustStore, hooks: ProjectHooks) -> str:
    """Return why hooks that were trusted may not run now; empty if they are as they were, and still trusted."""
    try:
        is_same = read_project_hooks(hooks.folder).fingerprint == hooks.fingerprint
    except ConfigError:
        is_same = False
    if not is_same:
        return CHANGED.format(folder=hooks.folder)
    return "" if store.status(hooks) == "trusted" else REVOKED.format(folder=hooks.folder)


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8") if path.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def _named_files(command: str, folder: Path) -> Iterator[Path]:
    """Yield the files of the folder that a command names."""
    for word in _WORDS.findall(_FOLDER_VARIABLES.sub("./", command)):
        path = (folder / word).resolve()
        if path.is_file() and path.is_relative_to(folder):
            yield path


def _scripts(folder: Path) -> Iterator[Path]:
    """Yield all files in the folders where hook scripts are kept: they may import each other."""
    for name in _SCRIPT_FOLDERS:
        for path in sorted((folder / name).rglob("*"))[: MAX_FILES + 1]:
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                yield path


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
