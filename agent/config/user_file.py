"""Read the user's settings file: values and named profiles, each with its line number."""

import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.config.origin import KeyPath, LayerName, Origin, SettingValue
from agent.config.secrets import is_secret
from agent.config.values import flatten, setting_names, validate
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean
from tooling.files.open_regular import read_regular

PROFILES = "profiles"
# The second is the name of the table in 0.1.
PROFILE_TABLES = (PROFILES, "profile")
# Settings files are much smaller; a larger file is something else.
MAX_FILE_BYTES = 4_000_000
# Rules are commands: `${VAR}` in them is the shell's.
_COMMANDS = ("allow", "deny", "projects")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFile:
    """The validated contents of a settings file."""

    values: tuple[SettingValue, ...] = ()
    profiles: Mapping[str, tuple[SettingValue, ...]]
    warnings: tuple[str, ...] = ()


def read_user_file(path: Path) -> UserFile:
    """Read and validate a settings file; a missing file has no values."""
    text = read_text(path)
    if text is None:
        return UserFile(profiles={})
    found = parse_user_file(text, path)
    values = [value for values in (found.values, *found.profiles.values()) for value in values]
    has_keys = any(is_secret(value.path) and not value.has_references for value in values)
    if has_keys and is_readable_by_others(path):
        return UserFile(values=found.values, profiles=found.profiles, warnings=(readable_warning(path),))
    return found


def readable_warning(path: Path) -> str:
    """Return the warning about a file with keys that other users can read."""
    return f"{path} contains API keys and is readable by other users; run: chmod 600 {path}"


def is_readable_by_others(path: Path) -> bool:
    """Return whether other users may read a file."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def read_text(path: Path) -> str | None:
    """Return the text of a settings file, None if there is none, or raise ConfigError."""
    try:
        return read_regular(path, limit=MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"cannot read {path}: {reason}") from error


def parse_user_file(text: str, path: Path) -> UserFile:
    """Parse and validate the text of a settings file; errors name `path`."""
    table = parse_toml(text, path)
    lines = _lines_by_key(text)
    profiles: dict[str, tuple[SettingValue, ...]] = {}
    for key in reversed(PROFILE_TABLES):
        named = table.pop(key, {})
        if not isinstance(named, Mapping):
            raise ConfigError(f"{path}: {key}: expected tables such as [{PROFILES}.work]")
        for name, values in named.items():
            if not isinstance(values, Mapping):
                raise ConfigError(f"{path}: {key}.{name}: expected a table [{key}.{name}]")
            profiles[name] = _read_table(values, path, lines, profile=(key, name))
    return UserFile(values=_read_table(table, path, lines), profiles=profiles)


def parse_toml(text: str, path: Path) -> dict[str, object]:
    """Parse TOML, or raise ConfigError with file and line."""
    # Most runs have no file to parse, and tomllib imports re.
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error


def _read_table(
    table: Mapping[str, object], path: Path, lines: Mapping[KeyPath, int], *, profile: KeyPath = ()
) -> tuple[SettingValue, ...]:
    layer: LayerName = "profile" if profile else "file"
    found = []
    for key, value in flatten(table).items():
        line = _find_line((*profile, *key), lines)
        suffix = f":{line}" if line else ""
        where = f"{path.name}{suffix}"
        origin = Origin(layer=layer, where=f"{profile[1]} ({where})" if profile else where)
        _check_known(key[0], f"{path}{suffix}", is_profile=bool(profile))
        setting = SettingValue(path=key, value=value, origin=origin, source=f"{path}{suffix}")
        # Variables are replaced when the value is used: an unset one must not break other profiles.
        found.append(replace(setting, has_references=True) if has_references(key, value) else validate(setting))
    return tuple(found)


def has_references(path: KeyPath, value: object) -> bool:
    """Return whether the value of a setting contains variables to be replaced."""
    if isinstance(value, list):
        return any(has_references(path, item) for item in value)
    return isinstance(value, str) and "${" in value and path[0] not in _COMMANDS


def _check_known(name: str, source: str, *, is_profile: bool) -> None:
    known = [*setting_names(), *(() if is_profile else PROFILE_TABLES)]
    if name not in known:
        raise ConfigError(f"{source}: unknown setting {name}{did_you_mean(name, known)}")


def _find_line(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _lines_by_key(text: str) -> dict[KeyPath, int]:
    """Find the line of each key with a simple scan: good enough for error messages, not for parsing."""
    lines: dict[KeyPath, int] = {}
    header: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if (inner := _header_path(line)) is not None:
            header = inner
            lines.setdefault(header, number)
        elif "=" in line and not line.lstrip().startswith("#"):
            lines.setdefault((*header, *split_key(line.partition("=")[0])), number)
    return lines


def _header_path(line: str) -> KeyPath | None:
    """Return the key of a `[table]` header, or None for any other line."""
    bare = line.partition("#")[0].strip()
    if bare.startswith("[") and bare.endswith("]") and "=" not in bare and "," not in bare:
        return split_key(bare.strip("[]"))
    return None


def split_key(text: str) -> KeyPath:
    """Split a dotted key at the dots outside quotes, and remove the quotes."""
    parts, quote = [""], ""
    for char in text.strip():
        if char in "\"'" and quote in ("", char):
            quote = "" if quote else char
        elif char == "." and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(part.strip() for part in parts)
