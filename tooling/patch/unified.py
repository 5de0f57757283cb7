"""Parse unified diffs, of git or diff, with the mistakes that models make in line numbers and counts."""

import re
from collections.abc import Iterator

from tooling.contract.fast_dataclass import dataclass
from tooling.patch.file_patch import FilePatch, Hunk, PatchInvalid, Sign

_RANGES = r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@"
_NO_FILE = "/dev/null"
_NO_NEWLINE = "\\ "


def is_unified(lines: list[str]) -> bool:
    """Return whether a text contains a unified diff."""
    return any(_is_header(lines, index) or line.startswith("diff --git ") for index, line in enumerate(lines))


def parse_unified(lines: list[str]) -> list[FilePatch]:
    """Parse the diffs of one or more files; raises PatchInvalid."""
    return list(_Parser(lines).files())


@dataclass(slots=True, kw_only=True)
class _FileNames:
    old: str = ""
    new: str = ""
    is_rename: bool = False


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> Iterator[FilePatch]:
        """Yield one patch for each file; lines between them, such as a commit message, are skipped."""
        names = _FileNames()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _is_header(self._lines, self._at):
                names.old, names.new = _file_name(line), _file_name(self._lines[self._at + 1])
                self._at += 2
                yield _to_patch(names, tuple(self._hunks()))
                names = _FileNames()
                continue
            if line.startswith("diff --git ") and names.is_rename:
                yield _to_patch(names, ())
                names = _FileNames()
            if line.startswith(("GIT binary patch", "Binary files ")):
                raise PatchInvalid("Binary files cannot be patched; change them with a command.")
            if line.startswith("rename from "):
                names = _FileNames(old=_unquote(line.removeprefix("rename from ")), is_rename=True)
            elif line.startswith("rename to "):
                names.new = _unquote(line.removeprefix("rename to "))
            elif line.startswith("diff --git ") and self._is_empty_change():
                yield self._empty_change(line)
            self._at += 1
        if names.is_rename:
            yield _to_patch(names, ())

    def _hunks(self) -> Iterator[Hunk]:
        while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
            yield self._hunk()
            while self._at < len(self._lines) and not self._lines[self._at].strip():
                self._at += 1

    def _hunk(self) -> Hunk:
        ranges = re.match(_RANGES, self._lines[self._at])
        counts = [int(ranges[group] or 1) for group in (2, 4)] if ranges else [0, 0]
        self._at += 1
        body: list[tuple[Sign, str]] = []
        old_has_newline = new_has_newline = True
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_NO_NEWLINE):
                sign = body[-1][0] if body else " "
                old_has_newline = old_has_newline and sign == "+"
                new_has_newline = new_has_newline and sign == "-"
            elif self._ends_hunk(line, counts):
                break
            else:
                sign, text = _parse_line(line)
                body.append((sign, text))
                counts[0] -= sign != "+"
                counts[1] -= sign != "-"
            self._at += 1
        return Hunk(
            lines=tuple(body),
            line=_first_line(ranges),
            old_has_newline=old_has_newline,
            new_has_newline=new_has_newline,
        )

    def _ends_hunk(self, line: str, counts: list[int]) -> bool:
        """Whether a line is no longer part of the hunk. Models miscount, so the counts alone do not decide."""
        is_complete = counts[0] <= 0 and counts[1] <= 0
        if line.startswith(("@@", "diff --git ")):
            return True
        if _is_header(self._lines, self._at):
            # A removed line "-- x" before an added one "++ x" looks the same, and then the counts are right.
            return is_complete or (counts != [1, 1] and self._starts_hunk(self._at + 2))
        if not is_complete:
            return line[:1] not in (" ", "-", "+", "")
        return line[:1] not in (" ", "-", "+")

    def _starts_hunk(self, at: int) -> bool:
        return at < len(self._lines) and self._lines[at].startswith("@@")

    def _is_empty_change(self) -> bool:
        """Whether git reports a new or deleted file without lines."""
        following = self._lines[self._at + 1 : self._at + 4]
        has_mode = bool(following) and following[0].startswith(("new file mode", "deleted file mode"))
        return has_mode and not any(line.startswith("--- ") for line in following)

    def _empty_change(self, line: str) -> FilePatch:
        path = _unquote(line.split(" b/")[-1])
        is_new = self._lines[self._at + 1].startswith("new")
        return FilePatch(path=path, kind="add" if is_new else "delete")


def _first_line(ranges: "re.Match[str] | None") -> int | None:
    if ranges is None:
        return None
    # An empty range names the line before it.
    return int(ranges[1]) + (ranges[2] == "0")


def _parse_line(line: str) -> tuple[Sign, str]:
    if line[:1] == "-":
        return "-", line[1:]
    if line[:1] == "+":
        return "+", line[1:]
    # Models leave out the blank of an empty context line.
    return " ", line[1:]


def _is_header(lines: list[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _file_name(line: str) -> str:
    """Return the name in a header line, without the time that diff writes after a tab."""
    return _unquote(line[4:].split("\t")[0].strip())


def _unquote(name: str) -> str:
    """Undo the quoting of git: octal escapes of UTF-8 bytes."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    escaped = name[1:-1].encode("utf-8").decode("latin-1")
    return escaped.encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")


def _to_patch(names: _FileNames, hunks: tuple[Hunk, ...]) -> FilePatch:
    old, new = names.old, names.new
    if not names.is_rename or old.startswith("a/"):
        has_prefixes = old.startswith(("a/", _NO_FILE)) and new.startswith(("b/", _NO_FILE))
        old, new = (name[2:] if has_prefixes and name != _NO_FILE else name for name in (old, new))
    if old == _NO_FILE:
        lines = [text for hunk in hunks for sign, text in hunk.lines if sign == "+"]
        has_newline = all(hunk.new_has_newline for hunk in hunks)
        return FilePatch(path=new, kind="add", content="\n".join(lines) + ("\n" if lines and has_newline else ""))
    if new == _NO_FILE:
        return FilePatch(path=old, kind="delete", hunks=hunks)
    return FilePatch(path=old, kind="update", hunks=hunks, move_to=new if new != old else None)
