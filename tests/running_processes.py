"""The processes of this machine: their command lines or environments."""

from collections.abc import Iterator
from pathlib import Path


def read_all(kind: str) -> Iterator[tuple[int, bytes]]:
    """Yield the id and the `cmdline` or `environ` of every process; not with `glob`, which raises if one just ends."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                content = (folder / kind).read_bytes()
            except OSError:
                continue
            yield int(folder.name), content
