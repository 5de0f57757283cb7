"""The log of approvals: requests, decisions and deciders, folded from the event logs."""

from collections.abc import Iterator
from itertools import chain

from agent.protocol.envelope import Envelope
from agent.protocol.events import ApprovalRequested, ApprovalResolved, RuleSaved, RunStarted, ToolCompleted, ToolStarted
from agent.sessions.log.log_index import read_lines
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.listing import newest_sessions
from tooling.contract.fast_dataclass import dataclass

_TYPES = frozenset({ApprovalRequested.type, ApprovalResolved.type, RuleSaved.type})
_CALL_TYPES = frozenset({RunStarted.type, ToolStarted.type, ToolCompleted.type})
UNANSWERED = "unanswered"
_SUBJECTS = ("command", "code", "path", "url", "query")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRecord:
    """One request and its decision; `saved_in` is the settings file that its rule was saved in."""

    asked_at: str
    decided_at: str | None
    session_id: str
    run_id: str
    step_id: str | None
    tool: str | None
    command: str
    cwd: str
    reason: str
    decision: str
    by: str
    scope: str | None
    rule: str
    edited_command: str | None
    saved_in: str | None


def approval_log(
    store: SessionStore, session_id: str | None = None, *, with_unasked: bool = False
) -> Iterator[ApprovalRecord]:
    """Yield all approvals, newest session first and newest request first; unreadable sessions are skipped.

    With `with_unasked`, also yield actions that were allowed without asking.
    """
    folders = [store.find(session_id)] if session_id else [store.folder_for(row.id) for row in newest_sessions(store)]
    return chain.from_iterable(_read_approvals(folder, with_unasked=with_unasked) for folder in folders)


def _read_approvals(folder: SessionFolder, *, with_unasked: bool) -> list[ApprovalRecord]:
    types = _TYPES | _CALL_TYPES if with_unasked else _TYPES
    try:
        lines = [line for line in read_lines(folder.events) if line.type in types]
    except OSError:
        return []
    events = [envelope for line in lines if (envelope := line.envelope())]
    return sorted([*_fold(folder.id, events), *_unasked(folder.id, events)], key=lambda one: one.asked_at)[::-1]


def _fold(session_id: str, envelopes: list[Envelope]) -> list[ApprovalRecord]:
    """Return the records in log order; a request of a killed run has no decision."""
    answers: dict[tuple[str, str], Envelope] = {}
    saved: dict[tuple[str, str], str] = {}
    for envelope in envelopes:
        match envelope.event:
            case ApprovalResolved(approval_id=asked):
                answers[(envelope.run_id, asked)] = envelope
            case RuleSaved(rule=rule, file=file):
                saved[(envelope.run_id, rule)] = file
            case _:
                pass
    return [
        _record(session_id, envelope, envelope.event, answers.get((envelope.run_id, envelope.event.approval_id)), saved)
        for envelope in envelopes
        if isinstance(envelope.event, ApprovalRequested)
    ]


def _record(
    session_id: str,
    envelope: Envelope,
    asked: ApprovalRequested,
    answered: Envelope | None,
    saved: dict[tuple[str, str], str],
) -> ApprovalRecord:
    answer = answered.event if answered and isinstance(answered.event, ApprovalResolved) else None
    is_lasting = answer is not None and answer.scope in ("project", "always")
    rules = answer.rule.split(", ") if answer and is_lasting else []
    return ApprovalRecord(
        asked_at=envelope.ts,
        decided_at=answered.ts if answered else None,
        session_id=session_id,
        run_id=envelope.run_id,
        step_id=envelope.step_id,
        tool=asked.tool,
        command=asked.command,
        cwd=asked.cwd,
        reason=asked.reason,
        decision=answer.decision if answer else UNANSWERED,
        by=answer.by if answer else "",
        scope=answer.scope if answer else None,
        rule=answer.rule if answer else "",
        edited_command=answer.edited_command if answer else None,
        saved_in=next((saved[(envelope.run_id, rule)] for rule in rules if (envelope.run_id, rule) in saved), None),
    )


def _unasked(session_id: str, envelopes: list[Envelope]) -> Iterator[ApprovalRecord]:
    """Yield the calls that were allowed by something other than the user."""
    cwd = ""
    started: dict[tuple[str, str], Envelope] = {}
    for envelope in envelopes:
        match envelope.event:
            case RunStarted():
                cwd = envelope.event.cwd
            case ToolStarted(tool_id=tool_id):
                started[(envelope.run_id, tool_id)] = envelope
            case ToolCompleted(tool_id=tool_id, allowed_by=by) if by:
                start = started.get((envelope.run_id, tool_id), envelope)
                yield _call_record(session_id, start, envelope.event, by, cwd)
            case _:
                pass


def _call_record(session_id: str, start: Envelope, call: ToolCompleted, by: str, cwd: str) -> ApprovalRecord:
    given = start.event.input if isinstance(start.event, ToolStarted) else {}
    subject = next((str(given[name]) for name in _SUBJECTS if name in given), "")
    return ApprovalRecord(
        asked_at=start.ts,
        decided_at=start.ts,
        session_id=session_id,
        run_id=start.run_id,
        step_id=start.step_id,
        tool=call.name,
        command=subject,
        cwd=cwd,
        reason="",
        decision="allow",
        by=by,
        scope=None,
        rule="",
        edited_command=None,
        saved_in=None,
    )
