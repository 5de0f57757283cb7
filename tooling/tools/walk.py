"""The files of a folder without ripgrep: same order, same exclusions, no links followed."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tooling.contract.result import TIMED_OUT, ToolError

SKIPPED_DIRS = (".git", "node_modules")
MAX_ENTRIES = 200
_GLOB_WORDS = r"(?s:\*\*/|\*\*|\*|\?|\[[^\]]+\]|\{[^{}]*\}|.)"


def walk_files(root: Path, *, deadline: float) -> Iterator[str]:
    """Yield regular files below a folder, sorted, as paths relative to it."""
    for folder, names, files in os.walk(root):
        if time.monotonic() > deadline:
            raise ToolError("The search took too long; narrow the path.", status="timeout", exit_code=TIMED_OUT)
        names[:] = sorted(name for name in names if name not in SKIPPED_DIRS)
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(root))


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Return an expression for a glob as ripgrep reads it: without a slash it matches at any depth."""
    anchored = "/" in pattern.rstrip("/")
    body = "".join(_glob_word(word) for word in re.findall(_GLOB_WORDS, pattern.lstrip("/")))
    return re.compile(rf"{'' if anchored else '(?:.*/)?'}{body}\Z", re.DOTALL)


def _glob_word(word: str) -> str:
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if word in fixed:
        return fixed[word]
    if word.startswith("[") and len(word) > 1:
        return "[" + word[1:-1].replace("\\", r"\\").replace("!", "^", int(word[1] == "!")) + "]"
    if word.startswith("{") and len(word) > 1:
        choices = ("".join(map(_glob_word, re.findall(_GLOB_WORDS, choice))) for choice in word[1:-1].split(","))
        return f"(?:{'|'.join(choices)})"
    return re.escape(word)
