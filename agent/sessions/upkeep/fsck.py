"""Looks through a session for what crashes, full disks and hands have done to it, and mends what can be mended."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

from agent.protocol.events import StepCompleted
from agent.sessions.log.event_log import FileLog
from agent.sessions.log.log_index import read_lines
from agent.sessions.step_results import read_result
from agent.sessions.store import SessionFolder, SessionLock
from agent.sessions.views.session_summary import read_log, read_summary, write_session
from agent.vocabulary.status import is_success
from tooling.contract.fast_dataclass import dataclass
from tooling.files.atomic_write import TEMP_SUFFIX, backup_path, write_atomic
from tooling.files.blobs import content_hash

_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that was not as it should be; what `is_mended` is so again, or does no more harm."""

    path: str
    what: str
    is_mended: bool


def check_session(folder: SessionFolder, *, mends: bool = True) -> list[Problem]:
    """Return what is wrong with a session, mended where that is possible; the session is held meanwhile."""
    lock = SessionLock(folder)
    try:
        return [
            *_check_modes(folder, mends=mends),
            *_check_leftovers(folder, mends=mends),
            *_check_log(folder, mends=mends),
            *_check_order(folder),
            *_check_results(folder, mends=mends),
            *_check_blobs(folder, mends=mends),
            *_check_summary(folder, mends=mends),
        ]
    finally:
        lock.release()


def _check_modes(folder: SessionFolder, *, mends: bool) -> Iterator[Problem]:
    """Everything but what lies in the workspace is for its owner alone."""
    parts = (folder.outputs, folder.blobs, folder.steps)
    inside = [path for part in (folder.root, *parts) if part.is_dir() for path in part.iterdir()]
    for path in (folder.root, *inside):
        status = path.lstat()
        is_folder = stat.S_ISDIR(status.st_mode)
        if not (is_folder or stat.S_ISREG(status.st_mode)):
            continue
        wanted = _FOLDER_MODE if is_folder else _FILE_MODE
        if stat.S_IMODE(status.st_mode) & ~wanted & 0o777:
            if mends:
                path.chmod(wanted)
            what = f"others could reach it (mode {stat.S_IMODE(status.st_mode):o})"
            yield Problem(path=_relative_name(path, folder), what=what, is_mended=mends)


def _check_leftovers(folder: SessionFolder, *, mends: bool) -> Iterator[Problem]:
    for part in (folder.root, folder.steps, folder.blobs):
        for path in sorted(part.glob(f"*{TEMP_SUFFIX}")) + sorted(part.glob(f".*{TEMP_SUFFIX}")):
            if path.is_file():
                if mends:
                    path.unlink()
                yield Problem(path=_relative_name(path, folder), what="left half-written by a crash", is_mended=mends)


def _check_log(folder: SessionFolder, *, mends: bool) -> Iterator[Problem]:
    """Torn lines are taken out of the log and kept beside it; what cannot be read was heard by nobody."""
    try:
        lines = folder.events.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        yield Problem(path=folder.events.name, what="there is no log, so nothing is known of its runs", is_mended=False)
        return
    torn = [number for number, line in enumerate(lines, 1) if not _is_object(line)]
    if not torn and (not lines or lines[-1].endswith(b"\n")):
        return
    if mends:
        if any(number < len(lines) for number in torn):
            write_atomic(backup_path(folder.events, "torn"), b"".join(lines[number - 1] for number in torn))
            write_atomic(folder.events, b"".join(line for number, line in enumerate(lines, 1) if number not in torn))
        FileLog(folder.events).close()
    for number in torn:
        yield Problem(path=f"{folder.events.name}:{number}", what="a torn line", is_mended=mends)
    if not torn:
        yield Problem(path=f"{folder.events.name}:{len(lines)}", what="a line without its end", is_mended=mends)


def _check_order(folder: SessionFolder) -> Iterator[Problem]:
    last: dict[str, int] = {}
    for line in read_lines(folder.events):
        if line.seq <= last.get(line.run_id, 0):
            what = f"event {line.seq} of {line.run_id} comes after event {last[line.run_id]}"
            yield Problem(path=folder.events.name, what=what, is_mended=False)
        last[line.run_id] = line.seq


def _check_results(folder: SessionFolder, *, mends: bool) -> Iterator[Problem]:
    damaged: set[str] = set()
    for path in sorted(folder.steps.glob("*.json")):
        try:
            read_result(path, path.stem)
        except (ValueError, RecursionError):
            damaged.add(path.stem)
            if mends:
                path.rename(backup_path(path, "corrupt"))
            what = "not what was kept there; the step will be done again"
            yield Problem(path=_relative_name(path, folder), what=what, is_mended=mends)
    for key in sorted(_expected_keys(folder) - damaged):
        path = folder.steps / f"{key}.json"
        if not path.exists():
            what = "the result of a finished step is missing; it will be done again"
            yield Problem(path=_relative_name(path, folder), what=what, is_mended=False)


def _expected_keys(folder: SessionFolder) -> set[str]:
    """Return the addresses of all results that the log speaks of."""
    ends = (line.envelope() for line in read_lines(folder.events, only=StepCompleted.type))
    events = (envelope.event for envelope in ends if envelope)
    return {
        event.key for event in events if isinstance(event, StepCompleted) and event.key and is_success(event.status)
    }


def _check_blobs(folder: SessionFolder, *, mends: bool) -> Iterator[Problem]:
    for path in sorted(folder.blobs.glob("*")):
        if path.is_file() and "." not in path.name and content_hash(path.read_bytes()) != path.name:
            if mends:
                path.rename(backup_path(path, "corrupt"))
            what = "not what a file held before; `undo` cannot use it"
            yield Problem(path=_relative_name(path, folder), what=what, is_mended=False)


def _check_summary(folder: SessionFolder, *, mends: bool) -> Iterator[Problem]:
    """A summary that is only behind its log is what a killed run leaves, and nothing wrong."""
    if not folder.events.exists():
        return
    problem, is_strange = "", False
    try:
        kept = read_summary(folder)
        if kept is None:
            problem = "missing"
        elif kept != read_log(folder, size=kept.log_bytes):
            problem = "it told something else than the log"
    except ValueError:
        problem, is_strange = "damaged", True
    if mends:
        if is_strange:
            folder.summary.rename(backup_path(folder.summary, "corrupt"))
        write_session(folder.summary, read_log(folder))
    if problem:
        yield Problem(path=folder.summary.name, what=problem, is_mended=mends)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _relative_name(path: Path, folder: SessionFolder) -> str:
    return str(path.relative_to(folder.root)) if path != folder.root else "."
