"""The `.env` file next to the settings file, and `${VAR}` in the values of the settings file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.config.origin import SettingValue
from agent.config.secrets import is_secret_variable
from agent.config.user_dirs import FOLDER_VARIABLES
from agent.config.user_file import is_readable_by_others, read_text, readable_warning
from agent.config.values import validate_and_split
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass

ENV_FILE = ".env"
_EXPECTED = "expected NAME=value"
# Quotes as in a shell: single ones keep everything, double ones allow a few escapes.
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}
_REFERENCE, _ESCAPED = "${", "$${"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFile:
    """The variables of a `.env` file."""

    variables: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def read_env_file(path: Path) -> EnvFile:
    """Read a `.env` file; a missing one has no variables."""
    text = read_text(path)
    if text is None:
        return EnvFile(variables={})
    variables = dict(_parse(text, path))
    warnings = [
        f"{path}: {name} must be set in the environment (ignored)" for name in FOLDER_VARIABLES if name in variables
    ]
    if any(map(is_secret_variable, variables)) and is_readable_by_others(path):
        warnings.append(readable_warning(path))
    return EnvFile(variables=variables, warnings=tuple(warnings))


def expand(values: Sequence[SettingValue], variables: Mapping[str, str]) -> tuple[SettingValue, ...]:
    """Return settings with the variables in them replaced, and these settings validated."""
    return tuple(
        expanded
        for setting in values
        for expanded in (_expand_setting(setting, variables) if setting.has_references else (setting,))
    )


def _parse(text: str, path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip().removeprefix("export ").lstrip()
        if not bare or bare.startswith("#"):
            continue
        name, equals, value = bare.partition("=")
        name = name.strip()
        # The line may be a key, so it is not shown.
        if not equals or not (name.isascii() and name.isidentifier()):
            raise ConfigError(f"{path}:{number}: {_EXPECTED}")
        parsed = _parse_value(value.strip())
        if parsed is None:
            raise ConfigError(f"{path}:{number}: {name}: the quote is not closed on this line")
        yield name, parsed


def _parse_value(text: str) -> str | None:
    """Return a value without quotes and comment; None if a quote is not closed."""
    quote = text[:1]
    if quote == "'":
        end = text.find("'", 1)
        return text[1:end] if end > 0 else None
    if quote == '"':
        return _parse_double_quoted(text[1:])
    return "" if quote == "#" else text.partition(" #")[0].rstrip()


def _parse_double_quoted(text: str) -> str | None:
    value, position = "", 0
    while position < len(text):
        char = text[position]
        if char == '"':
            return value
        following = text[position + 1 : position + 2]
        if char == "\\" and following in _ESCAPES:
            value += _ESCAPES[following]
            position += 1
        else:
            value += char
        position += 1
    return None


def _expand_setting(setting: SettingValue, variables: Mapping[str, str]) -> tuple[SettingValue, ...]:
    value = _expand_value(setting.value, setting, variables)
    return validate_and_split(replace(setting, value=value, is_text=isinstance(value, str), has_references=False))


def _expand_value(value: object, setting: SettingValue, variables: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _expand_text(value, setting, variables)
    if isinstance(value, list):
        return [_expand_value(item, setting, variables) for item in value]
    return value


def _expand_text(text: str, setting: SettingValue, variables: Mapping[str, str]) -> str:
    """Replace `${VAR}`; `$${` is a literal `${`. The values of variables are not expanded again."""
    before, reference, after = text.partition(_REFERENCE)
    if not reference:
        return text
    if before.endswith("$"):
        return before[:-1] + _REFERENCE + _expand_text(after, setting, variables)
    name, closed, rest = after.partition("}")
    if not closed or not (name.isascii() and name.isidentifier()):
        raise ConfigError(
            f"{setting.source}: {setting.name}: ${{ is not followed by a variable and }}",
            f"write ${{NAME}}, or {_ESCAPED} for a literal {_REFERENCE}",
        )
    if name not in variables:
        raise ConfigError(
            f"{setting.source}: {setting.name}: the variable {name} is not set",
            f"set it in the environment or in {ENV_FILE} beside the file; {_ESCAPED} is a literal {_REFERENCE}",
        )
    return before + variables[name] + _expand_text(rest, setting, variables)
