"""Walk the files of a folder without ripgrep: same order, same exclusions, no links followed."""

import os
import re
import time
from collections.abc import Iterator

from tooling.contract.result import TIMED_OUT, ToolError
from tooling.files.openat2 import open_beneath

SKIPPED_DIRS = (".git", "node_modules")
MAX_ENTRIES = 200
_GLOB_TOKENS = r"(?s:\*\*/|\*\*|\*|\?|\[[^\]]+\]|\{[^{}]*\}|.)"


def walk_files(root: int, *, deadline: float) -> Iterator[str]:
    """Yield the relative paths of regular files beneath an open folder, sorted like ripgrep."""
    pending = ["."]
    while pending:
        check_deadline(deadline)
        path = pending.pop()
        if not path.endswith("/") and path != ".":
            yield path
            continue
        pending += reversed(_entries(root, path))


def path_order(path: str) -> list[str]:
    """Return the key that sorts paths as a walk does: folder by folder."""
    return path.split("/")


def check_deadline(deadline: float) -> None:
    """Raise ToolError if a search has taken too long."""
    if time.monotonic() > deadline:
        raise ToolError("The search took too long; narrow the path.", status="timeout", exit_code=TIMED_OUT)


def _entries(root: int, path: str) -> list[str]:
    """Return the sorted entries of a folder; folders end with a slash."""
    prefix = "" if path == "." else path
    try:
        folder = open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # Unreadable, removed or replaced by a link in the meantime: skipped, as ripgrep does.
        return []
    try:
        with os.scandir(folder) as entries:
            kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if _should_visit(entry)]
    finally:
        os.close(folder)
    return [f"{prefix}{name}/" if is_folder else f"{prefix}{name}" for name, is_folder in sorted(kinds)]


def _should_visit(entry: "os.DirEntry[str]") -> bool:
    if entry.is_dir(follow_symlinks=False):
        return entry.name not in SKIPPED_DIRS
    return entry.is_file(follow_symlinks=False)


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Compile a glob with the semantics of ripgrep: without a slash it matches at any depth."""
    anchored = "/" in pattern.rstrip("/")
    body = "".join(_glob_token_regex(token) for token in re.findall(_GLOB_TOKENS, pattern.lstrip("/")))
    return re.compile(rf"{'' if anchored else '(?:.*/)?'}{body}\Z", re.DOTALL)


def _glob_token_regex(token: str) -> str:
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token in wildcards:
        return wildcards[token]
    if token.startswith("[") and len(token) > 1:
        return "[" + token[1:-1].replace("\\", r"\\").replace("!", "^", int(token[1] == "!")) + "]"
    if token.startswith("{") and len(token) > 1:
        choices = (
            "".join(map(_glob_token_regex, re.findall(_GLOB_TOKENS, choice))) for choice in token[1:-1].split(",")
        )
        return f"(?:{'|'.join(choices)})"
    return re.escape(token)
