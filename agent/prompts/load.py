"""Loads prompts: one file each, whose first line is a comment with its version and is not sent."""

import re
from functools import cache
from pathlib import Path

from tooling.contract.lazy_pattern import lazy_pattern

_FOLDER = Path(__file__).parent
VERSION_LINE = lazy_pattern(r"<!-- version (\d+): .+ -->\n")


def load_prompt(name: str, **values: object) -> str:
    """Return a prompt with `{name}` replaced by the values; other braces stay, because prompts show JSON."""
    text = _read(name)
    if not values:
        return text
    return re.sub(rf"\{{({'|'.join(values)})\}}", lambda found: str(values[found[1]]), text)


@cache
def _read(name: str) -> str:
    text = (_FOLDER / f"{name}.md").read_text("utf-8")
    return VERSION_LINE.sub("", text, count=1).strip()
