"""The line with which a worker says that the rest of the plan no longer fits what it found."""

import re

_LINE = re.compile(r"^[\s>*_`#-]*SURPRISE:[*_`]*\s*(?P<why>.*?)[\s*_`]*$")


def without_surprise(answer: str) -> tuple[str, str]:
    """Return an answer without the surprise it ends with, and the surprise."""
    before, _, last = answer.rstrip().rpartition("\n")
    found = _LINE.match(last)
    if found is None:
        return answer, ""
    why = found["why"] or "the plan no longer fits"
    return before.rstrip() or why, why
