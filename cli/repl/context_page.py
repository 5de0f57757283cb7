"""What the next request takes along, and how much room it takes."""

from agent.config.places import data_dir
from agent.memory.excerpt import excerpt
from agent.memory.memory_file import MemoryFile
from agent.model.prices import PriceTable
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import SessionRecord, read_session
from agent.workspace.materials import HISTORY_CHARS, history
from agent.workspace.project_notes import read_notes
from cli.repl.state import ReplPlace
from cli.screen.format import amount

_CHARS_PER_TOKEN = 4


def context_lines(place: ReplPlace, session_id: str | None, overheard: str) -> list[str]:
    """Return the parts with their sizes, the whole, and how much of it the model can read."""
    store = SessionStore(data_dir(place.environ))
    session = read_session(store.existing(session_id)) if session_id else SessionRecord(id="")
    settings = place.loaded().settings
    notes = read_notes(place.cwd) if settings.project_notes else []
    memory = excerpt(MemoryFile(data_dir(place.environ)).read()) if settings.memory else ""
    asked = "1 request" if session.run_count == 1 else f"{session.run_count} requests"
    parts = [
        ("history", len(history(session)), f"at most {amount(HISTORY_CHARS)}, {asked} so far"),
        ("memory", len(memory), ""),
        *(("notes", len(note.text), f"in {note.path}") for note in notes),
        *([("output", len(overheard), "of your own commands")] if overheard else []),
    ]
    whole = sum(size for _, size, _ in parts)
    rest = f"about {amount(whole // _CHARS_PER_TOKEN)} tokens{_of_window(settings.model)}"
    return [
        f"  {name:<7}  {amount(size):>5} characters{more and ', '}{more}"
        for name, size, more in (*parts, ("in all", whole, rest))
    ]


def _of_window(model: str) -> str:
    size = PriceTable().context_size(model) if model else None
    return f" of the {amount(size)} the model can read" if size else ""
