"""What the file tools of a session changed, read from its log: change by change, and file by file."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from agent.protocol.events import Envelope, FilesChanged, RunStarted
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """One change, and which step of which run made it; `root` is the folder that run worked in."""

    seq: int
    run_id: str
    step_id: str
    root: Path
    change: FileChange

    @property
    def path(self) -> Path:
        """Return the whole path of the file."""
        return self.root / self.change.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """The changes of one file, oldest first: from what it held before the first to what it held after the last."""

    changes: tuple[RecordedChange, ...]

    @property
    def path(self) -> Path:
        """Return the whole path of the file."""
        return self.changes[-1].path

    @property
    def display_path(self) -> str:
        """Return the file's name as the tools said it."""
        return self.changes[-1].change.path

    @property
    def before(self) -> str | None:
        """Return the hash of what it held before, None for no file."""
        return self.changes[0].change.before

    @property
    def after(self) -> str | None:
        """Return the hash of what it held at the end, None for no file."""
        return self.changes[-1].change.after

    @property
    def mode(self) -> int | None:
        """Return its permissions before."""
        return self.changes[0].change.mode

    @property
    def has_all_hashes(self) -> bool:
        """Say whether the log holds all hashes; early versions did not write them."""
        return all(
            (made.change.before is not None or made.change.status == "added")
            and (made.change.after is not None or made.change.status == "deleted")
            for made in self.changes
        )

    @property
    def is_contiguous(self) -> bool:
        """Say whether nothing else changed the file between these changes."""
        return all(earlier.change.after == later.change.before for earlier, later in pairwise(self.changes))


def collect_changes(
    events: Iterable[Envelope], *, run: str | None = None, step: str | None = None
) -> list[RecordedChange]:
    """Return the changes of a session, oldest first; a step without a run means the newest run that has one."""
    roots: dict[str, Path] = {}
    made: list[RecordedChange] = []
    for envelope in events:
        if isinstance(envelope.event, RunStarted):
            roots[envelope.run_id] = Path(envelope.event.cwd)
        elif isinstance(envelope.event, FilesChanged):
            root = roots.get(envelope.run_id, Path("/"))
            made += [_recorded_change(envelope, change, root) for change in envelope.event.changes]
    if step is not None and run is None:
        run = next((one.run_id for one in reversed(made) if one.step_id == step), None)
    return [one for one in made if run in (None, one.run_id) and step in (None, one.step_id)]


def group_by_file(made: Iterable[RecordedChange]) -> list[ChangedFile]:
    """Return the changes file by file, the file that was changed last first."""
    by_path: dict[Path, list[RecordedChange]] = {}
    for one in made:
        by_path.setdefault(one.path, []).append(one)
    spans = [ChangedFile(changes=tuple(changes)) for changes in by_path.values()]
    return sorted(spans, key=lambda span: span.changes[-1].seq, reverse=True)


def _recorded_change(envelope: Envelope, change: FileChange, root: Path) -> RecordedChange:
    return RecordedChange(
        seq=envelope.seq, run_id=envelope.run_id, step_id=envelope.step_id or "", root=root, change=change
    )
