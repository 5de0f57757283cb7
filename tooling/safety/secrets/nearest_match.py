"""The lines of a file most similar to a text that was not found in it, for error messages."""

from collections import Counter

from tooling.safety.secrets.masked_text import MaskedText

ONLY_WHITESPACE_DIFFERS = "only white space differs"
_MAX_LINES_COMPARED = 5000
_MAX_LINES_SHOWN = 12
_MAX_DIFFERENCES = 6
_MAX_LINE_CHARS = 300
_MIN_SIMILARITY = 0.6


def describe_nearest_match(file: MaskedText, wanted: str) -> str:
    """Show the lines most similar to the wanted ones and how they differ, or the start of the file."""
    lines = [line.removesuffix("\r") for line in file.text.split("\n")][:_MAX_LINES_COMPARED]
    wanted_lines = [line.removesuffix("\r") for line in wanted.removesuffix("\n").split("\n")]
    start = _most_similar_start(lines, wanted_lines)
    if start is None:
        start, found = 0, lines[:3]
        return f"Nothing similar was found; read the file again. It starts with:\n{_number_lines(file, found, start)}"
    found = lines[start : start + len(wanted_lines)]
    is_whitespace_only = [line.split() for line in found] == [line.split() for line in wanted_lines]
    difference = f" ({ONLY_WHITESPACE_DIFFERS})" if is_whitespace_only else ""
    shown = _number_lines(file, found[:_MAX_LINES_SHOWN], start)
    return f"Closest match{difference}, copy the text exactly from it:\n{shown}{_differences(wanted_lines, found)}"


def _most_similar_start(lines: list[str], wanted: list[str]) -> int | None:
    """Return where most of the wanted lines are in place, or the line most similar to the first of them."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(index)
    # A line that occurs everywhere, such as a closing brace, does not identify the place.
    starts = Counter(
        place - offset
        for offset, line in enumerate(wanted)
        if line.strip()
        for place in places.get(line.strip(), ())[:50]
        if place >= offset
    )
    if starts:
        return min(starts, key=lambda start: (-starts[start], start))
    anchor = next((index for index, line in enumerate(wanted) if line.strip()), None)
    nearest = None if anchor is None else _most_similar_line(lines, wanted[anchor].strip())
    return None if nearest is None or anchor is None else max(nearest - anchor, 0)


def _most_similar_line(lines: list[str], wanted: str) -> int | None:
    import difflib

    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:_MAX_LINE_CHARS])
    best_ratio, best_index = _MIN_SIMILARITY, None
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:_MAX_LINE_CHARS])
        # Two cheap upper bounds first: the exact ratio is quadratic.
        if matcher.real_quick_ratio() <= best_ratio or matcher.quick_ratio() <= best_ratio:
            continue
        if (ratio := matcher.ratio()) > best_ratio:
            best_ratio, best_index = ratio, index
    return best_index


def _differences(wanted: list[str], found: list[str]) -> str:
    import difflib

    changed = [line for line in difflib.ndiff(wanted, found) if line[0] in "-+"]
    if not changed:
        return ""
    shown = "\n".join(f"{line[0]}{line[2 : _MAX_LINE_CHARS + 2]}" for line in changed[:_MAX_DIFFERENCES])
    more = f"\n[{len(changed) - _MAX_DIFFERENCES} more]" if len(changed) > _MAX_DIFFERENCES else ""
    return f"\nDifferences (- yours, + the file):\n{shown}{more}"


def _number_lines(file: MaskedText, lines: list[str], start: int) -> str:
    return "\n".join(f"{file.line_number(index)}: {line[:_MAX_LINE_CHARS]}" for index, line in enumerate(lines, start))
