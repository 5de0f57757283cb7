"""Files that hold one table, in TOML or JSON: read completely, parsed strictly; errors name the file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """Name of a file type in errors, and the class of these errors."""

    kind: str
    example: str
    hint: str
    error: type[InputError]

    def read(self, path: Path) -> str:
        """Return the text of a file."""
        try:
            with path.open("rb") as file:
                data = file.read(_FILE_BYTES + 1)
        except OSError as error:
            raise self.error(f"cannot read the {self.kind} {path}: {error.strerror}") from error
        if len(data) > _FILE_BYTES:
            raise self.error(f"{path} is too large for a {self.kind} (over {_FILE_BYTES:,} bytes)")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"{path} is not UTF-8 text") from error

    def parse(self, text: str, name: str) -> tuple[Mapping[str, object], bool]:
        """Return the table of a text, and whether it is JSON: by the file's name, or by its first character."""
        is_json = name.endswith(".json") or text.lstrip()[:1] == "{"
        return (self._from_json(text, name) if is_json else self._from_toml(text, name)), is_json

    def _from_toml(self, text: str, name: str) -> Mapping[str, object]:
        import tomllib

        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise self.error(f"{name}: not valid TOML: {error}", self.hint) from error

    def _from_json(self, text: str, name: str) -> Mapping[str, object]:
        try:
            value: object = json.loads(text, object_pairs_hook=_reject_duplicates)
        except (ValueError, RecursionError) as error:
            raise self.error(f"{name}: not valid JSON: {error}", self.hint) from error
        if not isinstance(value, Mapping):
            raise self.error(f"{name}: expected an object {self.example}", self.hint)
        return value


def _reject_duplicates(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return table
