"""Commands about the session: taking back, going on, going apart, making room, writing down."""

import shlex
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.config.user_dirs import data_dir
from agent.protocol.commands import Submit
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import RunRecord, SessionRecord, read_session
from agent.vocabulary.errors import UsageError
from agent.workspace.request_context import COMPACT_REQUEST, history
from cli.repl.repl import Repl
from cli.repl.request_queue import QueuedRequest
from cli.repl.slash_commands import Candidate
from cli.repl.welcome import LATER
from cli.screen.colors import clip
from cli.screen.format import format_count

if TYPE_CHECKING:
    from agent.sessions.views.listing import SessionRow

_MAX_OFFERED = 8
_TITLE_CELLS = 48
_PREVIEW_LINES = 3


def split_words(argument: str) -> tuple[str, ...]:
    """Return the words of an argument, quoted as in a shell."""
    try:
        return tuple(shlex.split(argument))
    except ValueError as error:
        raise UsageError(f"{argument!r} cannot be read: {error}", "quote words as in a shell") from error


def undo(repl: Repl, argument: str) -> Awaitable[None]:
    """Take back what the last request changed that was not taken back yet, or all of the session."""
    from agent.sessions.changes.undo import undo_history

    session = _require_idle(repl, "take it back")
    words = split_words(argument)
    if "all" in words:
        return repl.run_agent_command("sessions", "undo", session, *(word for word in words if word != "all"))
    if not {"--run", "--step"}.isdisjoint(words):
        return repl.run_agent_command("sessions", "undo", session, *words)
    standing = undo_history(_store(repl).find(session)).undoable
    if not standing:
        raise UsageError("no file tool has changed anything here that still stands", "/diff shows what is changed")
    return repl.run_agent_command("sessions", "undo", session, "--run", standing[-1], *words)


def redo(repl: Repl, argument: str) -> Awaitable[None]:
    """Take back the last undo."""
    from agent.sessions.changes.undo import undo_history

    session = _require_idle(repl, "do it again")
    taken_back = undo_history(_store(repl).find(session)).redoable
    if not taken_back:
        raise UsageError("nothing was taken back in this session", "/undo takes back what it changed")
    return repl.run_agent_command("sessions", "undo", session, "--run", taken_back[-1], *split_words(argument))


def fork(repl: Repl, argument: str) -> None:
    """Go on in a copy."""
    from agent.sessions.upkeep.fork import fork as copied

    original = _require_idle(repl, "fork it")
    store = _store(repl)
    copy = copied(store, store.find(original), argument or None)
    repl.queue.session_id = copy.id
    repl.print_line(f"you are in {copy.id} now, a copy of {original}")
    repl.print_line(f"/resume {original} goes back", "quiet")


def compact(repl: Repl, argument: str) -> None:
    """Let the model sum up what was said; the summary stands for it from then on."""
    repl.require_session_id()
    repl.enqueue(
        QueuedRequest(submit=Submit(prompt=COMPACT_REQUEST), title="/compact", on_success=lambda: _print_gain(repl))
    )


def _print_gain(repl: Repl) -> None:
    after = _record(repl, repl.require_session_id())
    before = replace(after, runs=after.runs[:-1])
    sizes = f"{format_count(len(history(before)))} → {format_count(len(history(after)))} characters"
    repl.print_line(f"the history that later requests take along: {sizes}", "quiet")


def export(repl: Repl, argument: str) -> Awaitable[None]:
    """Write the session to a file, or show it."""
    words = split_words(argument)
    target = ("-o", *words) if words and not words[0].startswith("-") else words
    return repl.run_agent_command("sessions", "export", repl.require_session_id(), *target)


def why(repl: Repl, argument: str) -> Awaitable[None]:
    """Show what stands behind a step of the newest run that has one of this name."""
    words = split_words(argument)
    known = {step: run for step, run, _ in _known_steps(repl)}
    if not words:
        raise UsageError("which step?", f"one of {', '.join(known)}" if known else "the last run had none")
    return repl.run_agent_command("runs", "why", known.get(words[0], repl.require_run_id()), *words)


def complete_steps(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    """Return the steps there are, with what is known of them."""
    if repl.queue.session_id is None or len(typed) > 1:
        return ()
    return [(step, title) for step, _, title in _known_steps(repl)]


def _known_steps(repl: Repl) -> list[tuple[str, str, str]]:
    """Return the steps of the session, each with the newest run that has it and its title, the newest run first."""
    found: dict[str, tuple[str, str, str]] = {}
    for run in reversed(_record(repl, repl.require_session_id()).runs):
        if run.run_id.startswith("run-"):
            for step, title in run.titled_steps:
                found.setdefault(step, (step, run.run_id, title))
    return list(found.values())


def resume(repl: Repl, argument: str) -> Awaitable[None] | None:
    """Go on: with a run that was cut off, or in another session."""
    from agent.sessions.resume.lookup import find_resumable_run, is_unfinished, unfinished_in

    store = _store(repl)
    if repl.queue.is_busy:
        raise UsageError("a run is going on", "/resume when it has ended")
    if argument.startswith("run-"):
        found = find_resumable_run(store, argument)
        if not is_unfinished(found.run):
            raise UsageError(f"{found.run.run_id} has finished", f"/resume {found.folder.id} goes on in its session")
        repl.switch_session(found.folder.id)
        repl.enqueue(QueuedRequest(submit=Submit(prompt=""), title=f"/resume {argument}", resumes=found))
        return None
    if argument:
        switch_to(repl, store.find(argument).id)
        return None
    here = repl.queue.session_id
    if here and (found_here := unfinished_in(store.find(here))):
        repl.enqueue(QueuedRequest(submit=Submit(prompt=""), title="/resume", resumes=found_here))
        return None
    return _choose_session(repl, store)


async def _choose_session(repl: Repl, store: SessionStore) -> None:
    """Let the person choose among the newest sessions."""
    from agent.sessions.views.listing import newest_sessions, session_rows
    from cli.pages.pages import format_age

    newest = [one for one in newest_sessions(store) if one.id != repl.queue.session_id]
    rows = list(session_rows(store, newest, _MAX_OFFERED))
    if not rows:
        raise UsageError("there is no other session to go on in")
    options = {f"{_title(row)} ({format_age(row.updated_at)}, {row.status})": row.id for row in rows}
    answer = await repl.ui.ask("Which session shall go on?", (*options, LATER))
    if answer != LATER:
        switch_to(repl, options.get(answer) or store.find(answer).id)


def _title(row: "SessionRow") -> str:
    """Return what a session was about: how it began, and what was asked last."""
    last = "" if row.last_request in ("", row.title, COMPACT_REQUEST) else f" … {row.last_request}"
    return clip(f"{row.title}{last}", _TITLE_CELLS)


def switch_to(repl: Repl, session_id: str) -> None:
    """Go on in a session, and recall where it stood."""
    from agent.sessions.resume.lookup import unfinished_in

    repl.switch_session(session_id)
    record = _record(repl, session_id)
    asked = "1 request" if record.run_count == 1 else f"{record.run_count} requests"
    repl.print_line(f"you are in {session_id} now: {asked} so far")
    if record.runs:
        room = repl.ui.columns - 2
        last = next((run for run in reversed(record.runs) if _is_user_request(run)), record.runs[-1])
        answer = [line for line in last.final.splitlines() if line.strip()]
        lines = [f"> {clip(last.user, room)}", *(f"  {clip(line, room)}" for line in answer[:_PREVIEW_LINES])]
        repl.print_line("\n".join([*lines, *(["  …"] if len(answer) > _PREVIEW_LINES else [])]), "quiet")
    if record.cwd and record.cwd != str(repl.state.cwd):
        repl.warn(f"it began in {record.cwd}; requests are done here, in {repl.state.cwd}")
    if unfinished_in(_store(repl).find(session_id)):
        repl.print_line("a run of it was cut off: /resume goes on with that", "quiet")


def _is_user_request(run: RunRecord) -> bool:
    """Say whether a run was asked for in the person's own words."""
    return run.run_id.startswith("run-") and run.user != COMPACT_REQUEST


def _require_idle(repl: Repl, deed: str) -> str:
    """Return the id of the session, in which nothing may be going on."""
    if repl.queue.is_busy:
        raise UsageError("a run is going on in this session", f"{deed} when it has ended")
    return repl.require_session_id()


def _record(repl: Repl, session_id: str) -> SessionRecord:
    return read_session(_store(repl).find(session_id))


def _store(repl: Repl) -> SessionStore:
    return SessionStore(data_dir(repl.state.environ))
