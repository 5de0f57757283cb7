"""Normalize host names: case-folded, internationalized names in punycode, IPv4 only in dotted decimal form."""

import re
import unicodedata
from ipaddress import IPv6Address

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.web.addresses.public_ranges import parse_ip

MAX_HOST_CHARS = 253
MAX_LABEL_CHARS = 63

_ASCII_LABEL = lazy_pattern(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?", re.ASCII)
# Letters and marks by Unicode category that render as nothing.
_INVISIBLE = lazy_pattern("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
_NUMBER = lazy_pattern(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


BAD_CHARACTERS = "the host name contains invalid characters"
BAD_ENCODING = "the host name is not validly encoded"


class HostInvalid(ValueError):
    """The text is not a host, or different programs would parse it differently."""


def normalize_host(text: str) -> str:
    """Return the canonical form of a host name or address; IPv6 without brackets."""
    if text.startswith("[") or ":" in text:
        return _normalize_ipv6(text)
    folded = _fold_case(text).replace("\u3002", ".")
    host = ".".join(_normalize_label(label) for label in folded.removesuffix(".").split("."))
    if len(host) > MAX_HOST_CHARS:
        raise HostInvalid("the host name is too long")
    last = host.rpartition(".")[2]
    if not _NUMBER.fullmatch(last):
        _check_tld(last)
        return host
    # Some programs take a name that ends in a number for an address, so it must be one for all of them.
    if parse_ip(host) is None or host != text:
        raise HostInvalid("a numeric address must be written as four plain decimal numbers")
    return host


def _check_tld(label: str) -> None:
    """Refuse a top-level domain of digits in any script: programs could parse it as a number, and none exists."""
    tld = _decode_label(label) if label.startswith("xn--") else label[0]
    if not any(unicodedata.category(char).startswith("L") or char == "_" for char in tld):
        raise HostInvalid("the host name has an invalid top-level domain")


def _normalize_ipv6(text: str) -> str:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    address = parse_ip(inner) if inner.isascii() else None
    if not isinstance(address, IPv6Address) or address.scope_id is not None:
        raise HostInvalid("the host is not an IPv6 address")
    return address.compressed


def _normalize_label(label: str) -> str:
    if not label:
        raise HostInvalid("the host name is empty or has an empty label")
    if not label.isascii():
        return _encode_label(label)
    if len(label) > MAX_LABEL_CHARS or not _ASCII_LABEL.fullmatch(label):
        raise HostInvalid(BAD_CHARACTERS)
    if label.startswith("xn--") and _encode_label(_decode_label(label)) != label:
        raise HostInvalid(BAD_ENCODING)
    return label


def _encode_label(label: str) -> str:
    if len(label) > MAX_LABEL_CHARS or _fold_case(label) != label or not all(map(_is_letter, label)):
        raise HostInvalid(BAD_CHARACTERS)
    if label[2:4] == "--" or _INVISIBLE.search(label):
        raise HostInvalid(BAD_ENCODING)
    if label.startswith("-") or label.endswith("-") or unicodedata.category(label[0]).startswith("M"):
        raise HostInvalid("the host name starts or ends with a character that is not allowed there")
    encoded = "xn--" + label.encode("punycode").decode("ascii")
    if len(encoded) > MAX_LABEL_CHARS or label.isascii():
        raise HostInvalid(BAD_ENCODING)
    return encoded


def _decode_label(label: str) -> str:
    try:
        return label.removeprefix("xn--").encode("ascii").decode("punycode")
    except (ValueError, OverflowError) as error:
        raise HostInvalid(BAD_ENCODING) from error


def _fold_case(text: str) -> str:
    # Per character, because str.lower() depends on neighbours (the Greek final sigma).
    lowered = "".join(char.lower() for char in unicodedata.normalize("NFKC", text))
    return unicodedata.normalize("NFKC", lowered)


def _is_letter(char: str) -> bool:
    return char in "-_" or unicodedata.category(char) in ("Ll", "Lo", "Lm", "Mn", "Mc", "Nd")
