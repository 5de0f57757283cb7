"""Change one value in the user's settings file; comments, order and formatting survive."""

from collections.abc import Mapping, MutableMapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_origin

from agent.config.origin import KeyPath, Origin, SettingValue
from agent.config.user_file import PROFILE_TABLES, has_references, parse_toml, parse_user_file, read_text, split_key
from agent.config.values import find_setting, flatten, validate
from agent.vocabulary.errors import ConfigError, InputError
from tooling.files.atomic_write import write_atomic

if TYPE_CHECKING:
    from tomlkit.container import Container

_UNSET = "none"
EDIT_BY_HAND = "edit the file yourself: this command cannot change a key written in this form"


def set_value(path: Path, key: str, text: str) -> None:
    """Write `key = text` to the settings file at `path`; `none` removes the key, so its default applies."""
    keys = split_key(key)
    if any(0xD800 <= ord(char) <= 0xDFFF for char in f"{key}{text}"):
        # Invalid UTF-8 on the command line arrives as lone surrogates.
        raise InputError("the value is not UTF-8 text")
    value = _parse_value(keys, text)
    before = read_text(path) or ""
    newline = "\r\n" if "\r\n" in before else "\n"
    before = before.replace("\r\n", "\n")
    after = _edit_checked(before, path, keys, value)
    parse_user_file(after, path)
    _write(path, after.replace("\n", newline))


def edit_text(text: str, keys: KeyPath, value: object) -> str:
    """Return the text of a settings file with one value set, or removed if `value` is None."""
    import tomlkit

    if text and not text.endswith("\n"):
        text += "\n"
    document = tomlkit.parse(text)
    table = _find_table(document, keys[:-1])
    name = keys[-1]
    if table is None:
        return text if value is None else _append_table(text, keys, value)
    if value is None:
        table.pop(name, None)
    elif name not in table:
        _insert(table, name, value)
    elif not _edit_list(table[name], value):
        table[name] = value
    return document.as_string()


def _parse_value(keys: KeyPath, text: str) -> object:
    inner = keys[2:] if keys[0] in PROFILE_TABLES and len(keys) > 2 else keys
    if text.strip().lower() == _UNSET and (spec := find_setting(inner)) and not _is_table(spec.kind):
        return None
    if has_references(inner, text) and find_setting(inner):
        return text
    given = SettingValue(path=inner, value=text, origin=Origin(layer="file"), source="config set", is_text=True)
    value = validate(given).value
    if isinstance(value, Mapping):
        raise ConfigError(f"config set: {given.name} is a table", f"set one entry at a time: {given.name}.NAME")
    return value


def _is_table(kind: object) -> bool:
    return get_origin(kind) is Mapping or is_dataclass(kind)


def _find_table(document: MutableMapping[str, object], path: KeyPath) -> MutableMapping[str, object] | None:
    table: object = document
    for name in path:
        table = table.get(name) if isinstance(table, MutableMapping) else None
    return table if isinstance(table, MutableMapping) else None


def _append_table(text: str, keys: KeyPath, value: object) -> str:
    import tomlkit

    nested = value
    for name in reversed(keys):
        nested = {name: nested}
    return text + ("\n" if text else "") + tomlkit.dumps(cast(dict[str, object], nested))


def _insert(table: MutableMapping[str, object], name: str, value: object) -> None:
    """Add a key after the last one of its table; tomlkit would add it after the comment of the next table."""
    import tomlkit
    from tomlkit.container import Container
    from tomlkit.items import Table

    if not isinstance(table, Container | Table):
        table[name] = value
        return
    body = (table.value if isinstance(table, Table) else table).body
    last = _last_assignment(table.value if isinstance(table, Table) else table)
    body.insert(last + 1, (tomlkit.key(name), tomlkit.item(value)))
    if isinstance(table, Container) and last < 0 and len(body) > 1:
        body.insert(1, (None, tomlkit.nl()))


def _last_assignment(container: "Container") -> int:
    from tomlkit.items import Table

    indexes = [
        index
        for index, (key, item) in enumerate(container.body)
        if key is not None and (key.is_dotted() or not isinstance(item, Table))
    ]
    return indexes[-1] if indexes else -1


def _edit_list(known: object, value: object) -> bool:
    """Append to or remove from a list in place, which preserves its comments; False if that is not the change."""
    from tomlkit.items import Array

    if not isinstance(known, Array) or not isinstance(value, list | tuple):
        return False
    before, wanted = list(known), list(value)
    if wanted[: len(before)] == before:
        for item in wanted[len(before) :]:
            known.append(item)
        return True
    if [item for item in before if item in wanted] != wanted:
        return False
    for item in before:
        if item not in wanted:
            known.remove(item)
    return True


def _edit_checked(before: str, path: Path, keys: KeyPath, value: object) -> str:
    """Edit the text and prove by parsing it that this value changed and nothing else."""
    from tomlkit.exceptions import TOMLKitError

    wanted = flatten(parse_toml(before, path))
    wanted.pop(keys, None)
    if value is not None:
        wanted[keys] = list(value) if isinstance(value, tuple) else value
    refusal = ConfigError(f"{path}: cannot set {'.'.join(keys)}", EDIT_BY_HAND)
    try:
        after = edit_text(before, keys, value)
        found = flatten(parse_toml(after, path))
    except (TOMLKitError, ConfigError) as error:
        raise refusal from error
    if _without_empty_tables(found) != _without_empty_tables(wanted):
        raise refusal
    return after


def _without_empty_tables(values: Mapping[KeyPath, object]) -> dict[KeyPath, object]:
    return {path: value for path, value in values.items() if value != {}}


def _write(path: Path, text: str) -> None:
    # Dotfile managers keep the real file elsewhere and link to it: the link must stay.
    target = path.resolve()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(target, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
