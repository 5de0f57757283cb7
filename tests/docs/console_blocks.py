"""The `console` blocks of the documentation: commands after `$` and the output below them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.house.source_tree import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Matches any text in a line; alone on a line, any number of lines.
ANYTHING = "…"


@dataclass(frozen=True, kw_only=True)
class ConsoleBlock:
    """One block: its commands and its expected output."""

    page: Path
    number: int
    commands: tuple[str, ...]
    output: str

    @property
    def name(self) -> str:
        return f"{self.page.stem}-{self.number}"

    def matches(self, output: str) -> bool:
        """Whether real output matches the block."""
        lines = [_pattern(line) for line in self.output.splitlines()]
        return re.fullmatch("".join(lines), output) is not None


def blocks() -> list[ConsoleBlock]:
    """Return all blocks of all pages."""
    return [
        _block(page, number, text) for page in PAGES for number, text in enumerate(_BLOCK.findall(page.read_text()), 1)
    ]


def _block(page: Path, number: int, text: str) -> ConsoleBlock:
    lines = text.splitlines(keepends=True)
    commands = tuple(line.removeprefix("$ ").rstrip("\n") for line in lines if line.startswith("$ "))
    shown = "".join(line for line in lines if not line.startswith("$ "))
    return ConsoleBlock(page=page, number=number, commands=commands, output=shown)


def _pattern(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in line.split(ANYTHING)) + r"\n"
