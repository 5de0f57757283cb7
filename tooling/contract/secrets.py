"""The port through which tools find secrets in files they change."""

from typing import Protocol, TypeAlias

Span: TypeAlias = tuple[int, int]


class Secrets(Protocol):
    """Finds the secrets in a text. Text for the model has a mask in place of each."""

    def find_secrets(self, text: str) -> list[Span]:
        """Return the positions of all secrets, sorted and without overlaps."""
        ...

    def mask_lines(self, text: str) -> str:
        """Return the text masked line by line: it keeps its number of lines."""
        ...


class NoSecrets:
    """Finds nothing."""

    def find_secrets(self, text: str) -> list[Span]:
        """Return nothing."""
        return []

    def mask_lines(self, text: str) -> str:
        """Return the text unchanged."""
        return text
