"""File changes recorded in a session's log: in order, grouped by file, and as diffs."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath

from agent.protocol.events import Envelope, FilesChanged, RunStarted
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import as_text
from tooling.files.file_diff import compute_change
from tooling.files.pending_write import open_for_write
from tooling.files.resolve import ResolvedPath

_MAX_DIFF_CHARS = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """One file change with its run and step; `root` is the working folder of that run."""

    seq: int
    run_id: str
    step_id: str
    root: Path
    change: FileChange

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self.root / self.change.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """All changes of one file, oldest first."""

    changes: tuple[RecordedChange, ...]

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self.changes[-1].path

    @property
    def display_path(self) -> str:
        """The path as the tools reported it."""
        return self.changes[-1].change.path

    @property
    def before(self) -> str | None:
        """The hash of the content before the first change; None if the file did not exist."""
        return self.changes[0].change.before

    @property
    def after(self) -> str | None:
        """The hash of the content after the last change; None if the file was deleted."""
        return self.changes[-1].change.after

    @property
    def mode(self) -> int | None:
        """The permissions before the first change."""
        return self.changes[0].change.mode

    @property
    def has_all_hashes(self) -> bool:
        """Whether the log has every hash; early versions did not record them."""
        return all(
            (recorded.change.before is not None or recorded.change.status == "added")
            and (recorded.change.after is not None or recorded.change.status == "deleted")
            for recorded in self.changes
        )

    @property
    def is_contiguous(self) -> bool:
        """Whether nothing else modified the file between these changes."""
        return all(earlier.change.after == later.change.before for earlier, later in pairwise(self.changes))


def collect_changes(
    events: Iterable[Envelope], *, run: str | None = None, step: str | None = None
) -> list[RecordedChange]:
    """Return the changes of a session, oldest first; `step` without `run` means the newest run with that step."""
    roots: dict[str, Path] = {}
    recorded: list[RecordedChange] = []
    for envelope in events:
        if isinstance(envelope.event, RunStarted):
            roots[envelope.run_id] = Path(envelope.event.cwd)
        elif isinstance(envelope.event, FilesChanged):
            root = roots.get(envelope.run_id, Path("/"))
            recorded += [_recorded_change(envelope, change, root) for change in envelope.event.changes]
    if step is not None and run is None:
        run = next((change.run_id for change in reversed(recorded) if change.step_id == step), None)
    return [change for change in recorded if run in (None, change.run_id) and step in (None, change.step_id)]


def group_by_file(changes: Iterable[RecordedChange]) -> list[ChangedFile]:
    """Group changes by file, the most recently changed file first."""
    by_path: dict[Path, list[RecordedChange]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    files = [ChangedFile(changes=tuple(group)) for group in by_path.values()]
    return sorted(files, key=lambda file: file.changes[-1].seq, reverse=True)


def resolve_recorded_path(file: ChangedFile) -> ResolvedPath:
    """Resolve a recorded path below its run's working folder, or below / if it is absolute."""
    root = file.changes[-1].root
    path = PurePosixPath(file.display_path)
    if path.is_absolute():
        root, path = Path("/"), path.relative_to("/")
    if ".." in path.parts:
        raise ToolError(f"{file.display_path} is not a path that a tool could have written.")
    return ResolvedPath(root=root, relative_path=str(path), display_path=file.display_path)


def net_diff(file: ChangedFile, blobs: BlobStore) -> str:
    """Return one diff of all changes of a file, or the recorded diffs if a saved content is missing."""
    before = _content(file.before, file, blobs)
    after = _content(file.after, file, blobs)
    is_complete = (before is not None or file.before is None) and (after is not None or file.after is None)
    if file.has_all_hashes and is_complete:
        return compute_change(file.display_path, as_text(before), as_text(after), max_chars=_MAX_DIFF_CHARS).diff
    return "".join(recorded.change.diff for recorded in file.changes)


def step_diffs(changes: list[RecordedChange]) -> Iterator[str]:
    """Yield the recorded diffs one by one, each under a line that names its run and step."""
    for recorded in changes:
        change = recorded.change
        yield f"# {recorded.run_id} {recorded.step_id}: {change.path} ({change.status})\n{change.diff}"


def _content(digest: str | None, file: ChangedFile, blobs: BlobStore) -> bytes | None:
    """Return the content with this hash: a saved copy, or the file itself if it still matches."""
    if digest is None:
        return None
    saved = blobs.read(digest)
    if saved is not None:
        return saved
    try:
        with open_for_write(lambda: resolve_recorded_path(file), makes_folders=False) as target:
            current = target.read()
    except ToolError:
        return None
    return current.data if current is not None and content_hash(current.data) == digest else None


def _recorded_change(envelope: Envelope, change: FileChange, root: Path) -> RecordedChange:
    return RecordedChange(
        seq=envelope.seq, run_id=envelope.run_id, step_id=envelope.step_id or "", root=root, change=change
    )
