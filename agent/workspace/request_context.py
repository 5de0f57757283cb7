"""Builds the context of a request: project notes, memory, history, attachments, piped text. All of it is data."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from agent.sessions.resume.conversation import COMPACT_REQUEST
from agent.vocabulary.errors import InputError
from agent.workspace.opening import changed_opening, list_folder
from agent.workspace.project_notes import ProjectNote
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.links_out import open_named
from tooling.files.openat2 import DIR_FLAGS, open_beneath

if TYPE_CHECKING:
    from agent.sessions.views.session_summary import SessionRecord

HISTORY_RUNS = 25
HISTORY_CHARS = 6000
_ANSWER_CHARS = 600
ATTACHMENT_BYTES = 1_000_000
_LISTING_BYTES = 10_000
_ENVIRONMENT = lazy_pattern(r"<environment>.*?</environment>", re.DOTALL)
USE_INPUT = "pass it as a file with -i/--input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A text attached to the request."""

    name: str
    text: str


def read_attachment(path: Path, folders: Sequence[Path] = ()) -> Attachment:
    """Read a file to attach to the request, or list a folder; raises InputError on failure.

    A link in one of the folders, where commands can create links, must not lead out of it.
    """
    if path.is_dir():
        return Attachment(name=f"{path.name}/", text=list_folder(path, _LISTING_BYTES))
    try:
        with open_named(path, folders) as file:
            data = file.read(ATTACHMENT_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read the attachment {path}: {error.strerror}") from error
    if len(data) > ATTACHMENT_BYTES:
        raise InputError(f"{path} is too large to attach", USE_INPUT)
    if b"\0" in data:
        raise InputError(f"{path} is not text", USE_INPUT)
    return Attachment(name=path.name, text=data.decode("utf-8", "replace"))


def read_images(paths: Sequence[Path], blobs: Path, folders: Sequence[Path] = ()) -> tuple[Image, ...]:
    """Store the images among the attached files; raises InputError if one is damaged or too large."""
    return tuple(_store_image(path, blobs, folders) for path in paths if is_image(path))


def is_image(path: Path) -> bool:
    """Whether an attached file is an image."""
    from tooling.images.header import is_image_file

    return is_image_file(path)


def _store_image(path: Path, blobs: Path, folders: Sequence[Path]) -> Image:
    from tooling.images.header import BROKEN, ImageProblem
    from tooling.images.prepare import MAX_FILE_BYTES, prepare_image, store_image

    try:
        with open_named(path, folders) as file:
            prepared = prepare_image(file.read(MAX_FILE_BYTES + 1))
        if prepared is None:
            raise ImageProblem(BROKEN)
        return store_image(*prepared, path.name, blobs)
    except ImageProblem as problem:
        raise InputError(f"cannot attach {path}: {problem.message}", problem.hint) from problem
    except OSError as error:
        raise InputError(f"cannot attach {path}: {error.strerror}") from error


def stage_inputs(inputs: Sequence[tuple[Path, str]], workspace: Path) -> tuple[str, ...]:
    """Copy input files into the workspace's `input/`, all or none; return their paths relative to the workspace.

    Each input has its name there. An existing file with the same content is reused.
    """
    folder = workspace / "input"
    if inputs and not folder.resolve().is_relative_to(workspace.resolve()):
        raise InputError(f"{folder} is a symbolic link that leads out of the working folder", "remove the link")
    created: list[Path] = []
    try:
        for source, name in inputs:
            if name in ("", ".", "..") or "/" in name or "\0" in name:
                raise InputError(f"{name!r} cannot be the name of an input file", "a name has no / in it")
            if _is_missing(source, folder / name):
                if not folder.is_dir():
                    folder.mkdir()
                    created.append(folder)
                _copy_new(source, folder / name, workspace, created)
    except BaseException:
        for path in reversed(created):
            path.rmdir() if path == folder else path.unlink()
        raise
    return tuple(dict.fromkeys(f"input/{name}" for _, name in inputs))


def _is_missing(source: Path, target: Path) -> bool:
    """Whether an input must be copied. Raises InputError if it cannot be, or if another file has its name."""
    if not source.is_file():
        raise InputError(f"the input {source} is not an existing file")
    if not os.path.lexists(target):
        return True
    import filecmp

    try:
        # Not shallow: equal mtime and size do not imply equal content.
        is_same = target.is_file() and not target.is_symlink() and filecmp.cmp(source, target, shallow=False)
    except OSError as error:
        raise InputError(f"cannot stage the input {source}: {error.strerror}") from error
    if not is_same:
        other = f"-i {target.stem}-2{target.suffix}={source}"
        raise InputError(
            f"{target} already exists and is not {source}", f"stage it under another name ({other}), or move one away"
        )
    return False


def _copy_new(source: Path, target: Path, workspace: Path, created: list[Path]) -> None:
    import shutil

    try:
        with open_named(source, (workspace,)) as original, _create(target, workspace) as copy:
            created.append(target)
            shutil.copyfileobj(original, copy)
    except OSError as error:
        raise InputError(f"cannot stage the input {source}: {error.strerror}") from error


def _create(target: Path, workspace: Path) -> BinaryIO:
    """Create a file in a folder of the workspace, safely even if a command replaces the folder by a link."""
    root = os.open(workspace, DIR_FLAGS)
    try:
        folder = open_beneath(root, target.parent.name, DIR_FLAGS)
    finally:
        os.close(root)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(target.name, flags, 0o666, dir_fd=folder), "wb")
    finally:
        os.close(folder)


def background(
    *, opening: str, notes: Sequence[ProjectNote], memory: str, instructions: str = "", said: str = ""
) -> str:
    """Return the environment and background of a request, each part in a tag, without parts already `said`."""
    known = told_environment(said)
    parts = [changed_opening(known, opening) if known else opening]
    parts += [wrap_in_tag("project_notes", note.text, path=note.path) for note in notes]
    parts.append(wrap_in_tag("memory", memory) if memory else "")
    parts.append(wrap_in_tag("instructions", instructions) if instructions else "")
    return "\n\n".join(part for part in parts if part and part not in said)


def told_environment(said: str) -> str:
    """Return everything said about the environment, for a step that does not have the conversation."""
    return "\n".join(_ENVIRONMENT.findall(said))


def attached(
    *,
    stdin: str | None,
    attachments: Sequence[Attachment],
    staged: Sequence[str],
    images: Sequence[Image] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return the attachments of a request, each part tagged as data."""
    parts = ["Input files: " + ", ".join(staged)] if staged else []
    if images:
        parts.append("Attached: " + ", ".join(image.label for image in images))
    parts += [wrap_in_tag("file", attachment.text, name=attachment.name) for attachment in attachments]
    parts += notes
    if stdin:
        parts.append(wrap_in_tag("stdin", stdin.rstrip()))
    return "\n\n".join(parts)


def wrap_in_tag(tag: str, text: str, /, **attributes: str) -> str:
    """Return a text in a tag that the text can neither close nor imitate; nor can it pass for the environment."""
    given = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items())
    escaped = re.sub(rf"<(?=\s*(?:/\s*)?(?:{tag}|environment)\b)", "‹", text, flags=re.IGNORECASE)
    return f"<{tag}{given}>\n{escaped}\n</{tag}>"


def _attribute(value: str) -> str:
    return " ".join(value.split()).replace('"', "'").replace("<", "‹")


def history(session: "SessionRecord") -> str:
    """Return the newest finished runs that fit, oldest first, starting at the last summary of the session."""
    from agent.sessions.views.session_summary import active_runs

    entries: list[str] = []
    remaining = HISTORY_CHARS
    for run in reversed(active_runs(session.runs)[-HISTORY_RUNS:]):
        if not run.final:
            continue
        is_summary = run.user == COMPACT_REQUEST
        text = f"- asked: {run.user}\n  answered: {run.final[:_ANSWER_CHARS]}"
        if is_summary:
            text = f"- what was said and done before: {run.final[:remaining]}"
        remaining -= len(text)
        if remaining < 0 and not is_summary:
            break
        entries.append(text)
        if is_summary:
            break
    return wrap_in_tag("history", "\n".join(reversed(entries))) if entries else ""
