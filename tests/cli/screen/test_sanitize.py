"""Untrusted text reaches a terminal without control sequences."""

import io
import json

import pytest

from cli.screen.colors import Paint
from cli.screen.markdown import render_markdown
from cli.screen.sanitize import PlainStream, sanitize, to_safe_json
from tests.cli.screen.hostile import HOSTILE, find_foreign

CARRIERS = {
    "text": HOSTILE,
    "code": f"```sh\n{HOSTILE}\n```",
    "inline code": f"`{HOSTILE}`",
    "link": f"[{HOSTILE}](http://x/{HOSTILE})",
    "table": f"|{HOSTILE}|b|\n|-|-|\n|{HOSTILE}|d|",
    "heading": f"# {HOSTILE}",
    "html": f"<b>{HOSTILE}</b>",
    "named characters": "&#27;[2J &#x9b;2J &#13;&#8;&#8238;&#x2066;&zwnj;&ZeroWidthSpace;&rlm;&shy;",
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("has_color", [True, False])
def test_an_answer_cannot_smuggle_in_control_sequences(carrier: str, has_color: bool) -> None:
    shown = render_markdown(CARRIERS[carrier], width=60, paint=Paint(has_color=has_color))
    assert find_foreign(shown.encode()) == []
    assert "\x1b[8m" not in shown


def test_joiners_and_combining_marks_are_preserved() -> None:
    text = "می‌خواهم 👩‍💻 ❤️ é नमस्ते שלום"
    assert sanitize(text) == text


def test_safe_json_has_the_same_data_and_no_control_sequences() -> None:
    data = {HOSTILE: [HOSTILE, "é ❤️"]}
    text = to_safe_json(data, indent=2)
    assert json.loads(text) == data
    assert find_foreign(text.encode()) == []
    assert "é ❤️" in text


def test_a_plain_stream_also_stops_sequences_written_in_pieces() -> None:
    buffer = io.BytesIO()
    stream = PlainStream(buffer, "utf-8", "backslashreplace", write_through=True)
    for mark in (*HOSTILE, "\ud800", "words\n"):
        stream.write(mark)
    assert find_foreign(buffer.getvalue()) == []
    assert buffer.getvalue().endswith(b"words\n")
