"""`@path` in a request: which files come along, and which are named by somebody who should not have them."""

import re
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.safety.paths.sensitive_files import is_sensitive_file

_MENTION = re.compile(r"(?:^|(?<=\s))@(\S+)")
_SECRETS = "it usually holds secrets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """What was found: files to take along, and why others stay."""

    files: tuple[Path, ...] = ()
    refused: tuple[str, ...] = ()


def mentions_in(request: str, folder: Path) -> Mentions:
    """Return the files that a request names; part of it may be pasted, so not everything it names comes along."""
    files: list[Path] = []
    refused: list[str] = []
    for name in dict.fromkeys(_MENTION.findall(request)):
        path = folder / name
        if not _is_file(path):
            continue
        if why := _objection(path, folder):
            refused.append(f"@{name} stays here: {why}; !cat takes along what you want to send")
        else:
            files.append(path)
    return Mentions(files=tuple(files), refused=tuple(refused))


def _objection(path: Path, folder: Path) -> str:
    real, here = path.resolve(), folder.resolve()
    if is_sensitive_file(path) or is_sensitive_file(real):
        return _SECRETS
    is_named_inside = ".." not in path.parts and path.is_relative_to(folder)
    if is_named_inside and not real.is_relative_to(here):
        return f"it is a link to {real}, outside of this folder"
    return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        # Too long for a name, or behind a folder that is closed to us: words, then.
        return False
