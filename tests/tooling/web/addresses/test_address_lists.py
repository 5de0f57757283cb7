"""Long lists of addresses, written apart from the check: none of the bad get through, all of the good do."""

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
    """Return a line with its escapes and repetitions as what they stand for."""
    line = re.sub(r"\{([^*{}]+)\*(\d+)\}", lambda found: found[1] * int(found[2]), line)
    return re.sub(_CHARACTER, lambda found: found[0].encode().decode("unicode_escape"), line)


def answers(name: str) -> list[str]:
    return [answer for line in lines(name) for answer in line.split()]


HOSTILE, HARMLESS = lines("hostile_urls.txt"), [line.split("\t") for line in lines("harmless_urls.txt")]


def test_the_lists_are_long() -> None:
    assert len(HOSTILE) > 500
    assert len(HARMLESS) > 150


def is_refused(url: str) -> bool:
    try:
        parse_url(url)
    except AddressRefused:
        return True
    return False


def test_a_hostile_address_is_refused_before_anything_is_resolved() -> None:
    assert [line for line in HOSTILE if not is_refused(expand_escapes(line))] == []


def test_a_harmless_address_gets_its_one_spelling_and_keeps_it() -> None:
    for line, spelling in HARMLESS:
        url = expand_escapes(line)
        found = parse_url(url).url
        assert found == (url if spelling == "=" else spelling)
        assert parse_url(found).url == found


def resolver(*found: str) -> Resolver:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return found

    return resolve


async def test_one_answer_that_is_not_public_refuses_the_name() -> None:
    for answer in answers("hostile_answers.txt"):
        for found in ((answer,), (PUBLIC, answer), (answer, PUBLIC), (PUBLIC, "2606:4700::1111", answer, PUBLIC)):
            with pytest.raises(AddressRefused):
                await resolve_public("name.example.com", 443, resolver=resolver(*found))


async def test_public_answers_are_what_is_connected_to() -> None:
    for answer in answers("harmless_answers.txt"):
        found = await resolve_public("name.example.com", 443, resolver=resolver(PUBLIC, answer, PUBLIC))
        assert found[0] == PUBLIC
        assert len(found) == (1 if answer == PUBLIC else 2)
