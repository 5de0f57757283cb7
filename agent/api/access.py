"""Access control of the server: the token, browser sessions, allowed hosts and origins."""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Callable
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from agent.config.token_file import MIN_TOKEN_CHARS, is_placeholder
from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass

# Browsers send cookies to every port of a host. This name is used only by us: a server that another program, or a
# command of the agent, opens on 127.0.0.1 does not get our cookies. Browsers resolve it to loopback without DNS.
PAGE_HOST = "windlass.localhost"
_LOOPBACK_NAMES = frozenset({"localhost", PAGE_HOST})
_WILDCARDS = ("0.0.0.0", "::", "")
SESSION_S = 12 * 3600
CODE_S = 900
Credential: TypeAlias = Literal["token", "callback", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rules of one server; `hosts` are its external names, `origins` are pages that may call it."""

    token: str
    callback_token: str = ""
    listens_on: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    is_encrypted: bool = False
    max_body_bytes: int = 1_000_000
    requests_per_s: float = 100.0

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.listens_on)

    @property
    def cookie_name(self) -> str:
        """The name of the session cookie; browsers accept this prefix only over TLS and for a single host."""
        return "__Host-windlass" if self.is_encrypted else "windlass"

    def knows_host(self, header: str) -> bool:
        """Return whether a Host header names this server; any other name may be a DNS rebinding attack."""
        name = _host_name(header)
        if name is None:
            return False
        if name in _LOOPBACK_NAMES or name in self.hosts or name == self.listens_on.lower():
            return True
        address = _address(name)
        # A name can be rebound, an address cannot; only a server that listens on all interfaces has more than one.
        return address is not None and (address.is_loopback or self.listens_on in _WILDCARDS)

    def knows_origin(self, origin: str, host: str) -> bool:
        """Return whether a request comes from our own page, or from an allowed origin."""
        scheme = "https" if self.is_encrypted else "http"
        return origin in self.origins or origin in (f"{scheme}://{host}", f"https://{host}")

    def check_bearer(self, header: str) -> Credential | None:
        """Return the credential that an Authorization header proves, compared in constant time."""
        scheme, _, given = header.partition(" ")
        if scheme.lower() != "bearer" or not given:
            return None
        if _is_equal(given.strip(), self.token):
            return "token"
        return "callback" if self.callback_token and _is_equal(given.strip(), self.callback_token) else None


def check_access(access: Access, *, has_own_token: bool) -> None:
    """Raise ConfigError for a server that others could use without a token."""
    for origin in access.origins:
        if not _is_origin(origin):
            raise ConfigError(f"{origin!r} is not an origin", "write it as https://example.org, without a path")
    if access.is_local:
        return
    if not has_own_token or is_placeholder(access.token):
        raise ConfigError(
            f"refusing to listen on {access.listens_on or 'all addresses'} without a token of your own",
            "set internal_api_token to a long random text: openssl rand -base64 32",
        )
    if len(access.token) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f"internal_api_token is too short to listen on {access.listens_on}",
            f"use at least {MIN_TOKEN_CHARS} characters: openssl rand -base64 32",
        )


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is reachable from this machine only."""
    address = _address(host)
    return host.lower() in _LOOPBACK_NAMES or (address is not None and address.is_loopback)


class BrowserSessions:
    """Signed cookies and one-time codes, bound to the token: a new token ends all sessions."""

    def __init__(self, token: str, now: Callable[[], float] = time.time) -> None:
        self._key = hashlib.sha256(b"windlass browser session\0" + token.encode()).digest()
        self._now = now
        self._codes: dict[str, float] = {}

    def new_code(self) -> str:
        """Return a one-time code that opens a session; it expires within minutes."""
        code = secrets.token_urlsafe(24)
        self._codes[_digest(code)] = self._now() + CODE_S
        return code

    def redeem(self, code: str) -> bool:
        """Consume a code; return whether it was valid."""
        expires = self._codes.pop(_digest(code), 0.0)
        return self._now() < expires

    def new_cookie(self) -> str:
        """Return the value of a new session's cookie."""
        session = f"{int(self._now()) + SESSION_S}.{secrets.token_urlsafe(16)}"
        return f"{session}.{self._sign('cookie', session)}"

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie was signed by us and has not expired."""
        session, _, signature = cookie.rpartition(".")
        expires = session.partition(".")[0]
        is_ours = _is_equal(signature, self._sign("cookie", session))
        return is_ours and expires.isdecimal() and self._now() < int(expires)

    def csrf_token(self, cookie: str) -> str:
        """Return the CSRF token for the forms of a session."""
        return self._sign("form", cookie)

    def is_csrf_token(self, given: str, cookie: str) -> bool:
        """Return whether a form was created by us for this session."""
        return _is_equal(given, self.csrf_token(cookie))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _is_equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def _digest(text: str) -> str:
    # Looked up by digest, so that the duration of a lookup reveals nothing about the codes.
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _host_name(header: str) -> str | None:
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
        has_more = bool(parts.path or parts.query or parts.fragment or parts.username)
        return None if has_more or parts.hostname is None else parts.hostname.lower().removesuffix(".")
    except ValueError:
        return None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_origin(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and text == f"{parts.scheme}://{parts.netloc}"
