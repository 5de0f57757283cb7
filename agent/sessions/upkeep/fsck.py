"""Checks a session for damage from crashes, full disks and manual edits, and repairs what it can."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

from agent.protocol.codec import FORMAT, has_envelope
from agent.protocol.events import MessageAdded, StepCompleted, ToolCompleted
from agent.sessions.log.event_log import FileLog
from agent.sessions.log.log_index import read_lines
from agent.sessions.step_results import read_result
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.views.session_summary import read_log, read_summary, write_session
from agent.vocabulary.status import is_success
from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import TEMP_SUFFIX, backup_path, write_atomic
from tooling.files.blobs import content_hash
from tooling.files.open_regular import NOT_REGULAR, NotRegularFile, read_regular

LEFTOVER = "left incomplete by a crash"
NOT_A_FOLDER = "not a folder"
NO_LOG = "the log is missing, so its runs are unknown"
INVALID_LINE = "an incomplete or invalid line"
NO_LINE_END = "the last line has no line feed"
DAMAGED_RESULT = "damaged; the step will run again"
MISSING_RESULT = "the result of a finished step is missing; the step will run again"
DAMAGED_COPY = "a damaged copy of a file or image; `undo` and the model cannot use it"
MISSING_IMAGE = "an image of the conversation is missing; the model will not see it again"
STALE_SUMMARY = "does not match the log"
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_ODD = "odd"


def accessible_to_others(mode: int) -> str:
    return f"accessible to other users (mode {mode:o})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem; `is_mended` means that it is repaired or harmless."""

    path: str
    what: str
    is_mended: bool


def check_session(folder: SessionFolder, *, repair: bool = True) -> list[Problem]:
    """Check a session and optionally repair it; holds its lock meanwhile. Raises SessionBusy."""
    # Before locking: no process can work in a session whose lock is not a file.
    odd_lock = list(_check_kind(folder.lock, folder, repair=repair))
    lock = SessionLock(folder) if repair or not odd_lock else None
    try:
        return [
            *odd_lock,
            *_check_kinds(folder, repair=repair),
            *_check_modes(folder, repair=repair),
            *_check_leftovers(folder, repair=repair),
            *_check_log(folder, repair=repair),
            *_check_results(folder, repair=repair),
            *_check_blobs(folder, repair=repair),
            *_check_summary(folder, repair=repair),
        ]
    finally:
        if lock:
            lock.release()


def _check_kinds(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    """Move away entries of the wrong type with the name of a session's file or folder."""
    parts = (folder.outputs, folder.blobs, folder.steps)
    for path in (*parts, folder.workspace):
        if path.exists() and not path.is_dir():
            yield _move_away(path, folder, NOT_A_FOLDER, repair=repair)
    files = [path for part in parts if part.is_dir() for path in part.iterdir() if f".{_ODD}" not in path.name]
    for path in (folder.events, folder.summary, folder.title, *sorted(files)):
        yield from _check_kind(path, folder, repair=repair)


def _check_kind(path: Path, folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    if path.exists() and not path.is_file():
        yield _move_away(path, folder, NOT_REGULAR, repair=repair)


def _move_away(path: Path, folder: SessionFolder, what: str, *, repair: bool) -> Problem:
    if repair:
        path.rename(backup_path(path, _ODD))
    return Problem(path=_relative_name(path, folder), what=what, is_mended=repair)


def _check_modes(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    """Check that everything outside the workspace is private to its owner."""
    parts = (folder.outputs, folder.blobs, folder.steps)
    entries = [path for part in (folder.root, *parts) if part.is_dir() for path in part.iterdir()]
    for path in (folder.root, *entries):
        status = path.lstat()
        is_folder = stat.S_ISDIR(status.st_mode)
        if not (is_folder or stat.S_ISREG(status.st_mode)):
            continue
        mode = _FOLDER_MODE if is_folder else _FILE_MODE
        if stat.S_IMODE(status.st_mode) & ~mode & 0o777:
            if repair:
                path.chmod(mode)
            what = accessible_to_others(stat.S_IMODE(status.st_mode))
            yield Problem(path=_relative_name(path, folder), what=what, is_mended=repair)


def _check_leftovers(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    for part in (folder.root, folder.steps, folder.blobs):
        for path in sorted(part.glob(f"*{TEMP_SUFFIX}")) + sorted(part.glob(f".*{TEMP_SUFFIX}")):
            if path.is_file():
                if repair:
                    path.unlink()
                yield Problem(path=_relative_name(path, folder), what=LEFTOVER, is_mended=repair)


def _check_log(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    """Check the log and everything it refers to."""
    try:
        lines = read_regular(folder.events).splitlines(keepends=True)
    except NotRegularFile:
        # Already reported.
        return
    except FileNotFoundError:
        yield Problem(path=folder.events.name, what=NO_LOG, is_mended=False)
        return
    yield from _check_lines(folder, lines, repair=repair)
    yield from _check_order(folder)
    yield from _check_expected(folder)
    yield from _check_images(folder)


def _check_lines(folder: SessionFolder, lines: list[bytes], *, repair: bool) -> Iterator[Problem]:
    """Move invalid lines from the log into a backup next to it."""
    invalid = [number for number, line in enumerate(lines, 1) if not _is_event(line)]
    if not invalid and (not lines or lines[-1].endswith(b"\n")):
        return
    if repair:
        # A torn last line is left to the log, which cuts it off as it does before every run.
        if any(number < len(lines) or lines[-1].endswith(b"\n") for number in invalid):
            write_atomic(backup_path(folder.events, "torn"), b"".join(lines[number - 1] for number in invalid))
            removed = frozenset(invalid)
            valid = (line for number, line in enumerate(lines, 1) if number not in removed)
            write_atomic(folder.events, b"".join(valid))
        FileLog(folder.events).close()
    for number in invalid:
        yield Problem(path=f"{folder.events.name}:{number}", what=INVALID_LINE, is_mended=repair)
    if not invalid:
        yield Problem(path=f"{folder.events.name}:{len(lines)}", what=NO_LINE_END, is_mended=repair)


def _check_order(folder: SessionFolder) -> Iterator[Problem]:
    last: dict[str, int] = {}
    for line in read_lines(folder.events):
        # Events are numbered from 1.
        if line.seq <= (before := last.get(line.run_id, 0)):
            what = f"event {line.seq} of {line.run_id} comes after event {before}"
            yield Problem(path=folder.events.name, what=what, is_mended=False)
        last[line.run_id] = line.seq


def _check_results(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    for path in sorted(folder.steps.glob("*.json")):
        try:
            read_result(path, path.stem)
        except NotRegularFile:
            continue
        except (ValueError, RecursionError):
            if repair:
                path.rename(backup_path(path, "corrupt"))
            yield Problem(path=_relative_name(path, folder), what=DAMAGED_RESULT, is_mended=repair)


def _check_expected(folder: SessionFolder) -> Iterator[Problem]:
    for key in sorted(_expected_keys(folder)):
        path = folder.steps / f"{key}.json"
        if not path.exists():
            yield Problem(path=_relative_name(path, folder), what=MISSING_RESULT, is_mended=False)


def _expected_keys(folder: SessionFolder) -> set[str]:
    """Return the cache keys of all finished steps in the log."""
    envelopes = (line.envelope() for line in read_lines(folder.events, only=StepCompleted.type))
    events = (envelope.event for envelope in envelopes if envelope)
    return {
        event.key for event in events if isinstance(event, StepCompleted) and event.key and is_success(event.status)
    }


def _check_images(folder: SessionFolder) -> Iterator[Problem]:
    lines = (line for line in read_lines(folder.events) if b'"images": ' in line.raw)
    events = [envelope.event for line in lines if (envelope := line.envelope())]
    with_images = (event for event in events if isinstance(event, (MessageAdded, ToolCompleted)))
    for name in sorted({image.sha256 for event in with_images for image in event.images or ()}):
        path = folder.blobs / name
        if not path.exists():
            yield Problem(path=_relative_name(path, folder), what=MISSING_IMAGE, is_mended=False)


def _check_blobs(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    for path in sorted(folder.blobs.glob("*")):
        if path.is_file() and "." not in path.name and content_hash(read_regular(path)) != path.name:
            if repair:
                path.rename(backup_path(path, "corrupt"))
            yield Problem(path=_relative_name(path, folder), what=DAMAGED_COPY, is_mended=False)


def _check_summary(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    """Check the summary; one that only lacks the end of the log is normal after a killed run."""
    if not folder.events.is_file():
        return
    problem, is_invalid = "", False
    try:
        summary = read_summary(folder)
        if summary is None:
            problem = "missing"
        elif summary != read_log(folder, size=summary.log_bytes):
            problem = STALE_SUMMARY
    except ValueError:
        problem, is_invalid = "damaged", True
    if repair:
        if is_invalid:
            folder.summary.rename(backup_path(folder.summary, "corrupt"))
        write_session(folder.summary, read_log(folder))
    if problem:
        yield Problem(path=folder.summary.name, what=problem, is_mended=repair)


def _is_event(line: bytes) -> bool:
    """Whether a line is an event of this version or of a later one, whose fields are not known."""
    try:
        flat = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(flat, dict) and (flat.get("v") != FORMAT or has_envelope(flat))


def _relative_name(path: Path, folder: SessionFolder) -> str:
    return str(path.relative_to(folder.root)) if path != folder.root else "."
