"""Recovery after a kill: records the changes of the killed run's commands from the checkpoint that it left."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agent.protocol.codec import to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import FilesChanged, ToolCompleted, ToolStarted, WarningRaised
from agent.sessions.checkpoints.keeper import CheckpointKeeper
from agent.sessions.checkpoints.pack import open_pack, remove_pack
from agent.sessions.checkpoints.record_changes import FoundChanges
from agent.sessions.checkpoints.tree import TooLarge
from agent.sessions.log.event_log import FileLog, last_seq
from agent.sessions.log.log_index import run_events
from agent.sessions.store import SessionFolder, SessionLock
from agent.vocabulary.errors import SessionBusy
from agent.vocabulary.step import CHECK_TOOL
from tooling.contract.secrets import Secrets

RECORDED_LATE = (
    "the run was killed; what had changed was recorded afterwards, together with what others have changed since then"
)


def recover(folder: SessionFolder, secrets: Secrets) -> None:
    """Append the changes that a killed run could not record to the log. Needs the session's lock; may raise OSError."""
    opened = open_pack(folder.checkpoint) if folder.checkpoint.exists() else None
    if opened is None:
        remove_pack(folder.checkpoint)
        return
    events = run_events(folder.events, opened.head.run_id)
    keeper = CheckpointKeeper.reopen(opened, folder.blobs, secrets)
    try:
        calls = _possible_calls(events)
        found = FoundChanges()
        with contextlib.suppress(TooLarge):
            found = keeper.record(keeper.look()) if calls else found
        new = _without_recorded(found, events)
        if not new.is_empty:
            _append(folder, calls, new)
    finally:
        keeper.close()


def record_lost_changes(folder: SessionFolder, secrets: Secrets) -> None:
    """Call `recover` unless the session is in use, in which case there is nothing to recover."""
    if folder.checkpoint.exists():
        with contextlib.suppress(SessionBusy):
            lock = SessionLock(folder)
            try:
                recover(folder, secrets)
            finally:
                lock.release()


def _possible_calls(events: Sequence[Envelope]) -> list[Envelope]:
    """Return the starts of the calls that may have made the changes: unfinished ones, or the last command."""
    started: list[Envelope] = []
    open_calls: list[Envelope] = []
    for envelope in events:
        match envelope.event:
            case ToolStarted():
                started.append(envelope)
                open_calls.append(envelope)
            case ToolCompleted(tool_id=tool_id):
                ended = [one for one in open_calls if (one.step_id, _id(one)) == (envelope.step_id, tool_id)]
                open_calls = [one for one in open_calls if one not in ended[:1]]
            case _:
                pass
    commands = [one for one in started if isinstance(one.event, ToolStarted) and one.event.name == CHECK_TOOL]
    return open_calls or commands[-1:]


def _without_recorded(found: FoundChanges, events: Sequence[Envelope]) -> FoundChanges:
    """Remove changes that were logged just before the kill."""
    logged = [event for envelope in events if isinstance(event := envelope.event, FilesChanged)]
    known = {(change.path, change.before, change.after) for event in logged for change in event.changes}
    told = {text for event in logged for text in event.skipped or ()}
    return FoundChanges(
        changes=tuple(c for c in found.changes if (c.path, c.before, c.after) not in known),
        skipped=tuple(text for text in found.skipped if text not in told),
    )


def _append(folder: SessionFolder, calls: Sequence[Envelope], found: FoundChanges) -> None:
    last = calls[-1]
    others = tuple(sorted({str(call.step_id) for call in calls} - {str(last.step_id)}))
    changed = FilesChanged(
        changes=found.changes, command_id=_id(last), overlaps=others or None, skipped=found.skipped or None
    )
    seq = last_seq(folder.events) + 1
    ts = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    envelopes = (
        replace(last, seq=seq, ts=ts, event=changed),
        replace(last, seq=seq + 1, ts=ts, event=WarningRaised(message=RECORDED_LATE)),
    )
    log = FileLog(folder.events)
    try:
        log.append(b"".join(map(to_line, envelopes)))
    finally:
        log.close()


def _id(envelope: Envelope) -> str:
    return envelope.event.tool_id if isinstance(envelope.event, ToolStarted) else ""
