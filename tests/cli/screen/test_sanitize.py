"""What reaches a terminal as text: words, and no sequence but ours."""

import io
import json

import pytest

from cli.screen.colors import Paint
from cli.screen.markdown import render_markdown
from cli.screen.sanitize import PlainStream, sanitize, to_safe_json
from tests.cli.screen.hostile import HOSTILE, find_foreign

WAYS = {
    "text": HOSTILE,
    "code": f"```sh\n{HOSTILE}\n```",
    "inline code": f"`{HOSTILE}`",
    "link": f"[{HOSTILE}](http://x/{HOSTILE})",
    "table": f"|{HOSTILE}|b|\n|-|-|\n|{HOSTILE}|d|",
    "heading": f"# {HOSTILE}",
    "html": f"<b>{HOSTILE}</b>",
    "named characters": "&#27;[2J &#x9b;2J &#13;&#8;&#8238;&#x2066;&zwnj;&ZeroWidthSpace;&rlm;&shy;",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_colour", [True, False])
def test_an_answer_cannot_get_a_sequence_of_its_own_through(way: str, has_colour: bool) -> None:
    shown = render_markdown(WAYS[way], width=60, paint=Paint(has_colour=has_colour))
    assert find_foreign(shown.encode()) == []
    assert "\x1b[8m" not in shown


def test_letters_that_are_written_with_joiners_and_marks_stay() -> None:
    text = "می‌خواهم 👩‍💻 ❤️ é नमस्ते שלום"
    assert sanitize(text) == text


def test_json_is_the_same_data_and_shows_nothing_that_a_terminal_obeys() -> None:
    data = {HOSTILE: [HOSTILE, "é ❤️"]}
    text = to_safe_json(data, indent=2)
    assert json.loads(text) == data
    assert find_foreign(text.encode()) == []
    assert "é ❤️" in text


def test_a_stream_for_words_lets_no_sequence_through_in_pieces() -> None:
    buffer = io.BytesIO()
    stream = PlainStream(buffer, "utf-8", "backslashreplace", write_through=True)
    for mark in (*HOSTILE, "\ud800", "words\n"):
        stream.write(mark)
    assert find_foreign(buffer.getvalue()) == []
    assert buffer.getvalue().endswith(b"words\n")
