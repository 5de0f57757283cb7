"""A unified diff as lines with tones."""

from cli.screen.colors import Paint, Tone


def diff_lines(diff: str) -> list[tuple[Tone, str]]:
    """Return the lines of a diff without its file header, each with its tone."""
    lines = diff.split("\n")
    # Only there: a line that was removed may begin with two dashes itself.
    has_header = lines[0].startswith("--- ") and lines[1:2] and lines[1].startswith("+++ ")
    body = lines[2:] if has_header else lines
    return [(_tone(line), line) for line in (body if body[-1:] != [""] else body[:-1])]


def color_diff(diff: str, paint: Paint) -> str:
    """Return the whole diff of one file, its header too, in colours."""
    head, begin, body = diff.partition("\n@@")
    painted = [paint("strong", line) for line in head.split("\n")]
    painted += [paint(_tone(line), line) for line in f"{begin}{body}"[1:].split("\n")] if begin else []
    return "\n".join(painted)


def _tone(line: str) -> Tone:
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "quiet"
