"""Find the place of each hunk in a file and replace its lines."""

from collections.abc import Callable
from typing import NamedTuple

from tooling.contract.result import ToolError
from tooling.contract.secrets import Secrets
from tooling.patch.file_patch import FilePatch, Hunk
from tooling.safety.secrets.masked_text import MaskedText
from tooling.safety.secrets.nearest_match import describe_nearest_match
from tooling.safety.secrets.redact import MASK

# Typographic characters that models replace with plain ones when they copy a line.
_PLAIN = str.maketrans(
    {**dict.fromkeys("‐‑‒–—−", "-"), **dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), "\u00a0": " "}
)
# From strict to lenient: a better match takes precedence over a nearer one.
_FORMS: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip, lambda line: line.translate(_PLAIN).strip())


class _Placement(NamedTuple):
    """A hunk and the range of lines that it replaces."""

    start: int
    end: int
    new: list[str]


def apply_hunks(text: str, patch: FilePatch, secrets: Secrets) -> str:
    """Return the text with all hunks applied; raises ToolError if one does not match."""
    file = MaskedText.of(text if text.endswith("\n") or not text else text + "\n", secrets)
    lines = file.text.split("\n")[:-1]
    placements: list[_Placement] = []
    cursor = 0
    ends_with_newline = text.endswith("\n") or not text
    for number, hunk in enumerate(patch.hunks, 1):
        start = _find_place(file, lines, hunk, cursor, secrets)
        if start is None:
            raise ToolError(_mismatch(file, patch, number))
        end = start + len(hunk.old)
        placements.append(_Placement(start, end, _new_lines(hunk, lines, start)))
        cursor = end
        if end == len(lines) and not (hunk.old_has_newline and hunk.new_has_newline):
            ends_with_newline = hunk.new_has_newline
    changed = _replace_lines(file, lines, placements, patch, secrets).real
    return changed if ends_with_newline else changed.removesuffix("\n")


def _find_place(file: MaskedText, lines: list[str], hunk: Hunk, cursor: int, secrets: Secrets) -> int | None:
    """Return the first line of a hunk: after the hunk before it and its anchors, or near the line it names."""
    masked = [MaskedText.of(line, secrets) for line in hunk.old]
    wanted = [line.text for line in masked]
    for form in _FORMS:
        formed, pattern = [form(line) for line in lines], [form(line) for line in wanted]
        first = _after_anchors(formed, hunk.anchors, cursor, form)
        if first is None:
            continue
        places = [place for place in _places(formed, pattern) if _hides_same(file, lines, masked, place)]
        if hunk.is_at_end and len(lines) - len(pattern) in places:
            return len(lines) - len(pattern)
        if not wanted:
            return _place_of_insertion(hunk, lines, first)
        later = [place for place in places if place >= first]
        if later:
            return min(later, key=lambda place: abs(place - _expected_line(hunk, first)))
        # Hunks in the wrong order; an ambiguous place would be a guess.
        if len(places) == 1 and not hunk.anchors:
            return places[0]
    return None


def _expected_line(hunk: Hunk, first: int) -> int:
    return first if hunk.line is None else hunk.line - 1


def _place_of_insertion(hunk: Hunk, lines: list[str], first: int) -> int:
    """Return where lines without context are inserted: where the patch says, after its anchor, or at the end."""
    if hunk.line is not None:
        return min(hunk.line - 1, len(lines))
    return first if hunk.anchors and not hunk.is_at_end else len(lines)


def _after_anchors(lines: list[str], anchors: tuple[str, ...], cursor: int, form: Callable[[str], str]) -> int | None:
    """Return the line after the last anchor; an anchor may be part of a line, such as a signature without its body."""
    for anchor in anchors:
        text = form(anchor)
        exact = (index for index in range(cursor, len(lines)) if lines[index].strip() == text.strip())
        partial = (index for index in range(cursor, len(lines)) if text.strip() in lines[index])
        found = next(exact, None)
        found = next(partial, None) if found is None else found
        if found is None:
            return None
        cursor = found + 1
    return cursor


def _places(lines: list[str], wanted: list[str]) -> list[int]:
    size = len(wanted)
    if not size:
        return []
    return [at for at in range(len(lines) - size + 1) if lines[at] == wanted[0] and lines[at : at + size] == wanted]


def _hides_same(file: MaskedText, lines: list[str], wanted: list[MaskedText], place: int) -> bool:
    """Whether the secrets spelled out in a patch are those of the file; a mask matches any secret."""
    first = sum(line.count(MASK) for line in lines[:place])
    values = [value for line in wanted for value in line.values]
    return all(value in (MASK, hidden) for value, hidden in zip(values, file.values[first:], strict=False))


def _new_lines(hunk: Hunk, lines: list[str], start: int) -> list[str]:
    """Return the replacement lines: context as in the file, new lines with the file's line ending."""
    at = start
    new: list[str] = []
    has_crlf = _uses_crlf(hunk, lines, start)
    for sign, text in hunk.lines:
        if sign == "+":
            new.append(text + "\r" if has_crlf and not text.endswith("\r") else text)
            continue
        if sign == " ":
            new.append(lines[at])
        at += 1
    return new


def _uses_crlf(hunk: Hunk, lines: list[str], start: int) -> bool:
    """Whether new lines need a carriage return: the file has them where the patch does not."""
    if any(text.endswith("\r") for _, text in hunk.lines):
        return False
    near = lines[start : start + len(hunk.old)] or lines[max(start - 1, 0) : start + 1]
    return any(line.endswith("\r") for line in near)


def _replace_lines(
    file: MaskedText, lines: list[str], placements: list[_Placement], patch: FilePatch, secrets: Secrets
) -> MaskedText:
    """Replace from the end to the start, so that earlier positions stay valid."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    limit = len(lines)
    for placement in sorted(placements, reverse=True, key=lambda placement: (placement.start, placement.end)):
        if placement.end > limit:
            raise ToolError(f"Two hunks of {patch.path} change the same lines; join them into one.")
        limit = placement.start
        new = MaskedText.of("".join(line + "\n" for line in placement.new), secrets)
        file = file.replace(starts[placement.start], starts[placement.end], new, patch.path)
    return file


def _mismatch(file: MaskedText, patch: FilePatch, number: int) -> str:
    hunk = patch.hunks[number - 1]
    which = (
        f"Hunk {number} of {len(patch.hunks)} for {patch.path}"
        if len(patch.hunks) > 1
        else f"The hunk for {patch.path}"
    )
    if hunk.anchors and _after_anchors(file.text.split("\n"), hunk.anchors, 0, str.strip) is None:
        nearest = describe_nearest_match(file, hunk.anchors[-1])
        return f"{which}: the line after @@ was not found, nothing was changed. {nearest}"
    return f"{which} does not match, nothing was changed. {describe_nearest_match(file, chr(10).join(hunk.old))}"
