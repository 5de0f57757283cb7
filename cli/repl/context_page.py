"""What the next request takes along, and how much room it takes."""

from agent.config.places import data_dir
from agent.memory.excerpt import excerpt
from agent.memory.memory_file import MemoryFile
from agent.sessions.fold import SessionRecord, read_session
from agent.sessions.store import SessionStore
from agent.workspace.materials import HISTORY_CHARS, history
from agent.workspace.project_notes import read_notes
from cli.repl.place import ReplPlace
from cli.screen.wording import amount


def context_lines(place: ReplPlace, session_id: str | None) -> list[str]:
    """Return the parts with their sizes in characters."""
    store = SessionStore(data_dir(place.environ))
    session = read_session(store.existing(session_id)) if session_id else SessionRecord(id="")
    settings = place.loaded().settings
    notes = read_notes(place.cwd) if settings.project_notes else []
    memory = excerpt(MemoryFile(data_dir(place.environ)).read()) if settings.memory else ""
    told = len(history(session))
    return [
        f"  history  {amount(told)} of {amount(HISTORY_CHARS)} characters, {len(session.runs)} requests so far",
        f"  memory   {amount(len(memory))} characters",
        *(f"  notes    {amount(len(note.text))} characters of {note.path}" for note in notes),
    ]
