"""Long lists of hostile and harmless addresses: all hostile ones are refused, all harmless ones pass."""

import re
from collections.abc import Sequence

import pytest

from tests.house.source_tree import ROOT
from tooling.web.addresses.url_check import AddressRefused, Resolver, parse_url, resolve_public

FOLDER = ROOT / "tests" / "data" / "addresses"
PUBLIC = "93.184.216.34"
_CHARACTER = r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"


def lines(name: str) -> list[str]:
    return [line for line in (FOLDER / name).read_text("utf-8").split("\n") if line and not line.startswith("# ")]


def expand_escapes(line: str) -> str:
    """Expand the escapes and `{text*count}` repetitions in a line."""
    line = re.sub(r"\{([^*{}]+)\*(\d+)\}", lambda found: found[1] * int(found[2]), line)
    return re.sub(_CHARACTER, lambda found: found[0].encode().decode("unicode_escape"), line)


def addresses(name: str) -> list[str]:
    return [address for line in lines(name) for address in line.split()]


HOSTILE, HARMLESS = lines("hostile_urls.txt"), [line.split("\t") for line in lines("harmless_urls.txt")]


def test_the_lists_are_long_enough() -> None:
    assert len(HOSTILE) > 500
    assert len(HARMLESS) > 150


def is_refused(url: str) -> bool:
    try:
        parse_url(url)
    except AddressRefused:
        return True
    return False


def test_a_hostile_url_is_refused_before_resolution() -> None:
    assert [line for line in HOSTILE if not is_refused(expand_escapes(line))] == []


def test_a_harmless_url_has_a_stable_canonical_form() -> None:
    for line, expected in HARMLESS:
        url = expand_escapes(line)
        canonical = parse_url(url).url
        assert canonical == (url if expected == "=" else expected)
        assert parse_url(canonical).url == canonical


def resolver(*found: str) -> Resolver:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    return resolve


async def test_one_non_public_address_refuses_the_name() -> None:
    for bad in addresses("hostile_answers.txt"):
        for found in ((bad,), (PUBLIC, bad), (bad, PUBLIC), (PUBLIC, "2606:4700::1111", bad, PUBLIC)):
            with pytest.raises(AddressRefused):
                await resolve_public("name.example.com", 443, resolver=resolver(*found))


async def test_public_addresses_are_returned() -> None:
    for address in addresses("harmless_answers.txt"):
        found = await resolve_public("name.example.com", 443, resolver=resolver(PUBLIC, address, PUBLIC))
        assert found[0] == PUBLIC
        assert len(found) == (1 if address == PUBLIC else 2)
