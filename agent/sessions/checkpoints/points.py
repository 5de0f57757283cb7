"""Points of a run at which the workspace can be reconstructed: after each step, and after each call of the lead."""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from agent.protocol.envelope import Envelope
from agent.protocol.events import FilesChanged, PlanUpdated, StepCompleted, ToolStarted
from agent.sessions.changes.changes import Kind, RecordedChange, collect_changes
from agent.sessions.log.event_log import read_events
from agent.sessions.log.log_index import read_run_chain
from agent.sessions.store import SessionFolder
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import LEAD
from tooling.contract.fast_dataclass import dataclass
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.pending_write import open_parent
from tooling.files.resolve import ResolvedPath

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SUBJECTS = ("command", "code", "path", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The end of a step, or of one call of the lead; `changes` are those since the previous point."""

    seq: int
    step_id: str
    title: str
    call: str = ""
    changes: tuple[RecordedChange, ...] = ()

    @property
    def name(self) -> str:
        """The name of the step or call that ends at the point."""
        return f"{self.step_id}: {self.call}" if self.call else f"{self.step_id} ({self.title})"

    @property
    def others(self) -> tuple[str, ...]:
        """Other steps with changes since the previous point: they ran at the same time."""
        steps = {change.step_id for change in self.changes} | {s for c in self.changes for s in c.overlaps}
        return tuple(sorted(steps - {self.step_id}))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryState:
    """State of a path at a point; without a hash it did not exist."""

    kind: Kind
    digest: str | None
    mode: int | None


class RunHistory:
    """The points of a run and the files of its folder at each of them."""

    def __init__(self, folder: SessionFolder, run_id: str) -> None:
        chain = read_run_chain(folder.events, run_id)
        events = [envelope for run in chain for envelope in run]
        ids = {envelope.run_id for envelope in events}
        changes = collect_changes(read_events(folder.events))
        mine = [change for change in changes if change.run_id in ids]
        if not mine:
            raise InputError(f"run {run_id} has changed no files", "`agent runs show` shows what it did")
        self.root = mine[-1].root
        self.points = _points(events, mine)
        self.skipped = tuple(
            text for e in events if isinstance(e.event, FilesChanged) for text in e.event.skipped or ()
        )
        self._start = mine[0].seq - 1
        self._blobs = BlobStore(folder.blobs)
        self._changes: dict[str, list[RecordedChange]] = {}
        for change in changes:
            if change.root == self.root and not PurePosixPath(change.change.path).is_absolute():
                self._changes.setdefault(change.change.path, []).append(change)

    def apply(self, number: int, scratch: Path) -> None:
        """Make a copy of the folder look as at a point; 0 is before the first change of the run."""
        seq = self.points[number - 1].seq if number else self._start
        # Top down: an entry in the way of a folder is removed before something is created in it.
        for path in sorted(self._changes):
            self._set(scratch, path, _state_at(self._changes[path], seq))

    def _set(self, scratch: Path, path: str, state: EntryState) -> None:
        """Restore one path of the copy; nothing outside of the copy is ever reached."""
        target = ResolvedPath(root=scratch, relative_path=path, display_path=path)
        try:
            folder = open_parent(target, makes_folders=state.digest is not None)
        except (FileNotFoundError, NotADirectoryError):
            if state.digest is None:
                return
            raise
        except OSError as error:
            raise InputError(f"the check has replaced a folder of {path} in its copy of the workspace") from error
        try:
            self._replace(folder, PurePosixPath(path).name, path, state)
        finally:
            os.close(folder)

    def _replace(self, folder: int, name: str, path: str, state: EntryState) -> None:
        kind = _kind_at(folder, name)
        if kind and not (kind == state.kind == "folder" and state.digest is not None):
            if kind == "folder":
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        if state.digest is None:
            return
        match state.kind:
            case "folder":
                if kind != "folder":
                    os.mkdir(name, dir_fd=folder)
            case "link":
                os.symlink(os.fsdecode(self._read(path, state)), name, dir_fd=folder)
            case "file":
                mode = 0o644 if state.mode is None else state.mode
                with os.fdopen(os.open(name, _CREATE_FLAGS, 0o600, dir_fd=folder), "wb") as file:
                    os.fchmod(file.fileno(), mode)
                    file.write(self._read(path, state))

    def _read(self, path: str, state: EntryState) -> bytes:
        assert state.digest is not None
        if (saved := self._blobs.read(state.digest)) is not None:
            return saved
        current = self.root / path
        if current.is_file() and not current.is_symlink():
            data = current.read_bytes()
            if content_hash(data) == state.digest:
                return data
        hint = "a content with a secret, or of more than 2 MB, is not saved after a change"
        raise InputError(f"{path} was changed since, and one of its contents was not saved", hint)


def _points(events: Sequence[Envelope], changes: Sequence[RecordedChange]) -> tuple[Point, ...]:
    """Return the points of a run in order, each with the changes since the previous one."""
    titles = {step.id: step.title for e in events if isinstance(e.event, PlanUpdated) for step in e.event.steps}
    changed_steps = {change.step_id for change in changes}
    ends: dict[int, Point] = {}
    for envelope in events:
        step = envelope.step_id or ""
        is_call = isinstance(envelope.event, FilesChanged) and envelope.event.changes and step == LEAD
        is_end = isinstance(envelope.event, StepCompleted) and step in changed_steps and step != LEAD
        if is_call or is_end:
            call = _call_name(events, envelope) if is_call else ""
            ends[envelope.seq] = Point(seq=envelope.seq, step_id=step, title=titles.get(step, step), call=call)
    last = changes[-1]
    if last.seq > max(ends, default=0):
        # The run was killed before the step ended.
        ends[last.seq] = Point(seq=last.seq, step_id=last.step_id, title=titles.get(last.step_id, last.step_id))
    return tuple(_with_changes(sorted(ends.values(), key=lambda point: point.seq), changes))


def _with_changes(points: Iterable[Point], changes: Sequence[RecordedChange]) -> Iterable[Point]:
    start = 0
    for point in points:
        since = tuple(change for change in changes if start < change.seq <= point.seq)
        start = point.seq
        if since:
            yield Point(seq=point.seq, step_id=point.step_id, title=point.title, call=point.call, changes=since)


def _call_name(events: Sequence[Envelope], changed: Envelope) -> str:
    """Return the call that made a change: the command it names, or the tool that was running."""
    assert isinstance(changed.event, FilesChanged)
    before = [e.event for e in events if e.seq < changed.seq and e.step_id == changed.step_id]
    calls = [event for event in before if isinstance(event, ToolStarted)]
    if command := changed.event.command_id:
        calls = [call for call in calls if call.tool_id == command]
    return call_name(calls[-1].name, calls[-1].input) if calls else "a call"


def call_name(tool: str, arguments: Mapping[str, object]) -> str:
    """Return a tool with its main argument."""
    subject = next((str(arguments[name]) for name in _SUBJECTS if name in arguments), "")
    return f"{tool} {subject}".strip()


def _state_at(changes: Sequence[RecordedChange], seq: int) -> EntryState:
    earlier = [recorded.change for recorded in changes if recorded.seq <= seq]
    if earlier:
        change = earlier[-1]
        mode = change.after_mode if change.after_mode is not None else change.mode
        return EntryState(kind=change.kind, digest=change.after, mode=mode)
    first = changes[0].change
    return EntryState(kind=first.kind, digest=first.before, mode=first.mode)


def _kind_at(folder: int, name: str) -> str:
    """Return the type of an entry; empty if there is none."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return ""
    return "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file"
