"""What a write changed: line counts and a bounded unified diff."""

from tooling.contract.result import FileChange

MAX_DIFF_CHARS = 20_000
# difflib compares every line with every other one; beyond this the counts must do.
MAX_DIFF_LINES = 3000
_CONTEXT = 3


def change_of(path: str, before: str | None, after: str) -> FileChange:
    """Return the change from one content to the next; None means that the file is new."""
    old = [] if before is None else before.splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    deleted_lines, added_lines, body = _compare(removed, added, old[max(0, start - _CONTEXT) : start], start)
    name = "/dev/null" if before is None else f"a/{path}"
    return FileChange(
        path=path,
        status="added" if before is None else "modified",
        added_lines=added_lines,
        deleted_lines=deleted_lines,
        diff=_bounded(f"--- {name}\n+++ b/{path}\n", body) if body else "",
    )


def _common(old: list[str], new: list[str]) -> int:
    length = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        length += 1
    return length


def _compare(removed: list[str], added: list[str], lead: list[str], start: int) -> tuple[int, int, list[str]]:
    """Compare the parts that differ; what is the same before and after them is left out for speed."""
    if not removed and not added:
        return 0, 0, []
    if not removed or not added or len(removed) + len(added) > MAX_DIFF_LINES:
        first = start - len(lead) + 1
        header = f"@@ -{first},{len(lead) + len(removed)} +{first},{len(lead) + len(added)} @@\n"
        lines = [header, *_marked(" ", lead), *_marked("-", removed), *_marked("+", added)]
        return len(removed), len(added), lines
    import difflib

    lines = [_ended(line) for line in difflib.unified_diff(lead + removed, lead + added, n=_CONTEXT)][2:]
    lines = [_shifted(line, start - len(lead)) if line.startswith("@@") else line for line in lines]
    return (
        sum(line.startswith("-") for line in lines),
        sum(line.startswith("+") for line in lines),
        lines,
    )


def _marked(sign: str, lines: list[str]) -> list[str]:
    return [_ended(sign + line) for line in lines]


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _shifted(header: str, by: int) -> str:
    """Move the line numbers of a hunk header by the lines that were left out."""
    _, old, new, *_ = header.split(" ")
    return f"@@ {_moved(old, by)} {_moved(new, by)} @@\n"


def _moved(span: str, by: int) -> str:
    first, comma, length = span[1:].partition(",")
    return f"{span[0]}{int(first) + by}{comma}{length}"


def _bounded(head: str, lines: list[str]) -> str:
    used = len(head)
    for index, line in enumerate(lines):
        used += len(line)
        if used > MAX_DIFF_CHARS:
            return head + "".join(lines[:index]) + f"[... {len(lines) - index} more lines of this diff not shown ...]\n"
    return head + "".join(lines)
