"""A text with a mask for each secret, as the model sees it, that can be edited without losing the secrets."""

import re
from collections import Counter
from collections.abc import Iterator

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import ToolError
from tooling.contract.secrets import Secrets
from tooling.safety.secrets.redact import MASK

AMBIGUOUS_MASK = (
    f"{MASK} in the new text of {{path}} stands for a secret that you cannot see, and it is not clear for which one. "
    f"Keep the masked lines as they are: edit the lines around them, or only one masked line at a time."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedText:
    """`values` are hidden by the masks in `text`, in order: a secret, or MASK itself if the text contains it."""

    text: str
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, secrets: Secrets) -> "MaskedText":
        """Mask every secret of a text."""
        spans = secrets.find_secrets(text)
        literal = [match.span() for match in re.finditer(re.escape(MASK), text)] if MASK in text else []
        pieces: list[str] = []
        values: list[str] = []
        done = 0
        for start, end in sorted({*spans, *literal}):
            # A secret may contain the mask as text.
            if start >= done:
                pieces += (text[done:start], MASK)
                values.append(text[start:end])
                done = end
        return cls(text="".join((*pieces, text[done:])), values=tuple(values))

    @property
    def real(self) -> str:
        """The text with all secrets."""
        pieces = self.text.split(MASK)
        return pieces[0] + "".join(value + piece for value, piece in zip(self.values, pieces[1:], strict=True))

    def find_all(self, wanted: "MaskedText") -> list[int]:
        """Return where another text occurs; its masks match any secret, its secrets only themselves."""
        found: list[int] = []
        if not wanted.text:
            return found
        masks = [match.start() for match in re.finditer(re.escape(MASK), self.text)]
        at = self.text.find(wanted.text)
        while at >= 0:
            end = at + len(wanted.text)
            is_match = not any(_is_cut(mask, at, end) for mask in masks) and self._hides(at, end, wanted.values)
            if is_match:
                found.append(at)
            at = self.text.find(wanted.text, end if is_match else at + 1)
        return found

    def replace(self, start: int, end: int, new: "MaskedText", path: str) -> "MaskedText":
        """Replace a part of the text; masks in the new part keep the values they had in the old one.

        Raises ToolError if the value of a mask is ambiguous.
        """
        first, last = self.text.count(MASK, 0, start), self.text.count(MASK, 0, end)
        values = new.values
        if any(value != MASK for value in self.values):
            old = MaskedText(text=self.text[start:end], values=self.values[first:last])
            values = _keep_values(old, new, path)
        changed = MaskedText(
            text=self.text[:start] + new.text + self.text[end:],
            values=(*self.values[:first], *values, *self.values[last:]),
        )
        if changed.text.count(MASK) != len(changed.values):
            # The mask was assembled from two parts.
            raise ToolError(AMBIGUOUS_MASK.format(path=path))
        return changed

    def line_number(self, index: int) -> int:
        """Return the number, in the real text, of a line of `text`; a secret can have several lines."""
        offset = sum(len(line) + 1 for line in self.text.split("\n")[:index])
        hidden = self.values[: self.text.count(MASK, 0, offset)]
        return index + 1 + sum(value.count("\n") for value in hidden)

    def _hides(self, start: int, end: int, wanted: tuple[str, ...]) -> bool:
        first = self.text.count(MASK, 0, start)
        values = self.values[first : first + self.text.count(MASK, start, end)]
        return all(want in (MASK, value) for want, value in zip(wanted, values, strict=True))


def _is_cut(mask: int, start: int, end: int) -> bool:
    """Whether a range starts or ends inside a mask."""
    return mask < start < mask + len(MASK) or mask < end < mask + len(MASK)


def _keep_values(old: MaskedText, new: MaskedText, path: str) -> tuple[str, ...]:
    """Return the values of the masks in the new text: by line, else by the text before them, else the only one left.

    The second covers a changed comment after a secret, the third a renamed key.
    """
    values: list[str | None] = [None if value == MASK else value for value in new.values]
    available = list(range(len(old.values)))
    for key in (_lines_of_masks, _labels_of_masks):
        old_keys, new_keys = list(key(old.text)), list(key(new.text))
        free = Counter(old_keys[number] for number in available)
        for index, name in enumerate(new_keys):
            same = [number for number in available if old_keys[number] == name]
            if values[index] is None and same and _is_clear(old, same, free[name], new_keys.count(name)):
                values[index] = old.values[same[0]]
                available.remove(same[0])
    unknown = [index for index, value in enumerate(values) if value is None]
    remaining = {old.values[number] for number in available}
    if unknown and (len(remaining) != 1 or len(unknown) > len(available)):
        raise ToolError(AMBIGUOUS_MASK.format(path=path))
    for index in unknown:
        values[index] = next(iter(remaining))
    return tuple(value or "" for value in values)


def _is_clear(old: MaskedText, same: list[int], old_count: int, new_count: int) -> bool:
    """Whether masks with the same key can be matched in order: none was dropped, or they hide the same."""
    return old_count == new_count or len({old.values[number] for number in same}) == 1


def _lines_of_masks(text: str) -> Iterator[str]:
    """Yield a key for each mask: its line, and its number within the line."""
    for line in text.split("\n"):
        yield from (f"{number} {line.strip()}" for number in range(line.count(MASK)))


def _labels_of_masks(text: str) -> Iterator[str]:
    """Yield for each mask the text before it in its line."""
    for line in text.split("\n"):
        yield from (part.strip() for part in line.split(MASK)[:-1])
