"""Command-line flags: the strongest settings layer."""

from collections.abc import Mapping, Sequence

from agent.config.origin import KeyPath, Origin, SettingValue
from agent.config.values import validate, validate_and_split
from agent.vocabulary.errors import UsageError

_FLAG_NAMES = {"timeout_s": "--timeout"}
_ADDITIVE = ("allow", "deny", "allow_net", "deny_net")


def read_flags(
    flags: Mapping[str, object], assignments: Sequence[str], *, below: Mapping[KeyPath, SettingValue]
) -> tuple[SettingValue, ...]:
    """Return the settings given as flags; a dedicated flag overrides --set, None means not given."""
    values: list[SettingValue] = [value for text in assignments for value in _parse_assignment(text)]
    for name, value in flags.items():
        if value is not None and not (name in _ADDITIVE and not value):
            values.append(_parse_flag(name, value, below, values))
    return tuple(values)


def _parse_assignment(text: str) -> tuple[SettingValue, ...]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {key}: expected key=value")
    path = tuple(part.strip() for part in key.split("."))
    origin = Origin(layer="flag", where="--set")
    return validate_and_split(
        SettingValue(path=path, value=value.strip(), origin=origin, source="flag --set", is_text=True)
    )


def _parse_flag(
    name: str, value: object, below: Mapping[KeyPath, SettingValue], given: Sequence[SettingValue]
) -> SettingValue:
    flag = _FLAG_NAMES.get(name, "--" + name.replace("_", "-"))
    if name in _ADDITIVE and isinstance(value, (list, tuple)):
        # A flag must not silently lift a denial in the user's file, so rules accumulate.
        value = [*_existing_rules(name, below, given), *value]
    origin = Origin(layer="flag", where=flag)
    return validate(SettingValue(path=(name,), value=value, origin=origin, source=f"flag {flag}", is_text=True))


def _existing_rules(name: str, below: Mapping[KeyPath, SettingValue], given: Sequence[SettingValue]) -> list[object]:
    earlier = [below[(name,)]] if (name,) in below else []
    earlier += [value for value in given if value.path == (name,)]
    rules = earlier[-1].value if earlier else ()
    return list(rules) if isinstance(rules, (list, tuple)) else []
