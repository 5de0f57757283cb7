"""The state of a folder after a power cut: what was synced, and a random part of what was not."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = re.compile(rb"([a-z]) (-?\d+) (\d+) (\d+) (\d+)\n")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One line of the shim's journal."""

    kind: str
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""


@dataclass
class _Disk:
    """Names and contents; a file keeps its content when it is renamed."""

    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytearray] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)


def read_journal(path: Path) -> Iterator[Change]:
    """Yield the changes in order; the last record may be torn by a kill."""
    data, at = path.read_bytes() if path.exists() else b"", 0
    while match := _HEAD.match(data, at):
        kind, (offset, first, second, size) = match[1].decode(), map(int, match.groups()[1:])
        start = match.end()
        at = start + first + second + size
        if at > len(data):
            return
        name = data[start : start + first].decode(errors="surrogateescape")
        other = data[start + first : start + first + second].decode(errors="surrogateescape")
        yield Change(kind=kind, path=name, other=other, offset=offset, data=data[start + first + second : at])


def surviving(changes: list[Change], moment: int) -> list[Change]:
    """Return the changes that a power cut leaves: all synced ones, and the first ones up to `moment`."""
    synced: set[str] = set()
    kept: list[bool] = []
    # Backwards: a change is safe if its file, or for a name the folder, was synced later.
    for change in reversed(changes):
        if change.kind == "s":
            synced.add(change.path)
            kept.append(False)
            continue
        name = change.other or change.path
        parent = name.rpartition("/")[0]
        if change.kind in ("w", "t"):
            kept.append(change.path in synced)
        else:
            kept.append(parent in synced or (change.kind == "c" and name in synced))
        if change.kind == "r":
            # Before, the file had its old name.
            synced.discard(change.path)
            if change.other in synced:
                synced.add(change.path)
    kept.reverse()
    return [change for n, change in enumerate(changes) if change.kind != "s" and (kept[n] or n < moment)]


def replay(before: Path, journal: Path, after: Path, rng: random.Random) -> None:
    """Write to `after`, the folder of the journal, what is left of `before` and the changes since."""
    disk = _Disk()
    root = str(after)
    if before.exists():
        for file in sorted(before.rglob("*")):
            name = f"{root}/{file.relative_to(before)}"
            if file.is_dir():
                disk.folders.add(name)
            elif file.is_file():
                _create(disk, name, file.read_bytes())
    changes = list(read_journal(journal))
    for change in surviving(changes, rng.choice((0, rng.randrange(len(changes) + 1)))):
        _apply(disk, change)
    _write(disk, after)


def _create(disk: _Disk, name: str, content: bytes = b"") -> None:
    number = len(disk.contents)
    disk.names[name], disk.contents[number] = number, bytearray(content)


def _apply(disk: _Disk, change: Change) -> None:
    match change.kind:
        case "c":
            _create(disk, change.path)
        case "m":
            disk.folders.add(change.path)
        case "u":
            disk.names.pop(change.path, None)
            disk.folders.discard(change.path)
        case "r":
            if change.path in disk.names:
                disk.names[change.other] = disk.names.pop(change.path)
        case "w" | "t" if change.path in disk.names:
            content = disk.contents[disk.names[change.path]]
            end = change.offset + len(change.data)
            content.extend(b"\0" * (end - len(content)))
            if change.kind == "t":
                del content[change.offset :]
            else:
                content[change.offset : end] = change.data
        case _:
            pass


def _write(disk: _Disk, after: Path) -> None:
    for folder in (str(after), *sorted(disk.folders)):
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, number in disk.names.items():
        path = Path(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(disk.contents[number])
        path.chmod(0o600)
