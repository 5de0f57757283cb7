"""Change one value in the user's settings file and leave every other line as it was."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_origin

from agent.config.origin import KeyPath, Origin, SettingValue
from agent.config.user_file import PROFILES, header_path, parse_toml, parse_user_file, split_key
from agent.config.values import find_setting, flatten, validate
from agent.vocabulary.errors import ConfigError
from tooling.files.atomic_write import write_atomic

_UNSET = "none"
_EDIT_MANUALLY = "change it by hand: the key is written in a form this command does not edit"


def set_value(path: Path, key: str, text: str) -> None:
    """Write `key = text` into the settings file at `path`; `none` takes the key out, so that its default holds."""
    keys = split_key(key)
    value = _parse_value(keys, text)
    before = _read(path)
    newline = "\r\n" if "\r\n" in before else "\n"
    before = before.replace("\r\n", "\n")
    after = edit_text(before, keys, value)
    _check_only_this_changed(before, after, path, keys, value)
    parse_user_file(after, path)
    _write(path, after.replace("\n", newline))


def edit_text(text: str, keys: KeyPath, value: object) -> str:
    """Return the text of a settings file with one value set, or removed when `value` is None."""
    lines = text.splitlines()
    for table_depth in range(len(keys)):
        start, end = _table_range(lines, keys[:table_depth])
        found = _find_assignment(lines, start, end, keys[table_depth:])
        if found:
            first, last = found
            lines[first:last] = (
                []
                if value is None
                else [_format_assignment(keys[table_depth:], value) + _trailing_comment(lines[first:last])]
            )
            return "\n".join(lines) + "\n"
    if value is not None:
        _insert(lines, keys, value)
    return "\n".join(lines) + "\n" if lines else ""


def _parse_value(keys: KeyPath, text: str) -> object:
    inner = keys[2:] if keys[0] == PROFILES and len(keys) > 2 else keys
    if text.strip().lower() == _UNSET and (slot := find_setting(inner)) and not _is_table(slot.kind):
        return None
    leaf = SettingValue(path=inner, value=text, origin=Origin(layer="file"), source="config set", is_text=True)
    value = validate(leaf).value
    if isinstance(value, Mapping):
        raise ConfigError(f"config set: {leaf.name} is a table", f"set one entry at a time: {leaf.name}.NAME")
    return value


def _is_table(kind: object) -> bool:
    return get_origin(kind) is Mapping or is_dataclass(kind)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def _table_range(lines: list[str], table: KeyPath) -> tuple[int, int]:
    """Return the lines that belong to a table, the header left out; an empty range at the end when it is missing."""
    start = 0 if not table else next((n + 1 for n, line in enumerate(lines) if header_path(line) == table), len(lines))
    end = next((n for n in range(start, len(lines)) if header_path(lines[n]) is not None), len(lines))
    return start, end


def _find_assignment(lines: list[str], start: int, end: int, keys: KeyPath) -> tuple[int, int] | None:
    for first in range(start, end):
        name, equals, _ = lines[first].partition("=")
        if equals and split_key(name) == keys:
            last = next((n for n in range(first + 1, end + 1) if _parses("\n".join(lines[first:n]))), first + 1)
            return first, last
    return None


def _insert(lines: list[str], keys: KeyPath, value: object) -> None:
    table, name = keys[:-1], keys[-1:]
    start, end = _table_range(lines, table)
    if table and start == len(lines) and not (lines and header_path(lines[-1]) == table):
        lines += ([""] if lines else []) + [f"[{_format_key(table)}]", _format_assignment(name, value)]
        return
    written = [n for n in range(start, end) if lines[n].strip() and not lines[n].lstrip().startswith("#")]
    spot = written[-1] + 1 if written else start
    lines.insert(spot, _format_assignment(name, value))
    if not table and not written and spot + 1 < len(lines) and lines[spot + 1].strip():
        lines.insert(spot + 1, "")


def _trailing_comment(lines: list[str]) -> str:
    """Return the remark at the end of an assignment: what follows the first # that is not inside a text."""
    whole = "\n".join(lines)
    marks = (n for n, letter in enumerate(whole) if letter == "#" and _parses(whole[:n]))
    mark = next(marks, None)
    return "" if mark is None else "  " + whole[mark:]


def _parses(text: str) -> bool:
    try:
        parse_toml(text, Path())
    except ConfigError:
        return False
    return True


def _format_assignment(keys: KeyPath, value: object) -> str:
    return f"{_format_key(keys)} = {_format_value(value)}"


def _format_key(keys: KeyPath) -> str:
    return ".".join(
        key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else _format_value(key) for key in keys
    )


def _format_value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_format_value(item) for item in value) + "]"
    if not isinstance(value, str):
        return str(value).lower()
    import json

    # A JSON text is a TOML text but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_only_this_changed(before: str, after: str, path: Path, keys: KeyPath, value: object) -> None:
    """Prove by parsing that the edit changed this value and nothing else."""
    wanted = flatten(parse_toml(before, path))
    wanted.pop(keys, None)
    if value is not None:
        wanted[keys] = list(value) if isinstance(value, tuple) else value
    try:
        found = flatten(parse_toml(after, path))
    except ConfigError as error:
        raise ConfigError(f"{path}: cannot set {'.'.join(keys)}", _EDIT_MANUALLY) from error
    if {k: v for k, v in found.items() if v != {}} != {k: v for k, v in wanted.items() if v != {}}:
        raise ConfigError(f"{path}: cannot set {'.'.join(keys)}", _EDIT_MANUALLY)


def _write(path: Path, text: str) -> None:
    # Dotfile managers keep the real file elsewhere and link to it: the link must stay.
    target = path.resolve()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(target, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
