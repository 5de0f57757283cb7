"""What comes with a request: notes of the project, memory, earlier runs, files, piped text. All of it is data."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from agent.sessions.views.session_summary import SessionRecord
from agent.vocabulary.errors import InputError
from agent.workspace.project_notes import ProjectNote
from tooling.contract.fast_dataclass import dataclass

HISTORY_RUNS = 25
HISTORY_CHARS = 6000
_ANSWER_CHARS = 600
# What a person asks for to make room; the answer stands for all that was said before it.
COMPACT_REQUEST = (
    "Sum up this conversation for yourself: what was asked, decided, found and changed, and what is still open. "
    "Leave out nothing that later requests may rely on. Do no work; answer with the summary alone."
)
ATTACHMENT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A text that is handed over with the request."""

    name: str
    text: str


def read_attachment(path: Path) -> Attachment:
    """Read a file that is to stand in the request; what is missing, too large or no text is refused."""
    try:
        with path.open("rb") as file:
            data = file.read(ATTACHMENT_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read the attachment {path}: {error.strerror}") from error
    if len(data) > ATTACHMENT_BYTES:
        raise InputError(f"{path} is too large to stand in a request", "hand it over as a file with -i/--input")
    if b"\0" in data:
        raise InputError(f"{path} is not text", "hand it over as a file with -i/--input")
    return Attachment(name=path.name, text=data.decode("utf-8", "replace"))


def stage_inputs(inputs: Sequence[Path], workspace: Path) -> list[str]:
    """Copy input files into the workspace's `input/`; return their paths relative to the workspace."""
    staged: list[str] = []
    for source in inputs:
        target = workspace / "input" / source.name
        try:
            if not source.is_file():
                raise InputError(f"the input {source} is not a file that exists")
            if target.exists():
                raise InputError(f"there is already a file {target}", "rename one of the two")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        except OSError as error:
            raise InputError(f"cannot stage the input {source}: {error.strerror}") from error
        staged.append(f"input/{source.name}")
    return staged


def build_context(
    *,
    stdin: str | None,
    attachments: Sequence[Attachment],
    staged: Sequence[str],
    session: SessionRecord,
    notes: Sequence[ProjectNote] = (),
    memory: str = "",
) -> str:
    """Return everything that stands beside the request, each part marked as the data it is; what changes last."""
    parts = [wrap_in_tag("project_notes", note.text, path=note.path) for note in notes]
    parts += [wrap_in_tag("memory", memory) if memory else "", history(session)]
    if staged:
        parts.append("Input files: " + ", ".join(staged))
    parts += [f'<file name="{attachment.name}">\n{attachment.text}\n</file>' for attachment in attachments]
    if stdin:
        parts.append(f"<stdin>\n{stdin.rstrip()}\n</stdin>")
    return "\n\n".join(part for part in parts if part)


def wrap_in_tag(name: str, text: str, **attributes: str) -> str:
    """Return a text between marks that it cannot close itself."""
    given = "".join(f' {key}="{value}"' for key, value in attributes.items())
    inner = re.sub(rf"<(?=\s*/\s*{name})", "‹", text, flags=re.IGNORECASE)
    return f"<{name}{given}>\n{inner}\n</{name}>"


def history(session: SessionRecord) -> str:
    """Return the newest finished runs that fit, oldest first; nothing from before the session was last summed up."""
    kept: list[str] = []
    room = HISTORY_CHARS
    for run in reversed(session.runs[-HISTORY_RUNS:]):
        if not run.final:
            continue
        is_summary = run.user == COMPACT_REQUEST
        text = f"- asked: {run.user}\n  answered: {run.final[:_ANSWER_CHARS]}"
        if is_summary:
            text = f"- what was said and done before: {run.final[:room]}"
        room -= len(text)
        if room < 0 and not is_summary:
            break
        kept.append(text)
        if is_summary:
            break
    return "<history>\n" + "\n".join(reversed(kept)) + "\n</history>" if kept else ""
