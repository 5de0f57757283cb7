"""Secret settings: their names, masking, and the texts to redact."""

from collections.abc import Iterable, Mapping

from agent.config.origin import KeyPath
from agent.config.settings import Settings

_SECRET_SETTINGS = ("api_key", "keys", "callback_token")
# In the table `service`; a database URL contains a password.
_SERVICE_SECRETS = (
    "callback_token",
    "internal_api_token",
    "database_url",
    "anthropic_token",
    "s3_access_key",
    "s3_secret_key",
)
_SECRET_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_SECRET_KEY", "_ACCESS_KEY")
# Local servers accept any key; redacting these words would damage ordinary text.
_PLACEHOLDERS = frozenset({"lm-studio", "ollama", "not-needed", "no-key", "no-key-required", "sk-no-key-required"})
_MIN_SECRET_CHARS = 6
_MIN_CHARS_WITH_TAIL = 12


def is_secret(path: KeyPath) -> bool:
    """Return whether the setting at `path` holds a key."""
    inner = path[2:] if path[:1] in (("profiles",), ("profile",)) else path
    return bool(inner) and (inner[0] in _SECRET_SETTINGS or (inner[0] == "service" and inner[-1] in _SERVICE_SECRETS))


def is_secret_variable(name: str) -> bool:
    """Return whether a variable of this name holds a key, token or password."""
    return name.upper().endswith(_SECRET_SUFFIXES)


def mask(value: str) -> str:
    """Return a key in displayable form: at most its last four characters."""
    if not value:
        return ""
    return "****" + (value[-4:] if len(value) >= _MIN_CHARS_WITH_TAIL else "")


def collect_secrets(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts to redact from all output and storage, longest first."""
    from_environ = (value for name, value in environ.items() if is_secret_variable(name))
    from_service = (str(settings.service.get(name) or "") for name in _SERVICE_SECRETS)
    own = (settings.api_key, settings.callback_token, *settings.keys.values())
    return _longest_first((*own, *from_service, *from_environ))


def _longest_first(values: Iterable[str]) -> tuple[str, ...]:
    found = {
        value
        for value in map(str.strip, values)
        if len(value) >= _MIN_SECRET_CHARS and value.lower() not in _PLACEHOLDERS
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))
