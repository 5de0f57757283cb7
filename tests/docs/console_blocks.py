"""The `console` blocks of the documentation: commands after `$` and the output below them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.house.source_tree import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = "$ "
# Matches any text in a line; alone on a line, any number of lines.
ANYTHING = "…"


@dataclass(frozen=True, kw_only=True)
class ConsoleBlock:
    """One block: its commands and the output it shows."""

    page: Path
    number: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.stem}-{self.number}"

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(command for command, _ in self.parts)

    @property
    def output(self) -> str:
        """The output of all commands together."""
        return "".join(f"{line}\n" for line in self.text.splitlines() if not line.startswith(_COMMAND))

    @property
    def parts(self) -> list[tuple[str, list[str]]]:
        """Each command with the lines below it."""
        parts: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith(_COMMAND):
                parts.append((line.removeprefix(_COMMAND), []))
            else:
                parts[-1][1].append(line)
        return parts

    def matches(self, output: str) -> bool:
        """Whether real output matches the block."""
        lines = [_pattern(line) for line in self.output.splitlines()]
        return re.fullmatch("".join(lines), output) is not None


def blocks() -> list[ConsoleBlock]:
    """Return all blocks of all pages."""
    return [
        ConsoleBlock(page=page, number=number, text=text)
        for page in PAGES
        for number, text in enumerate(_BLOCK.findall(page.read_text()), 1)
    ]


def matches_line(shown: str, printed: str) -> bool:
    """Whether a printed line matches one that a block shows."""
    return re.fullmatch(_pattern(shown), f"{printed}\n") is not None


def _pattern(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*"
    return ".*".join(re.escape(part) for part in line.split(ANYTHING)) + r"\n"
