"""Parsing only the head of a log line gives the same fields as decoding the line."""

import json
from pathlib import Path

import pytest

from agent.protocol.codec import to_json, to_line
from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, WarningRaised
from agent.sessions.log.log_index import parse_head, read_lines

PLAIN = Envelope(seq=4, ts="2025-01-01T00:00:00.000Z", session_id="s", run_id="r", event=WarningRaised(message="x"))
STEP = Envelope(
    seq=5, ts="t", session_id="s", run_id="r", step_id="a b", attempt=2, event=MessageAdded(role="user", content="y")
)
ODD = Envelope(
    seq=6, ts="t", session_id="s", run_id="r", step_id='q"\\é', attempt=1, event=MessageAdded(role="user", content="z")
)


@pytest.mark.parametrize("envelope", [PLAIN, STEP, ODD])
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_head_has_the_fields_of_the_event(envelope: Envelope, is_ours: bool) -> None:
    raw = to_line(envelope) if is_ours else json.dumps(to_json(envelope), separators=(",", ":")).encode() + b"\n"
    line = parse_head(raw)
    assert line
    assert (line.type, line.ts, line.seq) == (envelope.event.type, envelope.ts, envelope.seq)
    assert (line.run_id, line.step_id, line.envelope()) == (envelope.run_id, envelope.step_id, envelope)


@pytest.mark.parametrize("raw", [b"", b"\n", b"[]\n", b"{}\n", b"nonsense\n", to_line(PLAIN)[:-1], to_line(PLAIN)[:40]])
def test_an_incomplete_or_invalid_line_has_no_head(raw: bytes) -> None:
    assert parse_head(raw) is None


def test_lines_are_read_from_an_offset_and_have_their_end_offset(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(to_line(PLAIN) + b"torn\n" + to_line(STEP))
    first, second = read_lines(path)
    assert (first.end, second.end) == (len(to_line(PLAIN)), path.stat().st_size)
    assert [line.seq for line in read_lines(path, first.end)] == [5]


def test_lines_of_one_type_are_found_in_any_json_form(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    strange = json.dumps(to_json(ODD), separators=(",", ":")).encode() + b"\n"
    path.write_bytes(to_line(PLAIN) + to_line(STEP) + strange + to_line(PLAIN))
    assert [line.seq for line in read_lines(path, only="message")] == [5, 6]
    assert [line.seq for line in read_lines(path, only="warning")] == [4, 4]


def test_a_line_nested_too_deeply_is_not_an_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    deep = to_line(PLAIN)[:-2] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    path.write_bytes(deep + to_line(STEP))
    assert [line.envelope() for line in read_lines(path)] == [None, STEP]
