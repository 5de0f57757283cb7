"""Hooks of a project: used only if the user has trusted the folder and the hooks have not changed since."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from agent.config.user_dirs import PROJECT_HOOK_FILES
from agent.hooks.command_config import CommandSpec, parse_commands
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.atomic_write import write_atomic
from tooling.files.open_regular import open_regular, read_regular

_SCRIPT_FOLDERS = (".windlass/hooks", ".claude/hooks")
_FOLDER_VARIABLES = lazy_pattern(r"\$\{?(?:CLAUDE|WINDLASS)_PROJECT_DIR\}?/?")
_WORDS = lazy_pattern(r"[^\s\"'`;|&()<>=]+")
# Files that Python can import; compiled files in `__pycache__` are not used for hooks.
_MODULES = (".py", ".pyc", ".so")
MAX_FILES = 200
TOO_MANY_HINT = "keep scripts and the modules they use in .claude/hooks or .windlass/hooks"
REVOKED = "is not run: the hooks of {folder} are no longer trusted (agent trust shows them)"
CHANGED = "is not run: the hooks of {folder} have changed since you trusted them (agent trust shows them)"
TrustStatus: TypeAlias = Literal["none", "untrusted", "changed", "trusted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHooks:
    """The hook commands of a folder, and the files in it that they run, each with its content hash."""

    folder: Path
    specs: tuple[CommandSpec, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The hash of everything the user trusts."""
        commands = [[spec.event, spec.matcher, spec.command, spec.timeout_s, spec.on_failure] for spec in self.specs]
        return hashlib.sha256(json.dumps([commands, self.files]).encode()).hexdigest()


def read_project_hooks(folder: Path) -> ProjectHooks:
    """Read the hooks of a folder without running anything. Raises ConfigError for an unusable file."""
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
    paths = set(_scripts(folder))
    for spec in specs:
        paths |= {*_named_files(spec.command, folder), *_run_files(spec.command, folder)}
    paths |= {module for path in paths if path.suffix == ".py" for module in _modules_beside(path)}
    if len(paths) > MAX_FILES:
        raise ConfigError(f"the hooks of {folder} concern more than {MAX_FILES} files", TOO_MANY_HINT)
    files = tuple((str(path.relative_to(folder)), _hash(path)) for path in sorted(paths))
    return ProjectHooks(folder=folder, specs=tuple(specs), files=files, unused=tuple(unused))


class TrustStore:
    """The folders whose hooks the user has trusted, each with the fingerprint at that time."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / "trusted.json"

    def all(self) -> dict[str, dict[str, str]]:
        """Return the trusted folders with fingerprint and time; a damaged file trusts nothing."""
        try:
            data = json.loads(read_regular(self._file))
        except (OSError, ValueError):
            return {}
        entries = data.items() if isinstance(data, Mapping) else ()
        return {str(folder): dict(entry) for folder, entry in entries if isinstance(entry, Mapping)}

    def status(self, hooks: ProjectHooks) -> TrustStatus:
        """Return whether the hooks of a folder are trusted in their current state."""
        if not hooks.specs:
            return "none"
        entry = self.all().get(str(hooks.folder))
        if entry is None:
            return "untrusted"
        return "trusted" if entry.get("fingerprint") == hooks.fingerprint else "changed"

    def trust(self, hooks: ProjectHooks) -> None:
        """Trust the hooks of a folder in their current state."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._write({**self.all(), str(hooks.folder): {"fingerprint": hooks.fingerprint, "since": now}})

    def revoke(self, folder: Path) -> bool:
        """Revoke the trust in a folder; False if it was not trusted."""
        entries = self.all()
        if entries.pop(str(folder.resolve()), None) is None:
            return False
        self._write(entries)
        return True

    def _write(self, entries: Mapping[str, Mapping[str, str]]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(self._file, f"{json.dumps(entries, indent=2)}\n".encode())


def check_trusted(store: TrustStore, hooks: ProjectHooks) -> str:
    """Return why trusted hooks may not run now; empty if they are unchanged and still trusted."""
    try:
        is_same = read_project_hooks(hooks.folder).fingerprint == hooks.fingerprint
    except ConfigError:
        is_same = False
    if not is_same:
        return CHANGED.format(folder=hooks.folder)
    return "" if store.status(hooks) == "trusted" else REVOKED.format(folder=hooks.folder)


def _read(path: Path) -> str | None:
    try:
        return read_regular(path).decode() if path.is_file() else None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def _named_files(command: str, folder: Path) -> Iterator[Path]:
    """Yield the files of the folder that a command names."""
    for word in _WORDS.findall(_FOLDER_VARIABLES.sub("./", command)):
        path = (folder / word).resolve()
        if path.is_file() and path.is_relative_to(folder):
            yield path


def _run_files(command: str, folder: Path) -> Iterator[Path]:
    """Yield the files of the folder that a command runs without naming them, such as a makefile."""
    # Loads the shell grammar, which runs without project hooks do not need here.
    from tooling.safety.shell.reader import ShellReader
    from tooling.safety.shell.script_files import script_files

    reader = ShellReader(str(folder))
    try:
        reader.read(_FOLDER_VARIABLES.sub("./", command))
    except RecursionError:
        return
    for name in (name for one in reader.reading.commands for name in script_files(one)):
        path = Path(os.path.normpath(name))
        if path.is_relative_to(folder):
            # A missing file counts, too: if created, it would run instead of another.
            yield path.resolve() if path.is_file() and path.resolve().is_relative_to(folder) else path


def _scripts(folder: Path) -> Iterator[Path]:
    """Yield all files and links in the folders for hook scripts, because scripts may import each other."""
    for name in _SCRIPT_FOLDERS:
        yield from _files_below(folder / name, lambda path: True)


def _modules_beside(script: Path) -> Iterator[Path]:
    """Yield the files that a Python script can import from its folder, also in place of standard modules."""
    yield from _files_below(script.parent, lambda path: path.suffix in _MODULES or path.is_symlink())


def _files_below(folder: Path, is_wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield files up to just above the allowed number; links are not followed."""
    count = 0
    for top, folders, names in os.walk(folder):
        links = [name for name in folders if Path(top, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in (Path(top, name) for name in sorted((*names, *links))):
            if is_wanted(path):
                yield path
                count += 1
                if count > MAX_FILES:
                    return


def _hash(path: Path) -> str:
    """Return the hash of a file, empty if there is none; for a link, the hash of its target."""
    if path.is_symlink():
        target = path.resolve()
        if target.is_dir():
            raise ConfigError(f"{path} is a link to a folder, so what it contains cannot be watched")
        return hashlib.sha256(f"{path.readlink()} {_hash(target)}".encode()).hexdigest()
    if not path.exists():
        return ""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
