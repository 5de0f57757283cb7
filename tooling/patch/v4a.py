"""Parse patches of the form `*** Begin Patch`, which models are trained to write."""

import re

from tooling.patch.file_patch import EXPECTED_FORM, FilePatch, Hunk, PatchInvalid, Sign

BEGIN, END = "*** Begin Patch", "*** End Patch"
_END_OF_FILE = "*** End of File"
# Strings rather than compiled patterns: compiled on first use, not at startup.
_FILE_HEADER = r"\*\*\* (Add|Update|Delete) File: *(\S.*?)\s*$"
_MOVE = r"\*\*\* Move to: *(\S.*?)\s*$"
# Some models mix in the ranges of unified diffs, with or without numbers.
_RANGES = r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)"


def is_v4a(lines: list[str]) -> bool:
    """Return whether a text is a patch of this form, possibly inside a heredoc or a code block."""
    return any(re.match(_FILE_HEADER, line) for line in lines)


def parse_v4a(lines: list[str]) -> list[FilePatch]:
    """Parse a patch; raises PatchInvalid."""
    body = _body(lines)
    sections: list[tuple[re.Match[str], list[str]]] = []
    for line in body:
        header = re.match(_FILE_HEADER, line)
        if header is not None:
            sections.append((header, []))
        elif sections:
            sections[-1][1].append(line)
        elif line.strip():
            raise PatchInvalid(f"The patch starts with {line[:80]!r} instead of a file. {EXPECTED_FORM}")
    return [_parse_file(header[1], header[2], section) for header, section in sections]


def _body(lines: list[str]) -> list[str]:
    """Return the lines between the markers; the text around them is not part of the patch."""
    marks = [line.strip() for line in lines]
    if END not in marks:
        raise PatchInvalid(f"The patch has no line {END}: it is incomplete, so nothing was changed. Send all of it.")
    end = len(marks) - 1 - marks[::-1].index(END)
    start = (
        marks.index(BEGIN) + 1
        if BEGIN in marks
        else next(index for index, line in enumerate(lines) if re.match(_FILE_HEADER, line))
    )
    return lines[start:end]


def _parse_file(kind: str, path: str, lines: list[str]) -> FilePatch:
    if kind == "Delete":
        if any(line.strip() for line in lines):
            raise PatchInvalid(f"{path}: *** Delete File: is followed by lines; it needs none.")
        return FilePatch(path=path, kind="delete")
    if kind == "Add":
        return FilePatch(path=path, kind="add", content=_added_content(path, lines))
    move = re.match(_MOVE, lines[0]) if lines else None
    hunks = _parse_hunks(path, lines[1:] if move else lines)
    if not hunks and not move:
        raise PatchInvalid(f"{path}: *** Update File: has no changed lines. {EXPECTED_FORM}")
    return FilePatch(path=path, kind="update", hunks=tuple(hunks), move_to=move[1] if move else None)


def _added_content(path: str, lines: list[str]) -> str:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    for line in lines:
        if line.strip() and not line.startswith("+"):
            raise PatchInvalid(f"{path}: every line of a new file starts with +, but one is {line[:80]!r}.")
    return "".join(line[1:] + "\n" for line in lines)


def _parse_hunks(path: str, lines: list[str]) -> list[Hunk]:
    hunks: list[Hunk] = []
    anchors: list[str] = []
    number: int | None = None
    body: list[tuple[Sign, str]] = []

    def finish(*, is_at_end: bool = False) -> None:
        nonlocal number
        while body and body[-1] == (" ", "") and not is_at_end:
            # Blank lines between two hunks separate them; they are not context.
            body.pop()
        if any(sign != " " for sign, _ in body):
            hunks.append(Hunk(lines=tuple(body), anchors=tuple(anchors), line=number, is_at_end=is_at_end))
        elif body:
            anchors.extend(text for _, text in body if text.strip())
            body.clear()
            return
        anchors.clear()
        body.clear()
        number = None

    for line in lines:
        if line.strip() == _END_OF_FILE:
            finish(is_at_end=True)
        elif line.startswith("@@"):
            if body:
                finish()
            ranges = re.match(_RANGES, line)
            number = int(ranges[1]) if ranges else number
            anchors += [text] if (text := _anchor(line if ranges is None else ranges[2])) else []
        elif line.startswith("*** "):
            raise PatchInvalid(f"{path}: the line {line[:80]!r} is not part of a patch. {EXPECTED_FORM}")
        else:
            body.append(_parse_line(line))
    finish()
    return hunks


def _anchor(line: str) -> str:
    """Return the line that `@@` names; without the second `@@` that some models write."""
    text = line.removeprefix("@@").removesuffix("@@").strip()
    return "" if text == "..." else text


def _parse_line(line: str) -> tuple[Sign, str]:
    match line[:1]:
        case "-":
            return "-", line[1:]
        case "+":
            return "+", line[1:]
        case " ":
            return " ", line[1:]
        case _:
            # Models leave out the blank in front of a context line, above all of an empty one.
            return " ", line
