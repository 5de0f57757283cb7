"""Which numeric addresses are public: our own table, because a library's idea of it changes under our feet."""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

IPAddress: TypeAlias = IPv4Address | IPv6Address

PRIVATE = "private"

_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", PRIVATE),
        ("100.64.0.0/10", "shared by carriers"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", PRIVATE),
        ("192.0.0.0/24", "for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a retired relay"),
        ("192.168.0.0/16", PRIVATE),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)

_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        # How such an address is translated is the local operator's choice, so nothing can be said about it.
        ("64:ff9b:1::/48", "for local translation"),
        ("100::/64", "for discarding"),
        ("100:0:0:1::/64", "for protocols"),
        ("2001:db8::/32", "for documentation"),
        ("2001::/23", "for protocols"),
        ("3ffe::/16", "a retired experiment"),
        ("3fff::/20", "for documentation"),
        ("5f00::/16", "for segment routing"),
        ("fd00:ec2::254/128", "a cloud's own service"),
        ("fc00::/7", PRIVATE),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")

_IPV4_MAPPED = IPv6Network("::ffff:0:0/96")
_IPV4_EMBEDDING = (
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0:0/96"),
    IPv6Network("64:ff9b::/96"),
)
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP_MARKS = (0x0000_5EFE, 0x0200_5EFE)


def why_not_public(address: IPAddress) -> str | None:
    """Return what keeps an address from being public, or None; an address inside an address counts."""
    if isinstance(address, IPv4Address):
        return next((what for network, what in _V4 if address in network), None)
    if address.scope_id is not None:
        return "bound to one interface"
    if int(address) > 1 and (carried := _embedded_ipv4(address)):
        inside = next((f"{what} inside ({inner})" for inner in carried if (what := why_not_public(inner))), None)
        return inside or _why_not_isatap(address)
    named = next((what for network, what in _V6 if address in network), None)
    if named is None and address not in _PUBLIC_V6:
        return "outside the public space"
    return named or _why_not_isatap(address)


def unmap_ipv4(address: IPAddress) -> IPAddress:
    """Return the IPv4 address that the kernel would really use for a mapped one, else the address itself."""
    if isinstance(address, IPv6Address) and address in _IPV4_MAPPED:
        return _low_32_bits(address)
    return address


def is_loopback(address: IPAddress) -> bool:
    """Say whether an address leads back to this machine."""
    return unmap_ipv4(address).is_loopback


def is_private(address: IPAddress) -> bool:
    """Say whether an address belongs to networks that people number themselves."""
    return why_not_public(unmap_ipv4(address)) == PRIVATE


def parse_ip(text: str) -> IPAddress | None:
    """Read a numeric address in its usual form; None for anything else, `127.1` and `0177.0.0.1` included."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _embedded_ipv4(address: IPv6Address) -> tuple[IPv4Address, ...]:
    if address in _IPV4_MAPPED or any(address in network for network in _IPV4_EMBEDDING):
        return (_low_32_bits(address),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(int(address) >> 80 & 0xFFFF_FFFF),)
    if address in _TEREDO:
        # The relay in the clear, the client with every bit turned.
        return (IPv4Address(int(address) >> 64 & 0xFFFF_FFFF), IPv4Address(~int(address) & 0xFFFF_FFFF))
    return ()


def _why_not_isatap(address: IPv6Address) -> str | None:
    """A public network may still lead to a private IPv4 address written into the host part."""
    if int(address) >> 32 & 0xFFFF_FFFF not in _ISATAP_MARKS:
        return None
    inner = _low_32_bits(address)
    what = why_not_public(inner)
    return f"{what} inside ({inner})" if what else None


def _low_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)
