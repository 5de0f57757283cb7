"""Streamed Markdown: nothing is lost or repeated, and no block is split."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.screen.colors import Paint
from cli.screen.markdown import render_markdown
from cli.screen.markdown_stream import MarkdownStream
from tests.examples import examples

TEXT = "# Title\n\nSome **bold** words.\n\n```python\nfirst = 1\n\nsecond = 2\n```\nAfter it.\n\n- one\n- two"
pieces = st.lists(st.sampled_from(["a", "\n", "\n\n", "```", "`", "~~~\n", "# x", "- y\n", " ", "```\n"]), max_size=40)


@given(pieces)
def test_every_fragment_is_returned_once_and_in_order(fragments: list[str]) -> None:
    stream = MarkdownStream()
    emitted = "".join(stream.feed(fragment) for fragment in fragments)
    assert emitted + stream.pending == "".join(fragments)
    assert emitted.rstrip() + (stream.finish("".join(fragments)) or "") == "".join(fragments)


@given(st.integers(1, 7))
def test_blocks_are_complete_however_the_text_is_split(size: int) -> None:
    stream = MarkdownStream()
    blocks = [block for at in range(0, len(TEXT), size) if (block := stream.feed(TEXT[at : at + size]))]
    assert "".join(blocks) + stream.pending == TEXT
    for block in blocks:
        assert block.count("```") in (0, 2)
        assert block.endswith("\n")


LISTS = """\
Before.

1. First item

   with a second paragraph

2. Second item

   ```sh
   ls
   ```

   and an end
- loose

- items

| a | b |
|---|---|
| 1 | 2 |
After the table.
> quoted
"""


@examples(40)
@given(st.integers(1, 50), st.sampled_from([TEXT, LISTS, TEXT + "\n\n" + LISTS, "\n\nlate\n\n\n\n# Title\ntext"]))
def test_an_answer_looks_the_same_however_it_is_split(size: int, text: str) -> None:
    stream = MarkdownStream()
    parts = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
    parts.append(stream.finish(text) or "")
    paint = Paint(has_color=False)
    shown = "\n".join(render_markdown(part, width=60, paint=paint) for part in parts if part.strip())
    assert shown == render_markdown(text, width=60, paint=paint)
    assert "\n\n\n" not in shown and shown == shown.strip("\n") + "\n"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_color_does_not_change_the_text(theme: str) -> None:
    text = f"{TEXT}\n\n{LISTS}"
    painted = render_markdown(text, width=60, paint=Paint(has_color=True, theme=theme))
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in painted.splitlines()]
    assert bare == render_markdown(text, width=60, paint=Paint(has_color=False)).splitlines()
    # A background color would be a dark box in a light window, or the reverse.
    assert not re.search(r"\x1b\[(?:[0-9;]*;)?4[0-9]", painted)


def test_an_address_is_not_repeated_behind_itself() -> None:
    text = "See <https://example.org/a> and [the guide](https://example.org/b)."
    shown = render_markdown(text, width=90, paint=Paint(has_color=False))
    assert shown == "See https://example.org/a and the guide (https://example.org/b).\n"


def test_indented_blocks_stay_with_their_list_item() -> None:
    shown = render_markdown(LISTS, width=60, paint=Paint(has_color=False)).splitlines()
    assert [line for line in shown if "item" in line or "paragraph" in line or "and an end" in line] == [
        " 1. First item",
        "    with a second paragraph",
        " 2. Second item",
        "    and an end",
        " • items",
    ]


def test_trailing_blank_lines_are_ignored() -> None:
    stream = MarkdownStream()
    assert stream.feed("the first\n\nand the last\n\n") == "the first\n\n"
    assert (stream.finish("the first\n\nand the last") or "").strip() == "and the last"


def test_a_final_text_that_differs_is_reported() -> None:
    stream = MarkdownStream()
    stream.feed("one thing\n\nand more")
    assert stream.finish("another thing") is None


def test_markdown_fits_the_width_and_works_without_color() -> None:
    text = render_markdown(TEXT + "\n\n" + "word " * 60, width=40, paint=Paint(has_color=False))
    assert max(map(len, text.splitlines())) <= 40
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if "Title" in line] == ["Title"]


def test_escape_sequences_in_an_answer_do_not_reach_the_terminal() -> None:
    text = render_markdown("a\x1b[2Jb \x1b]0;title\x07c", width=40, paint=Paint(has_color=True))
    assert ("\x1b[2J" in text, "\x1b]0" in text) == (False, False)
