"""Where in a file a text almost stands, for a model that remembered it a little wrong."""

_MAX_LINES = 5000
_MAX_SHOWN = 12
_MIN_RATIO = 0.6


def describe_similar_lines(text: str, wanted: str) -> str:
    """Return a sentence with the lines that resemble the wanted ones most, or the beginning of the file."""
    lines = text.splitlines()[:_MAX_LINES]
    sought = wanted.splitlines()
    anchor = next((index for index, line in enumerate(sought) if line.strip()), None)
    at = None if anchor is None else _most_similar_line(lines, sought[anchor].strip())
    if at is None or anchor is None:
        return f"Nothing in it is similar; read the file again. It begins:\n{_number_lines(lines[:3], 1)}"
    start = max(at - anchor, 0)
    found = lines[start : start + min(len(sought), _MAX_SHOWN)]
    spaces = [line.split() for line in found] == [line.split() for line in sought]
    why = " (only white space differs)" if spaces else ""
    return f"Nearest place{why}, copy the text exactly from it:\n{_number_lines(found, start + 1)}"


def _most_similar_line(lines: list[str], wanted: str) -> int | None:
    import difflib

    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:300])
    best, best_at = _MIN_RATIO, None
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, best_at = ratio, index
    return best_at


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number}: {line[:300]}" for number, line in enumerate(lines, first))
