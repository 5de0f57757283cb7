"""Commands about the session: taking back, going on, going apart, making room, writing down."""

import shlex
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.config.places import data_dir
from agent.protocol.commands import Submit
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import RunRecord, SessionRecord, read_session
from agent.vocabulary.errors import UsageError
from agent.workspace.materials import COMPACT_REQUEST, history
from cli.repl.repl import Repl
from cli.repl.request_queue import Turn
from cli.repl.slash_commands import Candidate
from cli.repl.welcome import LATER
from cli.screen.colors import clipped
from cli.screen.format import amount

if TYPE_CHECKING:
    from agent.sessions.views.listing import SessionRow

_OFFERED = 8
_TITLE_CELLS = 48
_PREVIEW_LINES = 3


def words_of(argument: str) -> tuple[str, ...]:
    """Return the words of an argument, quoted as in a shell."""
    try:
        return tuple(shlex.split(argument))
    except ValueError as error:
        raise UsageError(f"{argument!r} cannot be read: {error}", "quote words as in a shell") from error


def undo(repl: Repl, argument: str) -> Awaitable[None]:
    """Take back what the last request changed that was not taken back yet, or all of the session."""
    from agent.sessions.changes.undo import undo_order

    session = _at_rest(repl, "take it back")
    words = words_of(argument)
    if "all" in words:
        return repl.lend_to("sessions", "undo", session, *(word for word in words if word != "all"))
    if not {"--run", "--step"}.isdisjoint(words):
        return repl.lend_to("sessions", "undo", session, *words)
    standing = undo_order(_store(repl).existing(session)).standing
    if not standing:
        raise UsageError("no file tool has changed anything here that still stands", "/diff shows what is changed")
    return repl.lend_to("sessions", "undo", session, "--run", standing[-1], *words)


def redo(repl: Repl, argument: str) -> Awaitable[None]:
    """Take back the last undo."""
    from agent.sessions.changes.undo import undo_order

    session = _at_rest(repl, "do it again")
    taken_back = undo_order(_store(repl).existing(session)).taken_back
    if not taken_back:
        raise UsageError("nothing was taken back in this session", "/undo takes back what it changed")
    return repl.lend_to("sessions", "undo", session, "--run", taken_back[-1], *words_of(argument))


def fork(repl: Repl, argument: str) -> None:
    """Go on in a copy."""
    from agent.sessions.upkeep.copying import fork as copied

    original = _at_rest(repl, "fork it")
    store = _store(repl)
    copy = copied(store, store.existing(original), argument or None)
    repl.turns.session_id = copy.id
    repl.say(f"you are in {copy.id} now, a copy of {original}")
    repl.say(f"/resume {original} goes back", "quiet")


def compact(repl: Repl, argument: str) -> None:
    """Let the model sum up what was said; the summary stands for it from then on."""
    repl.session()
    repl.add(Turn(submit=Submit(prompt=COMPACT_REQUEST), title="/compact", then=lambda: _tell_gain(repl)))


def _tell_gain(repl: Repl) -> None:
    after = _record(repl, repl.session())
    before = replace(after, runs=after.runs[:-1])
    sizes = f"{amount(len(history(before)))} → {amount(len(history(after)))} characters"
    repl.say(f"the history that later requests take along: {sizes}", "quiet")


def export(repl: Repl, argument: str) -> Awaitable[None]:
    """Write the session to a file, or show it."""
    words = words_of(argument)
    target = ("-o", *words) if words and not words[0].startswith("-") else words
    return repl.lend_to("sessions", "export", repl.session(), *target)


def why(repl: Repl, argument: str) -> Awaitable[None]:
    """Show what stands behind a step of the newest run that has one of this name."""
    words = words_of(argument)
    known = {step: run for step, run, _ in _known_steps(repl)}
    if not words:
        raise UsageError("which step?", f"one of {', '.join(known)}" if known else "the last run had none")
    return repl.lend_to("runs", "why", known.get(words[0], repl.run()), *words)


def steps(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    """Return the steps there are, with what is known of them."""
    if repl.turns.session_id is None or len(typed) > 1:
        return ()
    return [(step, title) for step, _, title in _known_steps(repl)]


def _known_steps(repl: Repl) -> list[tuple[str, str, str]]:
    """Return the steps of the session, each with the newest run that has it and its title, the newest run first."""
    found: dict[str, tuple[str, str, str]] = {}
    for run in reversed(_record(repl, repl.session()).runs):
        if run.run_id.startswith("run-"):
            for step, title in run.titled_steps:
                found.setdefault(step, (step, run.run_id, title))
    return list(found.values())


def resume(repl: Repl, argument: str) -> Awaitable[None] | None:
    """Go on: with a run that was cut off, or in another session."""
    from agent.sessions.resume.lookup import is_unfinished, run_named, unfinished_in

    store = _store(repl)
    if repl.turns.is_busy:
        raise UsageError("a run is going on", "/resume when it has ended")
    if argument.startswith("run-"):
        found = run_named(store, argument)
        if not is_unfinished(found.run):
            raise UsageError(f"{found.run.run_id} has finished", f"/resume {found.folder.id} goes on in its session")
        repl.enter(found.folder.id)
        repl.add(Turn(submit=Submit(prompt=""), title=f"/resume {argument}", resumes=found))
        return None
    if argument:
        enter(repl, store.existing(argument).id)
        return None
    here = repl.turns.session_id
    if here and (found_here := unfinished_in(store.existing(here))):
        repl.add(Turn(submit=Submit(prompt=""), title="/resume", resumes=found_here))
        return None
    return _choose(repl, store)


async def _choose(repl: Repl, store: SessionStore) -> None:
    """Let the person choose among the newest sessions."""
    from agent.sessions.views.listing import newest_first, rows_of
    from cli.pages.pages import age

    newest = [one for one in newest_first(store) if one.id != repl.turns.session_id]
    rows = list(rows_of(store, newest, _OFFERED))
    if not rows:
        raise UsageError("there is no other session to go on in")
    options = {f"{_title(row)} ({age(row.updated_at)}, {row.status})": row.id for row in rows}
    answer = await repl.face.ask("Which session shall go on?", (*options, LATER))
    if answer != LATER:
        enter(repl, options.get(answer) or store.existing(answer).id)


def _title(row: "SessionRow") -> str:
    """Return what a session was about: how it began, and what was asked last."""
    last = "" if row.last_request in ("", row.title, COMPACT_REQUEST) else f" … {row.last_request}"
    return clipped(f"{row.title}{last}", _TITLE_CELLS)


def enter(repl: Repl, session_id: str) -> None:
    """Go on in a session, and recall where it stood."""
    from agent.sessions.resume.lookup import unfinished_in

    repl.enter(session_id)
    record = _record(repl, session_id)
    asked = "1 request" if record.run_count == 1 else f"{record.run_count} requests"
    repl.say(f"you are in {session_id} now: {asked} so far")
    if record.runs:
        room = repl.face.columns - 2
        last = next((run for run in reversed(record.runs) if _is_own(run)), record.runs[-1])
        answer = [line for line in last.final.splitlines() if line.strip()]
        lines = [f"> {clipped(last.user, room)}", *(f"  {clipped(line, room)}" for line in answer[:_PREVIEW_LINES])]
        repl.say("\n".join([*lines, *(["  …"] if len(answer) > _PREVIEW_LINES else [])]), "quiet")
    if record.cwd and record.cwd != str(repl.place.cwd):
        repl.warn(f"it began in {record.cwd}; requests are done here, in {repl.place.cwd}")
    if unfinished_in(_store(repl).existing(session_id)):
        repl.say("a run of it was cut off: /resume goes on with that", "quiet")


def _is_own(run: RunRecord) -> bool:
    """Say whether a run was asked for in the person's own words."""
    return run.run_id.startswith("run-") and run.user != COMPACT_REQUEST


def _at_rest(repl: Repl, deed: str) -> str:
    """Return the id of the session, in which nothing may be going on."""
    if repl.turns.is_busy:
        raise UsageError("a run is going on in this session", f"{deed} when it has ended")
    return repl.session()


def _record(repl: Repl, session_id: str) -> SessionRecord:
    return read_session(_store(repl).existing(session_id))


def _store(repl: Repl) -> SessionStore:
    return SessionStore(data_dir(repl.place.environ))
