"""Coloring of unified diffs."""

from cli.screen.colors import Paint, Tone


def diff_lines(diff: str) -> list[tuple[Tone, str]]:
    """Return the lines of a diff without its file header, each with its tone."""
    lines = diff.split("\n")
    # Look only at the top: a removed line may itself start with two dashes.
    has_header = lines[0].startswith("--- ") and lines[1:2] and lines[1].startswith("+++ ")
    body = lines[2:] if has_header else lines
    return [(_tone(line), line) for line in (body if body[-1:] != [""] else body[:-1])]


def color_diff(diff: str, paint: Paint) -> str:
    """Color the complete diff of one file, including its header."""
    head, separator, body = diff.partition("\n@@")
    painted = [paint("strong", line) for line in head.split("\n")]
    painted += [paint(_tone(line), line) for line in f"{separator}{body}"[1:].split("\n")] if separator else []
    return "\n".join(painted)


def _tone(line: str) -> Tone:
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
