"""Table of public IP addresses; the standard library's changes between versions."""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

IPAddress: TypeAlias = IPv4Address | IPv6Address

PRIVATE = "private"

_V4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", PRIVATE),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's internal service"),
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
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        # The local operator decides how such an address is translated, so it cannot be judged.
        ("64:ff9b:1::/48", "for local translation"),
        ("100::/64", "for discarding"),
        ("100:0:0:1::/64", "for protocols"),
        ("2001:db8::/32", "for documentation"),
        ("2001::/23", "for protocols"),
        ("3ffe::/16", "a retired experiment"),
        ("3fff::/20", "for documentation"),
        ("5f00::/16", "for segment routing"),
        ("fd00:ec2::254/128", "a cloud's internal service"),
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
_ISATAP_MARKERS = (0x0000_5EFE, 0x0200_5EFE)


def why_not_public(address: IPAddress) -> str | None:
    """Return why an address is not public, or None; IPv4 addresses embedded in IPv6 are checked too."""
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _V4 if address in network), None)
    if address.scope_id is not None:
        return "bound to one interface"
    if int(address) > 1 and (embedded := _embedded_ipv4(address)):
        reason = next((_embeds(inner, why) for inner in embedded if (why := why_not_public(inner))), None)
        return reason or _why_not_isatap(address)
    reason = next((reason for network, reason in _V6 if address in network), None)
    if reason is None and address not in _PUBLIC_V6:
        return "outside the public space"
    return reason or _why_not_isatap(address)


def unmap_ipv4(address: IPAddress) -> IPAddress:
    """Return the IPv4 address that the kernel connects to for an IPv4-mapped one, else the address itself."""
    if isinstance(address, IPv6Address) and address in _IPV4_MAPPED:
        return _low_32_bits(address)
    return address


def is_loopback(address: IPAddress) -> bool:
    return unmap_ipv4(address).is_loopback


def is_private(address: IPAddress) -> bool:
    """Return whether an address is in a private range (RFC 1918, unique local)."""
    return why_not_public(unmap_ipv4(address)) == PRIVATE


def parse_ip(text: str) -> IPAddress | None:
    """Parse an IP address in canonical form; None for anything else, including `127.1` and `0177.0.0.1`."""
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
        # The server address is plain, the client address has every bit inverted.
        return (IPv4Address(int(address) >> 64 & 0xFFFF_FFFF), IPv4Address(~int(address) & 0xFFFF_FFFF))
    return ()


def _why_not_isatap(address: IPv6Address) -> str | None:
    """Check the IPv4 address that ISATAP embeds in the host part, even of a public network."""
    if int(address) >> 32 & 0xFFFF_FFFF not in _ISATAP_MARKERS:
        return None
    inner = _low_32_bits(address)
    reason = why_not_public(inner)
    return _embeds(inner, reason) if reason else None


def _embeds(inner: IPv4Address, reason: str) -> str:
    return f"embeds {inner}: {reason}"


def _low_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)
