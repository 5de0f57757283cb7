"""Compute the change of a file: line counts and a bounded unified diff."""

import re
from collections.abc import Callable, Iterator

from tooling.contract.result import FileChange

MAX_DIFF_CHARS = 20_000
# The user who decides on a change must be able to read all of it.
MAX_PREVIEW_CHARS = 400_000
# difflib is quadratic; larger changes are shown as one hunk.
MAX_DIFF_LINES = 3000
_CONTEXT_LINES = 3
_HUNK_HEADER = r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@"


def compute_change(
    path: str,
    before: str | None,
    after: str | None,
    *,
    max_chars: int = MAX_DIFF_CHARS,
    mask_lines: Callable[[str], str] = str,
) -> FileChange:
    """Compare two contents of a file; None means that the file does not exist.

    `mask_lines` masks the secrets of a text and keeps its lines. It gets whole files: a diff can start inside a key.
    """
    if "\0" in (before or "") or "\0" in (after or ""):
        deleted_lines = added_lines = 0
        body = [] if before == after else ["Binary files differ\n"]
    else:
        deleted_lines, added_lines, body = _diff_lines(_split_lines(before), _split_lines(after))
        shown_before, shown_after = mask_lines(before or ""), mask_lines(after or "")
        if (shown_before, shown_after) != (before or "", after or ""):
            body = list(_show_lines(body, _split_lines(shown_before), _split_lines(shown_after)))
    old_name = "/dev/null" if before is None else f"a/{path}"
    new_name = "/dev/null" if after is None else f"b/{path}"
    return FileChange(
        path=path,
        status="added" if before is None else "deleted" if after is None else "modified",
        added_lines=added_lines,
        deleted_lines=deleted_lines,
        diff=_truncate_diff(f"--- {old_name}\n+++ {new_name}\n", body, max_chars) if body else "",
    )


def _split_lines(text: str | None) -> list[str]:
    # Only a line feed ends a line, as in git and patch; splitlines recognizes many more separators.
    lines = (text or "").split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _diff_lines(old: list[str], new: list[str]) -> tuple[int, int, list[str]]:
    """Return deleted lines, added lines and the hunks; the common prefix and suffix are skipped for speed."""
    start = _common_prefix_len(old, new)
    end = _common_prefix_len(old[start:][::-1], new[start:][::-1])
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    if not removed and not added:
        return 0, 0, []
    lead, trail = old[max(0, start - _CONTEXT_LINES) : start], old[len(old) - end : len(old) - end + _CONTEXT_LINES]
    first = start - len(lead)
    if not removed or not added or len(removed) + len(added) > MAX_DIFF_LINES:
        around = len(lead) + len(trail)
        header = f"@@ -{_hunk_range(first, around + len(removed))} +{_hunk_range(first, around + len(added))} @@\n"
        changed = [*_prefix_lines("-", removed), *_prefix_lines("+", added)]
        return len(removed), len(added), [header, *_prefix_lines(" ", lead), *changed, *_prefix_lines(" ", trail)]
    import difflib

    diff = difflib.unified_diff([*lead, *removed, *trail], [*lead, *added, *trail], n=_CONTEXT_LINES)
    _, _, *lines = (_shift_hunk(line, first) if line.startswith("@@") else _note_missing_newline(line) for line in diff)
    return sum(line.startswith("-") for line in lines), sum(line.startswith("+") for line in lines), lines


def _show_lines(diff: list[str], old: list[str], new: list[str]) -> Iterator[str]:
    """Yield a diff with masked texts for the same lines."""
    old_at = new_at = 0
    for line in diff:
        if header := re.match(_HUNK_HEADER, line):
            # An empty range names the line before it.
            old_at = int(header[1]) - (header[2] != ",0")
            new_at = int(header[3]) - (header[4] != ",0")
            yield line
            continue
        yield _note_missing_newline(line[0] + (new[new_at] if line[0] == "+" else old[old_at]))
        old_at += line[0] != "+"
        new_at += line[0] != "-"


def _common_prefix_len(old: list[str], new: list[str]) -> int:
    length = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        length += 1
    return length


def _hunk_range(before: int, length: int) -> str:
    """Format the range of a hunk; an empty one names the line before it."""
    return f"{before + 1 if length else before},{length}"


def _prefix_lines(sign: str, lines: list[str]) -> list[str]:
    return [_note_missing_newline(sign + line) for line in lines]


def _note_missing_newline(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _shift_hunk(header: str, by: int) -> str:
    """Shift the line numbers of a hunk header by the skipped prefix."""
    _, old, new, *_ = header.split(" ")
    return f"@@ {_shift_range(old, by)} {_shift_range(new, by)} @@\n"


def _shift_range(span: str, by: int) -> str:
    first, comma, length = span[1:].partition(",")
    return f"{span[0]}{int(first) + by}{comma}{length}"


def _truncate_diff(head: str, lines: list[str], max_chars: int) -> str:
    used = len(head)
    for index, line in enumerate(lines):
        used += len(line)
        if used > max_chars:
            return head + "".join(lines[:index]) + f"[... {len(lines) - index} more lines of this diff not shown ...]\n"
    return head + "".join(lines)
