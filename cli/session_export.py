"""Writing a session down, to stdout or to a file."""

import sys
from pathlib import Path
from typing import Literal, TypeAlias

import typer

from agent.sessions.store import SessionFolder
from agent.sessions.upkeep.exporting import document_of, markdown
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import InputError
from cli.pages.pages import show_text, tell
from cli.safe_write import write_own_file
from cli.screen.sanitize import readable_json
from tooling.contract.json_codec import encode

Form: TypeAlias = Literal["markdown", "json"]


def export(folder: SessionFolder, *, form: Form | None, output: Path | None) -> None:
    """Write a session in the asked-for form; without one the file's name decides, else it is Markdown."""
    document = document_of(folder)
    is_json = form == "json" or (form is None and output is not None and output.suffix == ".json")
    text = _json(encode(document)) if is_json else markdown(document)
    if output is None:
        show_text(text)
        return
    # A script that names a file means it; a person may have forgotten that it is there.
    is_asked = output.exists() and sys.stdin.isatty()
    if is_asked and not typer.confirm(f"{output} is there already; replace it?", err=True):
        raise typer.Exit(exit_codes.FAILED)
    try:
        write_own_file(output, text, [Path(document.cwd)])
    except OSError as error:
        raise InputError(f"the session cannot be written to {output}: {error.strerror}") from error
    tell(f"written to {output}")


def _json(data: object) -> str:
    return readable_json(data, indent=2) + "\n"
