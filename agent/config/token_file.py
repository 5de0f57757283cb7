"""Tokens of the servers: created at the first start, in a file that only their owner can read."""

import os
import secrets
import stat
from pathlib import Path

from agent.vocabulary.errors import ConfigError
from tooling.files.atomic_write import TEMP_SUFFIX

# Placeholders for tokens in examples and templates.
PLACEHOLDERS = frozenset(
    {"change-this-token-in-production", "changeme", "change-me", "secret", "token", "password", "test", "example"}
)
MIN_TOKEN_CHARS = 16


def is_placeholder(token: str) -> bool:
    """Return whether a token is publicly known."""
    return token.strip().lower() in PLACEHOLDERS


def load_or_create_token(path: Path) -> str:
    """Return the token in a file; create it if missing. It stays the same, so that clients remain configured."""
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMP_SUFFIX}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
            file.flush()
            os.fsync(fd)
        # Unlike a rename, this fails if another process was faster; its token is then used.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)
    return _read(path)


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        mode = os.fstat(file.fileno()).st_mode
        token = file.read().strip()
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            f"other users may read the token in {path}", f"chmod 600 '{path}', or delete it for a new one"
        )
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(f"the token in {path} is too short", "delete the file for a new one")
    return token
