"""Checks a session for damage from crashes, full disks and manual edits, and repairs what it can."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

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

LEFTOVER = "left incomplete by a crash"
NO_LOG = "the log is missing, so its runs are unknown"
INVALID_LINE = "an incomplete or invalid line"
NO_LINE_END = "the last line has no line feed"
DAMAGED_RESULT = "damaged; the step will run again"
MISSING_RESULT = "the result of a finished step is missing; the step will run again"
DAMAGED_COPY = "a damaged copy of a file or image; `undo` and the model cannot use it"
MISSING_IMAGE = "an image of the conversation is missing; the model will not see it again"
STALE_SUMMARY = "does not match the log"
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


def accessible_to_others(mode: int) -> str:
    return f"accessible to other users (mode {mode:o})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem; `is_mended` means that it is repaired or can do no more harm."""

    path: str
    what: str
    is_mended: bool


def check_session(folder: SessionFolder, *, repair: bool = True) -> list[Problem]:
    """Check a session and repair it if asked to; holds its lock meanwhile. Raises SessionBusy."""
    lock = SessionLock(folder)
    try:
        return [
            *_check_modes(folder, repair=repair),
            *_check_leftovers(folder, repair=repair),
            *_check_log(folder, repair=repair),
            *_check_order(folder),
            *_check_results(folder, repair=repair),
            *_check_images(folder),
            *_check_blobs(folder, repair=repair),
            *_check_summary(folder, repair=repair),
        ]
    finally:
        lock.release()


def _check_modes(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    """Everything outside the workspace must be private to its owner."""
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
    """Move invalid lines out of the log into a backup beside it."""
    try:
        lines = folder.events.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        yield Problem(path=folder.events.name, what=NO_LOG, is_mended=False)
        return
    invalid = [number for number, line in enumerate(lines, 1) if not _is_object(line)]
    if not invalid and (not lines or lines[-1].endswith(b"\n")):
        return
    if repair:
        if any(number < len(lines) for number in invalid):
            write_atomic(backup_path(folder.events, "torn"), b"".join(lines[number - 1] for number in invalid))
            valid = (line for number, line in enumerate(lines, 1) if number not in invalid)
            write_atomic(folder.events, b"".join(valid))
        FileLog(folder.events).close()
    for number in invalid:
        yield Problem(path=f"{folder.events.name}:{number}", what=INVALID_LINE, is_mended=repair)
    if not invalid:
        yield Problem(path=f"{folder.events.name}:{len(lines)}", what=NO_LINE_END, is_mended=repair)


def _check_order(folder: SessionFolder) -> Iterator[Problem]:
    last: dict[str, int] = {}
    for line in read_lines(folder.events):
        if line.seq <= last.get(line.run_id, 0):
            what = f"event {line.seq} of {line.run_id} comes after event {last[line.run_id]}"
            yield Problem(path=folder.events.name, what=what, is_mended=False)
        last[line.run_id] = line.seq


def _check_results(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    damaged: set[str] = set()
    for path in sorted(folder.steps.glob("*.json")):
        try:
            read_result(path, path.stem)
        except (ValueError, RecursionError):
            damaged.add(path.stem)
            if repair:
                path.rename(backup_path(path, "corrupt"))
            yield Problem(path=_relative_name(path, folder), what=DAMAGED_RESULT, is_mended=repair)
    for key in sorted(_expected_keys(folder) - damaged):
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
        if path.is_file() and "." not in path.name and content_hash(path.read_bytes()) != path.name:
            if repair:
                path.rename(backup_path(path, "corrupt"))
            yield Problem(path=_relative_name(path, folder), what=DAMAGED_COPY, is_mended=False)


def _check_summary(folder: SessionFolder, *, repair: bool) -> Iterator[Problem]:
    """A summary that only lacks the end of the log is normal after a killed run."""
    if not folder.events.exists():
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


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _relative_name(path: Path, folder: SessionFolder) -> str:
    return str(path.relative_to(folder.root)) if path != folder.root else "."
