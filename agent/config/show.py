"""Settings as rows for display: name, value with secrets masked, origin."""

from collections.abc import Mapping, Sequence

from agent.config.load import LoadedSettings
from agent.config.origin import DEFAULT, Origin
from agent.config.secrets import is_secret, mask
from agent.config.service_settings import PLACEHOLDER_TOKEN, TABLE, load_service_settings
from agent.config.user_dirs import data_path, data_variable
from agent.config.user_file import split_key
from agent.config.values import flatten, setting_names
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean, encode

LIST_HINT = "list all settings: agent config show"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting for display."""

    name: str
    value: object
    origin: Origin

    @property
    def text(self) -> str:
        """The value on one line; empty if unset."""
        if self.value is None or self.value == {}:
            return ""
        if isinstance(self.value, Mapping):
            return ", ".join(f"{key}={item}" for key, item in self.value.items())
        if isinstance(self.value, list):
            return ", ".join(str(item) for item in self.value)
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


def setting_rows(loaded: LoadedSettings, environ: Mapping[str, str]) -> tuple[SettingRow, ...]:
    """Return all settings in the order of the tables, secrets masked."""
    plain = encode(loaded.settings)
    rows = tuple(
        SettingRow(
            name=".".join(path), value=_mask_secrets(path, value, loaded.secrets), origin=_origin(path, loaded.origins)
        )
        for path, value in flatten(plain if isinstance(plain, Mapping) else {}).items()
        if path[0] != TABLE
    )
    return (*rows, *_service_rows(loaded, environ))


def _service_rows(loaded: LoadedSettings, environ: Mapping[str, str]) -> tuple[SettingRow, ...]:
    service = load_service_settings(loaded, environ)
    plain = encode(service.settings)
    values = plain if isinstance(plain, Mapping) else {}
    return tuple(
        SettingRow(
            name=f"{TABLE}.{name}",
            value=value if value == PLACEHOLDER_TOKEN else _mask_secrets((TABLE, name), value, loaded.secrets),
            origin=service.origins[name],
        )
        for name, value in values.items()
    )


def data_folder_row(environ: Mapping[str, str]) -> SettingRow:
    """Return the folder of sessions and memory, which can only be set by the environment."""
    variable = data_variable(environ)
    origin = Origin(layer="environment", where=variable) if variable else DEFAULT
    return SettingRow(name="data", value=str(data_path(environ)), origin=origin)


def find_row(loaded: LoadedSettings, name: str, environ: Mapping[str, str]) -> SettingRow:
    """Return one setting or table, empty for a provider without a key, or raise ConfigError if it is unknown."""
    found = {row.name: row for row in setting_rows(loaded, environ)}
    if name in found:
        return found[name]
    path = split_key(name)
    if path[0] not in setting_names():
        raise ConfigError(f"unknown setting {path[0]}{did_you_mean(path[0], setting_names())}", LIST_HINT)
    if below := {row.name: row for key, row in found.items() if key.startswith(f"{name}.")}:
        value = {key.removeprefix(f"{name}."): row.value for key, row in below.items()}
        return SettingRow(name=name, value=value, origin=next(iter(below.values())).origin)
    if path[0] == "keys" and len(path) == 2:
        return SettingRow(name=name, value="", origin=DEFAULT)
    raise ConfigError(f"unknown setting {name}", LIST_HINT)


def _mask_secrets(path: tuple[str, ...], value: object, secrets: Sequence[str]) -> object:
    if isinstance(value, list):
        return [_mask_secrets(path, item, secrets) for item in value]
    if not isinstance(value, str):
        return value
    if is_secret(path):
        return mask(value)
    # A variable may put a secret anywhere, such as into a URL.
    for secret in secrets:
        value = value.replace(secret, mask(secret))
    return value


def _origin(path: tuple[str, ...], origins: Mapping[str, Origin]) -> Origin:
    return origins.get(".".join(path), DEFAULT)
