"""Checks the destination of requests, for search, fetch, callbacks and the egress proxy.

Call `parse_url` on every hop, then `resolve_public` once, and connect to one of the addresses it returns: resolving
the name again could return another machine (DNS rebinding).
"""

import asyncio
import re
import socket
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from urllib.parse import quote

from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.hostnames import HostInvalid, normalize_host
from tooling.web.addresses.public_ranges import is_loopback, is_private, parse_ip, unmap_ipv4, why_not_public

MAX_URL_CHARS = 8192

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_DEFAULT_PORTS = {"http": 80, "https": 443}
# A colon followed by a digit is a port, not a scheme.
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])"
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_LOCAL_NAMES = ("localhost", "localdomain", "localdomain4", "localdomain6")
_PRIVATE_SUFFIXES = (
    "local",
    "internal",
    "home.arpa",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "mail",
    "svc",
    "default",
    "consul",
    "invalid",
    "onion",
)
_METADATA_NAMES = frozenset(
    (
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.tencentyun.com",
        "metadata.platformequinix.com",
        "metadata.packet.net",
        "metadata.udc.cloud",
        "metadata.nicp.nifcloud.com",
        "kubernetes.default.svc",
    )
)
# The "bad ports" that browsers block, from the Fetch standard.
_BAD_PORTS_TEXT = """
    1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135
    137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995
    1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
"""
_BAD_PORTS = frozenset(map(int, _BAD_PORTS_TEXT.split()))


ONLY_HTTP = "only http:// and https:// URLs can be requested"
HAS_CREDENTIALS = "the URL contains a user name or password"
BAD_PORT = "the port is not a plain number from 1 to 65535"
NOT_PUBLIC = "not a public address"


class AddressRefused(ValueError):
    """No request may go to this address; `reason` is one sentence for the caller."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HostUnknown(AddressRefused):
    """The name could not be resolved; a later attempt may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A checked URL; `path` is the path and query as sent, always ASCII."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return host and port as in a Host header: brackets for IPv6, no default port."""
        return authority(self.host, self.port, default=_DEFAULT_PORTS[self.scheme])

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return the origin as browsers define it."""
        return self.scheme, self.host, self.port

    @property
    def url(self) -> str:
        """Return the canonical URL, without a fragment."""
        return f"{self.scheme}://{self.authority}{self.path}"


def authority(host: str, port: int, *, default: int) -> str:
    """Format a host and a port as in a URL."""
    name = f"[{host}]" if ":" in host else host
    return name if port == default else f"{name}:{port}"


def parse_url(text: str, *, allow_loopback: bool = False, allow_private: bool = False) -> Target:
    """Parse a URL; refuse it if it cannot be public or if two programs could parse it differently."""
    if len(text) > MAX_URL_CHARS:
        raise AddressRefused("the URL is too long")
    if "\\" in text or any(unicodedata.category(char) in ("Cc", "Cs", "Zs", "Zl", "Zp") for char in text):
        raise AddressRefused("the URL contains white space, control characters or backslashes")
    scheme, _, rest = text.partition("://")
    scheme = scheme.lower()
    if scheme not in _DEFAULT_PORTS or not rest:
        raise AddressRefused(ONLY_HTTP)
    netloc, path = _split_path(rest)
    if "@" in netloc:
        raise AddressRefused(HAS_CREDENTIALS)
    host_text, port = _split_port(netloc, _DEFAULT_PORTS[scheme])
    host = check_host(host_text, allow_loopback=allow_loopback, allow_private=allow_private)
    return Target(scheme=scheme, host=host, port=_check_port(port), path=quote(path, safe=_PRINTABLE))


def with_scheme(text: str) -> str:
    """Add `https:` to an address without a scheme."""
    text = text.strip()
    if text.startswith("//"):
        return f"https:{text}"
    return text if not text or re.match(_SCHEME, text) else f"https://{text}"


def check_host(text: str, *, allow_loopback: bool = False, allow_private: bool = False) -> str:
    """Return the canonical host, or refuse it by its text alone; nothing is resolved."""
    try:
        host = normalize_host(text)
    except HostInvalid as error:
        raise AddressRefused(str(error)) from error
    if parse_ip(host) is not None:
        _check_address(host, host, allow_loopback=allow_loopback, allow_private=allow_private)
    elif not (allow_loopback and _is_in_domain(host, "localhost")):
        _check_name(host, allow_private=allow_private)
    return host


def is_local_url(text: str) -> bool:
    """Return whether a URL names this machine or a private network, by its text alone; nothing is resolved."""
    try:
        host = parse_url(text, allow_loopback=True, allow_private=True).host
    except AddressRefused:
        return False
    address = parse_ip(host)
    if address is None:
        return _is_in_domain(host, "localhost") or _is_private_name(host)
    return is_loopback(address) or is_private(address)


async def resolve_public(
    host: str,
    port: int,
    *,
    resolver: Resolver | None = None,
    allow_loopback: bool = False,
    allow_private: bool = False,
) -> tuple[str, ...]:
    """Resolve a host once and return the addresses to connect to; one non-public address refuses them all."""
    host = check_host(host, allow_loopback=allow_loopback, allow_private=allow_private)
    _check_port(port)
    if parse_ip(host) is not None:
        return (_check_address(host, host, allow_loopback=allow_loopback, allow_private=allow_private),)
    try:
        answers = await (resolver or system_resolver)(host, port)
    except OSError as error:
        raise HostUnknown(f"{host} could not be resolved: {error.strerror or error}") from error
    if not answers:
        raise HostUnknown(f"{host} has no address")
    checked = [
        _check_address(answer, host, allow_loopback=allow_loopback, allow_private=allow_private) for answer in answers
    ]
    return tuple(dict.fromkeys(checked))


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system resolver, in its order of preference."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _split_path(rest: str) -> tuple[str, str]:
    rest = rest.partition("#")[0]
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    path = rest[end:]
    return rest[:end], path if path.startswith("/") else f"/{path}"


def _split_port(netloc: str, default: int) -> tuple[str, int]:
    if netloc.startswith("["):
        host, bracket, port = netloc.partition("]")
        host += bracket
        if port and not port.startswith(":"):
            raise AddressRefused("the URL has text between its host and its port")
        port = port[1:]
    else:
        host, _, port = netloc.partition(":")
    if not port:
        return host, default
    if not (port.isascii() and port.isdigit()) or len(port) > 5 or port.startswith("0"):
        raise AddressRefused(BAD_PORT)
    return host, int(port)


def _check_port(port: int) -> int:
    if not 0 < port < 65536:
        raise AddressRefused(BAD_PORT)
    if port in _BAD_PORTS:
        raise AddressRefused(f"port {port} is not a web port")
    return port


def _check_name(host: str, *, allow_private: bool) -> None:
    if any(_is_in_domain(host, name) for name in _LOCAL_NAMES):
        raise AddressRefused(f"{host} is this machine")
    if host in _METADATA_NAMES:
        raise AddressRefused(f"{host} is a cloud metadata service")
    if _is_private_name(host) and not allow_private:
        raise AddressRefused(f"{host} is a name in a private network")


def _is_private_name(host: str) -> bool:
    return "." not in host or any(_is_in_domain(host, suffix) for suffix in _PRIVATE_SUFFIXES)


def _is_in_domain(host: str, name: str) -> bool:
    return host == name or host.endswith(f".{name}")


def _check_address(text: str, host: str, *, allow_loopback: bool, allow_private: bool) -> str:
    address = parse_ip(text)
    if address is None:
        raise AddressRefused(f"{host} resolves to {text!r}, which is not an address")
    reason = why_not_public(address)
    is_allowed = (allow_loopback and is_loopback(address)) or (allow_private and is_private(address))
    if reason is None or is_allowed:
        return str(unmap_ipv4(address))
    subject = f"{host} resolves to {address}, which is" if text != host else f"{host} is"
    raise AddressRefused(f"{subject} {NOT_PUBLIC} ({reason})")
