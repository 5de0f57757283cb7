"""A unified diff as lines with tones."""

from cli.screen.paint import Tone


def diff_lines(diff: str) -> list[tuple[Tone, str]]:
    """Return the lines of a diff without its file header, each with its tone."""
    lines: list[tuple[Tone, str]] = []
    for line in diff.splitlines():
        if line.startswith(("--- ", "+++ ")) and not any(tone in ("added", "removed") for tone, _ in lines):
            continue
        tone: Tone = "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
        lines.append((tone, line))
    return lines
