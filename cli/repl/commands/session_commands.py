"""Commands for sessions: clear, undo, redo, fork, compact, export, why, resume."""

import asyncio
import shlex
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING

from agent.config.user_dirs import data_dir, data_path
from agent.protocol.commands import Submit
from agent.sessions.resume.conversation import COMPACT_REQUEST
from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.session_summary import RunRecord, SessionRecord, read_session
from agent.vocabulary.errors import UsageError
from agent.vocabulary.usage import Usage
from cli.repl.repl import Repl
from cli.repl.request_queue import QueuedRequest
from cli.repl.slash_commands import Candidate
from cli.screen.colors import clip, to_single_line
from cli.screen.format import format_count
from cli.screen.sanitize import sanitize
from tooling.safety.secrets.redact import Redactor

if TYPE_CHECKING:
    from agent.sessions.views.listing import SessionRow
    from agent.workspace.worktrees import Worktree
    from cli.repl.commands.context_command import SessionContext

_MAX_OFFERED = 100
_MAX_REWOUND = 100
_PREVIEW_LINES = 3
RUN_IN_PROGRESS = "a run is in progress"
WAIT_HINT = "wait until it has finished, or stop it with Ctrl-C"
NEW_SESSION = "started a new session"
NOTHING_TO_UNDO = "nothing to undo in this session"
NOTHING_TO_REDO = "nothing to redo in this session"
NO_WORKTREE = "this prompt works in your folder, not in a git worktree"
NOTHING_TO_REWIND = "this session has no request to go back to"
WHICH_REQUEST = "Go back to before which request?"
REWOUND = "the conversation continues from before that request"
NO_OTHER_SESSION = "no other session to resume"
WHICH_SESSION = "Resume which session?"
COMPACTED = "conversation compacted"


def split_words(argument: str) -> tuple[str, ...]:
    """Split an argument into words, with shell quoting."""
    try:
        return tuple(shlex.split(argument))
    except ValueError as error:
        raise UsageError(f"cannot parse {argument!r}: {error}", "quote words as in a shell") from error


def clear(repl: Repl, argument: str) -> None:
    """Start a new session with an empty history; not during a run, whose answer belongs to the old one."""
    if repl.queue.is_busy:
        raise UsageError(RUN_IN_PROGRESS, WAIT_HINT)
    before = repl.queue.session_id
    repl.queue.session_id = None
    repl.shell_output = ""
    repl.state.usage = Usage()
    repl.state.show_context_share(None)
    back = f"; /resume {before} returns to the previous one" if before else ""
    repl.print_line(f"{NEW_SESSION}{back}", "quiet")


def undo(repl: Repl, argument: str) -> Awaitable[None]:
    """Undo the latest request whose changes are not undone yet, or the complete session."""
    from agent.sessions.changes.undo import undo_history

    session = _require_idle(repl)
    words = split_words(argument)
    if "all" in words:
        return repl.run_agent_command("sessions", "undo", session, *(word for word in words if word != "all"))
    if not {"--run", "--step"}.isdisjoint(words):
        return repl.run_agent_command("sessions", "undo", session, *words)
    undoable = undo_history(_find_complete(repl, session)).undoable
    if not undoable:
        raise UsageError(NOTHING_TO_UNDO, "/diff shows what can be undone; ignored folders and .git are left out")
    return repl.run_agent_command("sessions", "undo", session, "--run", undoable[-1], *words)


def redo(repl: Repl, argument: str) -> Awaitable[None]:
    """Redo what the last undo reverted."""
    from agent.sessions.changes.undo import undo_history

    session = _require_idle(repl)
    redoable = undo_history(_store(repl).find(session)).redoable
    if not redoable:
        raise UsageError(NOTHING_TO_REDO, "/redo restores what /undo reverted")
    return repl.run_agent_command("sessions", "undo", session, "--run", redoable[-1], *split_words(argument))


async def rewind(repl: Repl, argument: str) -> None:
    """Let the user choose a request, revert everything since, and put its text into the prompt."""
    from agent.sessions.changes.rewind import rewind as rewind_session
    from agent.sessions.changes.rewind import rewindable_runs
    from agent.sessions.changes.undo import summarize_undo
    from cli.pages.pages import format_age

    folder = await asyncio.to_thread(_find_complete, repl, _require_idle(repl))
    runs = [run for run in rewindable_runs(folder) if run.user != COMPACT_REQUEST][:_MAX_REWOUND]
    if not runs:
        raise UsageError(NOTHING_TO_REWIND)
    options: dict[str, RunRecord] = {}
    for run in runs:
        label = to_single_line(run.user)
        options[f"{label} {run.run_id}" if label in options else label] = run
    chosen = await repl.ui.pick(WHICH_REQUEST, [(label, format_age(run.date)) for label, run in options.items()])
    if chosen is None:
        return
    choice = options[chosen]
    redact = Redactor(repl.state.read_settings().secrets).redact
    _require_idle(repl)
    undone = await asyncio.to_thread(rewind_session, folder, choice.run_id, redact=redact)
    left = rewindable_runs(folder)
    repl.queue.run_id = left[0].run_id if left else None
    _refresh_meter(repl)
    if undone.restored or undone.refused:
        repl.print_line(sanitize(summarize_undo(undone)))
    repl.print_line(f"{REWOUND}; /redo restores the files" if undone.restored else REWOUND, "quiet")
    if not repl.ui.set_text(choice.user, is_request=True):
        repl.print_line(sanitize(choice.user))


def worktree(repl: Repl, argument: str) -> Awaitable[None]:
    """Show the changes in the prompt's git worktree, or merge it and continue."""
    used = repl.state.worktree
    if used is None:
        raise UsageError(NO_WORKTREE, "`agent --worktree` opens a prompt in one; `agent worktrees` lists them")
    match split_words(argument):
        case () | ("diff",):
            _commit_worktree(repl, used)
            return repl.run_agent_command("worktrees", "diff", used.name)
        case ("merge",):
            _require_idle(repl)
            _commit_worktree(repl, used)
            return repl.run_agent_command("worktrees", "merge", used.name, "--keep")
        case _:
            raise UsageError(f"unknown argument {argument!r}", "try /worktree, /worktree diff or /worktree merge")


def _commit_worktree(repl: Repl, used: "Worktree") -> None:
    """Commit what the last request changed, under its name."""
    from agent.workspace.worktrees import Worktrees

    state = repl.state
    Worktrees(data_path(state.environ), state.environ).commit(used, state.last_request or used.name)


def fork(repl: Repl, argument: str) -> None:
    """Continue in a copy of the session."""
    from agent.sessions.upkeep.fork import fork as fork_session

    original = _require_idle(repl)
    store = _store(repl)
    copy = fork_session(store, store.find(original), argument or None)
    repl.queue.session_id = copy.id
    repl.print_line(f"switched to {copy.id}, a copy of {original}")
    repl.print_line(f"/resume {original} returns to the original", "quiet")


def compact(repl: Repl, argument: str) -> None:
    """Let the model summarize the conversation; later requests get the summary instead."""
    repl.require_session_id()
    repl.enqueue(
        QueuedRequest(submit=Submit(prompt=COMPACT_REQUEST), title="/compact", on_success=lambda: _print_sizes(repl))
    )


def _print_sizes(repl: Repl) -> None:
    context = _refresh_meter(repl)
    before, after = context.count_tokens(before_last_run=True), context.count_tokens()
    repl.print_line(f"{COMPACTED}: {format_count(before)} → {format_count(after)} tokens", "quiet")


def _refresh_meter(repl: Repl) -> "SessionContext":
    """Update the context meter after the context changed without a new reply."""
    from cli.repl.commands.context_command import read_context

    context = read_context(repl.state, repl.require_session_id())
    repl.state.show_context_share(context.share)
    return context


def export(repl: Repl, argument: str) -> Awaitable[None]:
    """Export the session to a file, or print it."""
    words = split_words(argument)
    target = ("-o", *words) if words and not words[0].startswith("-") else words
    return repl.run_agent_command("sessions", "export", repl.require_session_id(), *target)


def why(repl: Repl, argument: str) -> Awaitable[None]:
    """Show the evidence for a step, from the latest run with a step of this name."""
    words = split_words(argument)
    known = {step: run for step, run, _ in _known_steps(repl)}
    if not words:
        raise UsageError(
            "no step given", f"choose from {', '.join(known)}" if known else "the session has no steps yet"
        )
    return repl.run_agent_command("runs", "why", known.get(words[0], repl.require_run_id()), *words)


def complete_steps(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    """Complete step ids, with their titles."""
    if repl.queue.session_id is None or len(typed) > 1:
        return ()
    return [(step, title) for step, _, title in _known_steps(repl)]


def _known_steps(repl: Repl) -> list[tuple[str, str, str]]:
    """Return (step, run, title) for all steps of the session: latest run first, each step with its latest run."""
    steps: dict[str, tuple[str, str, str]] = {}
    for run in reversed(_record(repl, repl.require_session_id()).runs):
        if run.run_id.startswith("run-"):
            for step, title in run.titled_steps:
                steps.setdefault(step, (step, run.run_id, title))
    return list(steps.values())


def resume(repl: Repl, argument: str) -> Awaitable[None] | None:
    """Resume an unfinished run, or switch to another session."""
    from agent.sessions.resume.lookup import find_resumable_run, is_unfinished, unfinished_at_end
    from cli.run.resume_target import check_manifest

    store = _store(repl)
    if repl.queue.is_busy:
        raise UsageError(RUN_IN_PROGRESS, WAIT_HINT)
    if argument.startswith("run-"):
        candidate = find_resumable_run(store, argument)
        if not is_unfinished(candidate.run):
            raise UsageError(
                f"{candidate.run.run_id} is already finished", f"/resume {candidate.folder.id} continues its session"
            )
        check_manifest(candidate.run, is_given=False)
        _continue_session(repl, candidate.folder.id)
        repl.enqueue(QueuedRequest(submit=Submit(prompt=""), title=f"/resume {argument}", resumes=candidate))
        return None
    if argument:
        switch_to(repl, store.find(argument).id)
        return None
    here = repl.queue.session_id
    if here and (found_here := unfinished_at_end(store.find(here))):
        check_manifest(found_here.run, is_given=False)
        repl.enqueue(QueuedRequest(submit=Submit(prompt=""), title="/resume", resumes=found_here))
        return None
    return _choose_session(repl, store)


async def _choose_session(repl: Repl, store: SessionStore) -> None:
    """Let the user choose one of the latest sessions."""
    from agent.sessions.views.listing import newest_sessions, session_rows
    from cli.pages.pages import format_age

    newest = [session for session in newest_sessions(store) if session.id != repl.queue.session_id]
    # A task that could not start has a session without a run.
    rows = [row for row in session_rows(store, newest, _MAX_OFFERED) if row.runs]
    if not rows:
        raise UsageError(NO_OTHER_SESSION)
    options: dict[str, SessionRow] = {}
    for row in rows:
        label = _title(row)
        # A fork has the title of its original.
        options[f"{label} {row.id}" if label in options else label] = row
    chosen = await repl.ui.pick(
        WHICH_SESSION, [(label, f"{format_age(row.updated_at)}, {row.status}") for label, row in options.items()]
    )
    if chosen is not None:
        switch_to(repl, options[chosen].id)


def _title(row: "SessionRow") -> str:
    """Describe a session by its title and its last request."""
    last = "" if row.last_request in ("", row.title, COMPACT_REQUEST) else f" … {row.last_request}"
    return to_single_line(f"{row.title}{last}")


def switch_to(repl: Repl, session_id: str) -> None:
    """Switch to a session and print its last request and answer."""
    from agent.sessions.resume.lookup import unfinished_at_end

    _continue_session(repl, session_id)
    _refresh_meter(repl)
    record = _record(repl, session_id)
    requests = "1 request" if record.run_count == 1 else f"{record.run_count} requests"
    repl.print_line(f"switched to {session_id}: {requests} so far")
    if record.runs:
        room = repl.ui.columns - 2
        last = next((run for run in reversed(record.runs) if _is_user_request(run)), record.runs[-1])
        answer = [line for line in last.final.splitlines() if line.strip()]
        lines = [f"> {clip(last.user, room)}", *(f"  {clip(line, room)}" for line in answer[:_PREVIEW_LINES])]
        repl.print_line("\n".join([*lines, *(["  …"] if len(answer) > _PREVIEW_LINES else [])]), "quiet")
    if record.cwd and record.cwd != str(repl.state.cwd):
        repl.warn(f"this session was started in {record.cwd}; new requests run in {repl.state.cwd}")
    if unfinished_at_end(_store(repl).find(session_id)):
        repl.print_line("it has an unfinished run: /resume continues it", "quiet")


def _continue_session(repl: Repl, session_id: str) -> None:
    """Make later requests continue a session."""
    if session_id == repl.queue.session_id:
        return
    runs = [run for run in _record(repl, session_id).runs if run.usage is not None]
    repl.queue.session_id = session_id
    repl.queue.run_id = runs[-1].run_id if runs else None
    repl.state.usage = sum((run.usage for run in runs if run.usage), Usage())


def _is_user_request(run: RunRecord) -> bool:
    """Whether a run is a request typed by the user, not an undo or a summary."""
    return run.run_id.startswith("run-") and run.user != COMPACT_REQUEST


def _require_idle(repl: Repl) -> str:
    """Return the id of the session; raise if a run is in progress."""
    if repl.queue.is_busy:
        raise UsageError(RUN_IN_PROGRESS, WAIT_HINT)
    return repl.require_session_id()


def _record(repl: Repl, session_id: str) -> SessionRecord:
    return read_session(_store(repl).find(session_id))


def _find_complete(repl: Repl, session: str) -> SessionFolder:
    """Return a session, after recording the changes by commands of a killed run."""
    from agent.sessions.checkpoints.recovery import record_lost_changes

    folder = _store(repl).find(session)
    record_lost_changes(folder, Redactor(repl.state.read_settings().secrets))
    return folder


def _store(repl: Repl) -> SessionStore:
    return SessionStore(data_dir(repl.state.environ))
