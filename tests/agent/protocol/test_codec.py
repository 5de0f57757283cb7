"""Encoding and decoding events."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.protocol.codec import CodecError, from_line, to_json, to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import Event, MessageAdded, RunCompleted, StepCompleted, WarningRaised
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage

# JSON has no other numbers.
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
_JSON_OBJECTS = st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.booleans(), st.none()))
st.register_type_strategy(PlanStep, lambda _: st.builds(PlanStep, args=_JSON_OBJECTS))


def envelope(event: object, **fields: object) -> Envelope:
    return Envelope(seq=1, ts="2026-01-01T00:00:00.000Z", session_id="s", run_id="r", event=event, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("event_type", get_args(Event), ids=lambda event: event.type)
@given(data=st.data())
def test_every_event_survives_a_round_trip(event_type: type, data: st.DataObject) -> None:
    event = data.draw(
        st.builds(event_type, structured_output=st.none())
        if event_type is RunCompleted
        else st.builds(event_type, **_plain(event_type))
    )
    before = envelope(event, step_id="s1", attempt=2)
    assert to_json(from_line(to_line(before))) == to_json(before)


def _plain(event_type: type) -> dict[str, st.SearchStrategy[object]]:
    """Tool inputs are any JSON object."""
    return {"input": _JSON_OBJECTS} if "input" in getattr(event_type, "__slots__", ()) else {}


def test_a_line_has_the_format_number_and_the_envelope() -> None:
    line = json.loads(to_line(envelope(WarningRaised(message="x"))))
    assert line == {
        "v": 1, "type": "warning", "ts": "2026-01-01T00:00:00.000Z", "seq": 1, "session_id": "s", "run_id": "r",
        "message": "x",
    }  # fmt: skip


def test_a_step_event_has_step_and_attempt() -> None:
    line = to_json(envelope(StepCompleted(status="ok", summary="", usage=Usage()), step_id="s1"))
    assert (line["step_id"], line["attempt"]) == ("s1", 1)


def test_a_fragment_is_marked_and_a_complete_message_is_not() -> None:
    assert to_json(envelope(MessageAdded(role="assistant", content="x", delta=True)))["delta"] is True
    assert "delta" not in to_json(envelope(MessageAdded(role="assistant", content="x")))


def test_invalid_unicode_is_encoded_as_a_valid_line() -> None:
    line = to_line(envelope(WarningRaised(message="bad \udcff byte")))
    assert json.loads(line)["message"] == "bad \udcff byte"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "not JSON"),
        (b"[]", "not an object"),
        (b'{"v": 99, "type": "warning"}', "format 99"),
        (b'{"v": 1, "type": "nonsense"}', "nonsense"),
        (b'{"v": 1, "type": "warning"}', "message"),
    ],
)
def test_an_invalid_line_is_rejected_with_the_reason(line: bytes, problem: str) -> None:
    with pytest.raises(CodecError, match=problem):
        from_line(line)


def test_fields_of_a_newer_version_are_ignored() -> None:
    line = json.loads(to_line(envelope(WarningRaised(message="x"))))
    assert from_line(json.dumps({**line, "later": 1})).event == WarningRaised(message="x")
