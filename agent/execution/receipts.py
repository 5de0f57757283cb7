"""Receipts: `[s2]` after a sentence names the step whose result stands behind it; only real ones stay."""

import re
from collections.abc import Collection

ASK = (
    "After each fact put the id of the result it comes from in square brackets, such as [{example}]; "
    "name no id that is not there."
)
# Code is not prose: brackets in it mean something else.
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_BRACKETS = re.compile(r"[ \t]?\[(?P<ids>[\w.-]+(?:\s*[,;]\s*[\w.-]+)*)\](?![(:])")


def with_real_receipts(answer: str, ids: Collection[str]) -> str:
    """Return the answer without receipts for steps that do not exist; other brackets stay as they are."""
    kinds = {_kind(step_id) for step_id in ids}

    def keep(found: re.Match[str]) -> str:
        named = re.split(r"\s*[,;]\s*", found["ids"])
        real = [name for name in named if name in ids]
        if len(real) == len(named) or not all(name in ids or _kind(name) in kinds for name in named):
            return found[0]
        lead = found[0][: found[0].index("[")]
        return f"{lead}[{', '.join(real)}]" if real else ""

    parts = _CODE.split(answer)
    parts[::2] = [_BRACKETS.sub(keep, part) for part in parts[::2]]
    return "".join(parts)


def _kind(step_id: str) -> str:
    """Return the shape of an id: an unknown one of the same shape was meant as a receipt, a footnote was not."""
    return re.sub(r"\d+", "0", step_id)
