"""The files of a folder without ripgrep: same order, same exclusions, no links followed."""

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
    """Yield regular files below an open folder, sorted as ripgrep does, as paths relative to it."""
    waiting = ["."]
    while waiting:
        if time.monotonic() > deadline:
            raise ToolError("The search took too long; narrow the path.", status="timeout", exit_code=TIMED_OUT)
        path = waiting.pop()
        if not path.endswith("/") and path != ".":
            yield path
            continue
        waiting += reversed(_entries(root, path))


def _entries(root: int, path: str) -> list[str]:
    """Return the files of a folder, and its folders with a slash at their end, in order."""
    prefix = "" if path == "." else path
    try:
        folder = open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # It may not be read, was removed or became a link meanwhile: passed over, as ripgrep does.
        return []
    try:
        with os.scandir(folder) as found:
            kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found if _should_visit(entry)]
    finally:
        os.close(folder)
    return [f"{prefix}{name}/" if is_folder else f"{prefix}{name}" for name, is_folder in sorted(kinds)]


def _should_visit(entry: "os.DirEntry[str]") -> bool:
    if entry.is_dir(follow_symlinks=False):
        return entry.name not in SKIPPED_DIRS
    return entry.is_file(follow_symlinks=False)


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Return an expression for a glob as ripgrep reads it: without a slash it matches at any depth."""
    anchored = "/" in pattern.rstrip("/")
    body = "".join(_glob_token_regex(word) for word in re.findall(_GLOB_TOKENS, pattern.lstrip("/")))
    return re.compile(rf"{'' if anchored else '(?:.*/)?'}{body}\Z", re.DOTALL)


def _glob_token_regex(word: str) -> str:
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if word in fixed:
        return fixed[word]
    if word.startswith("[") and len(word) > 1:
        return "[" + word[1:-1].replace("\\", r"\\").replace("!", "^", int(word[1] == "!")) + "]"
    if word.startswith("{") and len(word) > 1:
        choices = (
            "".join(map(_glob_token_regex, re.findall(_GLOB_TOKENS, choice))) for choice in word[1:-1].split(",")
        )
        return f"(?:{'|'.join(choices)})"
    return re.escape(word)
