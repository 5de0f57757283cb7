"""`@path` in a request: the files and folders it names, and which of them are attached."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import open_regular
from tooling.files.sensitive_files import is_sensitive_file
from tooling.images.header import is_image_file

# Not inside a word, so that a@b.org is no mention; @@ starts a hunk of a diff, @{ a git revision.
_BEGIN = r"(?<![\w.+\-@/\\=])@(?![@{])"
_MENTION = lazy_pattern(_BEGIN + r"""(?:"([^"\n]+)"|'([^'\n]+)'|((?:\\ |\S)+))""")
_AT_CURSOR = lazy_pattern(_BEGIN + r"""(?:"([^"\n]*)|'([^'\n]*)|((?:\\ |[^\s"'])*))$""")
_TRAILING = ".,;:!?)]}>\"'`*_…”’»。，、；：！？）】」』"
# Text after a path within the same word: the rest of a list, a line number, a possessive.
_ENDS = lazy_pattern(r"[,;:)\]}>\"'`#|]")
_DECORATED = lazy_pattern(
    r"\s*(?:@|(?:async|def|class|public|private|protected|static|final|abstract|override|export|function|func|fun"
    r"|const|let|var|val|interface|enum|struct)\b)"
)
_MAX_MISSING = 3
SECRETS = "it usually contains secrets"
NOT_TEXT = "it is not text"
NO_FILE = "no such file or folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Paths to attach, a line about each of them, and warnings about paths that are not attached."""

    files: tuple[Path, ...] = ()
    attached: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def find_mentions(request: str, folder: Path) -> Mentions:
    """Find the mentions in a request; sensitive files are skipped, since parts of a request may be pasted."""
    attached: dict[Path, str] = {}
    problems: dict[str, str] = {}
    missing: dict[str, str] = {}
    for found in _MENTION.finditer(request):
        name = found[1] or found[2] or found[3].replace("\\ ", " ")
        path = next(filter(_is_attachable, (folder / spelling for spelling in _spellings(found, name))), None)
        if path is None:
            if not _is_code(request, found):
                missing.setdefault(name.rstrip(_TRAILING) or name, _why_missing(folder, name))
        elif why := _refusal_reason(path, folder):
            problems[str(path)] = f"@{_shown(path, folder)} not attached: {why}; use !cat to include it anyway"
        elif path not in attached:
            try:
                attached[path] = _describe(path, folder)
            except OSError as error:
                problems[str(path)] = f"@{_shown(path, folder)} not attached: {error.strerror}"
            except ValueError as reason:
                problems[str(path)] = f"@{_shown(path, folder)} not attached: {reason}"
    return Mentions(
        files=tuple(attached),
        attached=tuple(filter(None, attached.values())),
        problems=(*problems.values(), *_missing_lines(missing)),
    )


def mention_at_cursor(text: str) -> tuple[str, int] | None:
    """Return the path being typed at the end of a text, and the length of its mention; else None."""
    found = _AT_CURSOR.search(text)
    if found is None:
        return None
    return next(group for group in found.groups() if group is not None).replace("\\ ", " "), len(found[0])


def mention(path: str) -> str:
    """Return the mention of a path, quoted if it contains a space."""
    if not re.search(r"\s", path) and not path.startswith(('"', "'")):
        return f"@{path}"
    return f"@'{path}'" if '"' in path else f'@"{path}"'


def image_mentions(pasted: str) -> str | None:
    """Return the mentions for a paste that consists of paths of images, such as a dragged file; else None."""
    try:
        words = shlex.split(pasted)
    except ValueError:
        return None
    paths = [_pasted_path(word) for word in words]
    if not paths or not all(path and is_image_file(path) for path in paths):
        return None
    return "".join(f"{mention(str(path))} " for path in paths)


def _pasted_path(word: str) -> Path | None:
    text = unquote(urlsplit(word).path) if word.startswith("file://") else word
    if "\0" in text or '"' in text or not text.startswith(("/", "~/")):
        return None
    return Path(text).expanduser()


def _spellings(found: re.Match[str], name: str) -> Iterator[str]:
    """Return the possible paths of a mention: all of it, or less of the trailing punctuation."""
    yield _expand(name)
    if found[3] is None:
        return
    for end in range(len(name) - 1, len(name.rstrip(_TRAILING)) - 1, -1):
        yield _expand(name[:end])
    if end_of_path := _ENDS.search(name):
        yield _expand(name[: end_of_path.start()].rstrip(_TRAILING))


def _expand(name: str) -> str:
    # An empty name would be the folder itself; NUL cannot be in a path.
    return (str(Path(name).expanduser()) if name.startswith("~/") else name) or "\0"


def _is_attachable(path: Path) -> bool:
    try:
        return path.is_file() or path.is_dir()
    except (OSError, ValueError):
        # Too long for a file name, or in a folder we may not read.
        return False


def _is_code(request: str, found: re.Match[str]) -> bool:
    """Whether a word that names no file is a decorator, or inside code."""
    before, after = request[: found.start()], request[found.end() :]
    line = before.rpartition("\n")[2]
    if "(" in (found[3] or "") or line.count("`") % 2 or len(re.findall(r"^ *```", before, re.MULTILINE)) % 2:
        return True
    return not line.strip() and bool(_DECORATED.match(after.partition("\n")[2]))


def _why_missing(folder: Path, name: str) -> str:
    """Return why a name is not attached, with the name that was probably meant."""
    head, _, base = name.rpartition("/")
    try:
        longer = [entry.name for entry in os.scandir(folder / head) if entry.name.startswith(f"{base} ")]
    except (OSError, ValueError):
        longer = []
    hint = f"; quote a name with spaces: {mention('/'.join(filter(None, (head, min(longer)))))}" if longer else ""
    return f"{NO_FILE}{hint}"


def _missing_lines(missing: dict[str, str]) -> list[str]:
    lines = [f"@{name} not attached: {why}" for name, why in list(missing.items())[:_MAX_MISSING]]
    more = len(missing) - _MAX_MISSING
    return [*lines, f"{more} more words with @ are not files"] if more > 0 else lines


def _refusal_reason(path: Path, folder: Path) -> str:
    real, here = path.resolve(), folder.resolve()
    if is_sensitive_file(path) or is_sensitive_file(real):
        return SECRETS
    is_named_inside = ".." not in path.parts and path.is_relative_to(folder)
    if is_named_inside and not real.is_relative_to(here):
        return f"it is a link to {real}, outside this folder"
    return ""


def _describe(path: Path, folder: Path) -> str:
    """Describe the attachment and its size; empty for an image, which the run itself reports.

    Raises ValueError if it is too large or not text, OSError if it cannot be read.
    """
    from agent.workspace.request_context import ATTACHMENT_BYTES
    from cli.pages.pages import format_size

    if path.is_dir():
        with os.scandir(path) as entries:
            count = sum(1 for _ in entries)
        name = _shown(path, folder).rstrip("/")
        return f"{name}/ (folder, {count:,} {'entry' if count == 1 else 'entries'})"
    if is_image_file(path):
        return ""
    with open_regular(path) as file:
        data = file.read(ATTACHMENT_BYTES + 1)
    if len(data) > ATTACHMENT_BYTES:
        raise ValueError(f"it is larger than {format_size(ATTACHMENT_BYTES)}; the model can read parts of it")
    if b"\0" in data:
        raise ValueError(NOT_TEXT)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return f"{_shown(path, folder)} ({format_size(len(data))}, {lines:,} {'line' if lines == 1 else 'lines'})"


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
