"""What can be taken back next, and what can be done again: as in any editor, request by request."""

from agent.sessions.changes.changes import made_in
from agent.sessions.log.event_log import read_events
from agent.sessions.store import SessionFolder
from agent.sessions.undo_log import UNDO
from agent.sessions.views.session_summary import read_every_run
from tooling.contract.fast_dataclass import dataclass

_OF = "Undo the file changes of "
_SESSION = "this session"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoOrder:
    """Runs whose changes stand, and undos that can be taken back themselves; the newest last."""

    standing: tuple[str, ...] = ()
    taken_back: tuple[str, ...] = ()


def undo_request(run: str | None, step: str | None) -> str:
    """Return what an undo is called in the log."""
    return _OF + (f"step {step}" if step else f"run {run}" if run else _SESSION)


def undo_order(folder: SessionFolder) -> UndoOrder:
    """Return in which order a session's changes can be taken back and made again."""
    changed = {made.run_id for made in made_in(read_events(folder.events))}
    standing: list[str] = []
    taken_back: list[str] = []
    for run in read_every_run(folder).runs:
        if run.run_id not in changed:
            continue
        if not run.run_id.startswith(UNDO):
            standing.append(run.run_id)
            continue
        what = run.user.removeprefix(_OF)
        before, after = (taken_back, standing) if what.removeprefix("run ") in taken_back else (standing, taken_back)
        # What was taken back only in part can be tried again.
        if run.subtype == "success":
            before[:] = [name for name in before if what not in (_SESSION, f"run {name}")]
        after.append(run.run_id)
    return UndoOrder(standing=tuple(standing), taken_back=tuple(taken_back))
