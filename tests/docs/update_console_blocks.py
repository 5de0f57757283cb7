"""Rewrites the output in `console` blocks that no longer matches: `python -m tests.docs.update_console_blocks`.

Lines that still match keep their `…`; new lines come as the program prints them, so review the diff.
"""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent.config.settings import Settings
from tests.cli.terminal_user import LIMIT_S, User
from tests.docs.console_blocks import ANYTHING, ConsoleBlock, blocks, matches_line
from tests.house.program import AGENT
from tests.house.source_tree import ROOT

_MARKER = "\x01"
# Text that differs from run to run.
_VOLATILE = (
    (re.compile(r"run-\d{14}-[0-9a-f]{6}"), f"run-{ANYTHING}"),
    (re.compile(r"\b\d+\.\d s\b"), f"{ANYTHING} s"),
)


def reader(home: Path) -> User:
    """Return a user who follows the documentation, with the default settings."""
    return User(home=home, environ={"AGENT_PLANNING": Settings().planning})


def shell(user: User, line: str) -> str:
    """Run lines in a shell as a user in a checkout would; return everything printed."""
    project = user.home / "project"
    project.mkdir(exist_ok=True)
    (project / "examples").symlink_to(ROOT / "examples")
    environ = user.environment(PATH=f"{AGENT.parent}:/usr/local/bin:/usr/bin:/bin")
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=project,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_S,
        check=False,
    )
    return done.stdout.decode()


def merge_lines(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return the printed lines, with the shown line in place of each one it matches; matches stay in order."""
    # best[i][j] is the number of matches between shown[i:] and printed[j:].
    best = [[0] * (len(printed) + 1) for _ in range(len(shown) + 1)]
    for i in reversed(range(len(shown))):
        for j in reversed(range(len(printed))):
            skip = max(best[i + 1][j], best[i][j + 1])
            best[i][j] = max(skip, best[i + 1][j + 1] + 1 if matches_line(shown[i], printed[j]) else 0)
    merged, i = [], 0
    for j, line in enumerate(printed):
        while i < len(shown) and best[i + 1][j] == best[i][j]:
            i += 1
        if i < len(shown) and matches_line(shown[i], line) and best[i][j] == best[i + 1][j + 1] + 1:
            line, i = shown[i], i + 1
        merged.append(line if line in shown else _elide(line))
    return merged


def _elide(line: str) -> str:
    for pattern, replacement in _VOLATILE:
        line = pattern.sub(replacement, line)
    return line


def update_block(block: ConsoleBlock, printed: Sequence[str]) -> str:
    """Return the text of a block with the output of each command replaced."""
    lines: list[str] = []
    for (command, shown), output in zip(block.parts, printed, strict=True):
        is_elided = any(line.strip() == ANYTHING for line in shown)
        lines += [f"$ {command}", *(shown if is_elided else merge_lines(shown, output.splitlines()))]
    return "".join(f"{line}\n" for line in lines)


def run_block(block: ConsoleBlock) -> list[str]:
    """Return what each command of a block prints."""
    with tempfile.TemporaryDirectory() as home:
        output = shell(reader(Path(home)), f"\nprintf '{_MARKER}'\n".join(block.commands))
    return output.split(_MARKER)


def main() -> None:
    """Update every block that no longer matches; blocks with a lone `…` in the way are only named."""
    for block in blocks():
        printed = run_block(block)
        if block.matches("".join(printed)):
            continue
        updated = update_block(block, printed)
        block.page.write_text(block.page.read_text().replace(block.text, updated, 1))
        print(f"{block.name}: {'updated' if updated != block.text else 'edit it by hand, it has a lone …'}")


if __name__ == "__main__":
    main()
