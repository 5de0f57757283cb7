"""Names of files that contain secrets; tools refuse them, and commands that name them need approval."""

import re
from pathlib import PurePath

SENSITIVE_FILES = (
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".s3cfg",
    ".boto",
    "credentials",
    "credentials.json",
    "credentials.yaml",
    "credentials.yml",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    "secrets.toml",
    "service-account.json",
    "service_account.json",
    "serviceaccount.json",
    "application_default_credentials.json",
    "client_secret.json",
    "kubeconfig",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "token.json",
    "tokens.json",
    ".dockercfg",
    ".terraformrc",
    "terraform.tfstate",
    "terraform.tfstate.backup",
)

SENSITIVE_PATTERNS = (
    r"^\.env\.(?!(?:example|sample|template|dist|defaults?|schema)$)[\w.-]+$",
    r"^(?!(?:example|sample|template|test|default)s?\.)[\w-]+\.env$",
    r"^[\w.-]*\bcredentials?\.(?:json|ya?ml|toml|ini|xml|csv)$",
    r"^[\w.-]*\bsecrets?\.(?:json|ya?ml|toml|ini|env)$",
    r"^[\w.-]*service[-_]?account[\w.-]*\.json$",
    r"^client_secret[\w.-]*\.json$",
    r"^(?:gha-creds-|[\w.-]*firebase-adminsdk)[\w.-]*\.json$",
    r"^[\w.-]*private[-_]?key(?:\.(?:txt|asc|json))?$",
    r"^id_(?:rsa|dsa|ecdsa|ed25519)(?:[_.-](?!pub$)[\w-]+)*$",
    r"^[\w. -]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn)$",
    r"^\.?(?:access|auth|api|refresh)[-_]?tokens?(?:\.(?:json|txt))?$",
)

# Files that are only sensitive in a certain folder.
SENSITIVE_PATHS = (
    (".aws", "config"),
    (".docker", "config.json"),
    (".kube", "config"),
    (".config", "gh", "hosts.yml"),
    (".cargo", "credentials.toml"),
    (".gnupg", "secring.gpg"),
    (".ssh", "config"),
)

_NAMES = frozenset(SENSITIVE_FILES)
_PATH_NAMES = frozenset(suffix[-1] for suffix in SENSITIVE_PATHS)
_ANY_PATTERN = "|".join(SENSITIVE_PATTERNS)


def is_sensitive_file(path: str | PurePath) -> bool:
    """Return whether a path names a file that usually contains secrets, ignoring case."""
    text = str(path).rstrip("/").lower()
    name = text.rpartition("/")[2]
    if name in _NAMES or re.match(_ANY_PATTERN, name):
        return True
    if name not in _PATH_NAMES:
        return False
    parts = PurePath(text).parts
    return any(parts[-len(suffix) :] == suffix for suffix in SENSITIVE_PATHS)
