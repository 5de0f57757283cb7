"""File changes recorded in a session's log: in order, grouped by file, and as diffs."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from agent.protocol.envelope import Envelope
from agent.protocol.events import FilesChanged, RunStarted
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange, ToolError
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import as_text
from tooling.files.file_diff import compute_change
from tooling.files.pending_write import open_for_write
from tooling.files.resolve import ResolvedPath

Kind: TypeAlias = Literal["file", "link", "folder"]
_MAX_DIFF_CHARS = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """One file change with its run and step; `root` is the working folder of that run.

    `command_id` is the command that made it, None for a file tool; `overlaps` are other steps that may have made it.
    """

    seq: int
    run_id: str
    step_id: str
    root: Path
    change: FileChange
    command_id: str | None = None
    overlaps: tuple[str, ...] = ()

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
    def after_mode(self) -> int | None:
        """The permissions after the last change, if they are known."""
        return self.changes[-1].change.after_mode

    @property
    def kind_before(self) -> Kind:
        """The kind of entry before the first change."""
        return self.changes[0].change.kind

    @property
    def kind_after(self) -> Kind:
        """The kind of entry after the last change."""
        return self.changes[-1].change.kind

    @property
    def is_changed(self) -> bool:
        """Whether all changes combined change something, as far as known."""
        is_other = (self.before, self.kind_before) != (self.after, self.kind_after)
        has_other_mode = None not in (self.mode, self.after_mode) and self.mode != self.after_mode
        return not self.has_all_hashes or has_other_mode or (is_other and (self.before or self.after) is not None)

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
            recorded += _recorded_changes(envelope, envelope.event, root)
    if step is not None and run is None:
        run = next((change.run_id for change in reversed(recorded) if change.step_id == step), None)
    return [change for change in recorded if run in (None, change.run_id) and step in (None, change.step_id)]


def collect_skipped(events: Iterable[Envelope], *, run: str | None = None, step: str | None = None) -> list[str]:
    """Return what commands changed but undo cannot restore, each once; `step` without `run` means any run."""
    found = [
        text
        for envelope in events
        if isinstance(envelope.event, FilesChanged)
        and run in (None, envelope.run_id)
        and step in (None, envelope.step_id)
        for text in envelope.event.skipped or ()
    ]
    return list(dict.fromkeys(found))


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
    if file.kind_before == file.kind_after == "folder":
        return ""
    before = _content(file.before, file, blobs)
    after = _content(file.after, file, blobs)
    is_complete = (before is not None or file.before is None) and (after is not None or file.after is None)
    if file.has_all_hashes and is_complete:
        diff = compute_change(file.display_path, as_text(before), as_text(after), max_chars=_MAX_DIFF_CHARS).diff
        return diff or mode_diff(file.display_path, file.mode, file.after_mode)
    return "".join(recorded.change.diff for recorded in file.changes)


def step_diffs(changes: list[RecordedChange], blobs: BlobStore) -> Iterator[str]:
    """Yield the changes one by one, each under a line that names its run and step."""
    for recorded in changes:
        change = recorded.change
        kind = "" if change.kind == "file" else f" {change.kind}"
        by = " by a command" if recorded.command_id else ""
        others = f", perhaps of {', '.join(recorded.overlaps)}" if recorded.overlaps else ""
        diff = change.diff or net_diff(ChangedFile(changes=(recorded,)), blobs)
        yield f"# {recorded.run_id} {recorded.step_id}: {change.path} ({change.status}{kind}{by}{others})\n{diff}"


def mode_diff(path: str, before: int | None, after: int | None) -> str:
    """Return the text for a change of the mode, in git's format; empty if there is none."""
    if before is None or after is None or before == after:
        return ""
    return f"--- a/{path}\n+++ b/{path}\nold mode {before:o}\nnew mode {after:o}\n"


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


def _recorded_changes(envelope: Envelope, event: FilesChanged, root: Path) -> Iterator[RecordedChange]:
    for change in event.changes:
        yield RecordedChange(
            seq=envelope.seq,
            run_id=envelope.run_id,
            step_id=envelope.step_id or "",
            root=root,
            change=change,
            command_id=event.command_id,
            overlaps=event.overlaps or (),
        )
