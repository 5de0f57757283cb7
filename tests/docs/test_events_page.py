"""The event reference matches the event classes."""

import re

import jsonschema
import pytest

from tests.docs.event_schema import ENVELOPE, FILE, Schema, schema, text, type_text
from tests.house.source_tree import ROOT

PAGE = (ROOT / "docs" / "events.md").read_text()
DEFINITIONS = schema()["$defs"]
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


def rows(heading: str, page: str = PAGE) -> list[tuple[str, str]]:
    """Return name and type of every field that the section lists."""
    section = re.split(r"^#{2,3} ", page.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return [(name, kind) for name, kind, _ in _ROW.findall(section)]


def expected(definition: Schema) -> list[tuple[str, str]]:
    """Return name and type of every field of a definition but its own type."""
    fields: dict[str, Schema] = definition["properties"]  # type: ignore[assignment]
    required = definition["required"]
    listed = [(name, field) for name, field in fields.items() if not (name == "type" and "const" in field)]
    return [(name, type_text(field) + ("" if name in required else ", optional")) for name, field in listed]  # type: ignore[operator]


def test_the_schema_is_up_to_date() -> None:
    assert FILE.read_text() == text(), "run: python -m tests.docs.event_schema"


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.Draft202012Validator.check_schema(schema(is_strict=True))


@pytest.mark.parametrize("name", [name for name in DEFINITIONS if name != ENVELOPE])
def test_every_event_and_record_is_described_field_by_field(name: str) -> None:
    heading = f"### {name}" if name[0].isupper() else f"### `{name}`"
    assert rows(heading) == expected(DEFINITIONS[name])


def test_the_fields_of_every_event_are_described() -> None:
    assert [name for name, _ in rows("## Every event")] == list(DEFINITIONS[ENVELOPE]["properties"])


def test_no_event_is_described_that_does_not_exist() -> None:
    assert set(re.findall(r"^### `?([\w.]+)`?$", PAGE, re.MULTILINE)) == set(DEFINITIONS) - {ENVELOPE}


def test_a_misspelled_field_on_the_page_is_noticed() -> None:
    broken = PAGE.replace("| `revision` | integer |", "| `revison` | integer |")
    assert rows("### `plan`", broken) != expected(DEFINITIONS["plan"])
