"""Writing a session down, to stdout or to a file."""

from pathlib import Path
from typing import Literal, TypeAlias

from agent.sessions.exporting import document_of, markdown
from agent.sessions.store import SessionFolder
from agent.vocabulary.errors import InputError
from cli.own_file import write_own_file
from cli.pages import show_text
from cli.screen.readable import readable_json
from tooling.contract.shape import encode

Form: TypeAlias = Literal["markdown", "json"]


def export(folder: SessionFolder, *, form: Form | None, output: Path | None) -> None:
    """Write a session in the asked-for form; without one the file's name decides, else it is Markdown."""
    document = document_of(folder)
    is_json = form == "json" or (form is None and output is not None and output.suffix == ".json")
    text = _json(encode(document)) if is_json else markdown(document)
    if output is None:
        show_text(text)
        return
    try:
        write_own_file(output, text, [Path(document.cwd)])
    except OSError as error:
        raise InputError(f"the session cannot be written to {output}: {error.strerror}") from error


def _json(data: object) -> str:
    return readable_json(data, indent=2) + "\n"
