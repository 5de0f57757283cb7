"""A patch as data: hunks by file, independent of the patch format."""

from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError

Sign: TypeAlias = Literal[" ", "-", "+"]

EXPECTED_FORM = (
    "Write a patch like this:\n*** Begin Patch\n*** Update File: src/a.py\n@@ def f():\n unchanged line\n-old line\n"
    "+new line\n*** End Patch\nAlso *** Add File: (lines with +), *** Delete File:, *** Move to:, or a unified diff."
)


class PatchInvalid(ToolError):
    """The text is not a patch; the message tells the model the expected format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines to find and to replace.

    `anchors` are lines that come somewhere before it, in order; `line` is its first line as the patch counts, from 1.
    `old_has_newline` and `new_has_newline` are False if the patch says that the last line ends without a line feed.
    """

    lines: tuple[tuple[Sign, str], ...]
    anchors: tuple[str, ...] = ()
    line: int | None = None
    is_at_end: bool = False
    old_has_newline: bool = True
    new_has_newline: bool = True

    @property
    def old(self) -> list[str]:
        """The lines that the file must contain."""
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """The change of one file; `content` is the text of an added one."""

    path: str
    kind: Literal["add", "update", "delete"]
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    move_to: str | None = None
