"""Tables fit any terminal, whatever their cells contain; ages, sizes and durations are formatted."""

import re
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent.vocabulary.errors import UsageError
from agent.vocabulary.status import Subtype
from cli.durations import parse_days
from cli.pages.columns import Column, render_rows, render_table
from cli.pages.pages import color_page, format_age, format_size, indent_lines, one_line, short_ids, status_word
from cli.screen.colors import Paint

CELLS = st.lists(st.text(max_size=60), min_size=3, max_size=3)
COLUMNS = st.lists(
    st.builds(
        Column, header=st.just("HEAD"), cells=CELLS, min_width=st.integers(0, 12), drop_priority=st.integers(0, 3)
    ),
    min_size=1,
    max_size=6,
)


@given(COLUMNS, st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal_or_has_control_characters(columns: list[Column], width: int) -> None:
    lines = render_table(columns, width)
    assert len(lines) == 4
    assert all(cell_len(line) <= width for line in lines)
    assert all(char >= " " and not "\x7f" <= char <= "\x9f" for line in lines for char in line)


@given(COLUMNS)
def test_without_a_terminal_nothing_is_clipped_and_there_is_no_header(columns: list[Column]) -> None:
    lines = render_table(columns, None)
    assert len(lines) == 3
    has_ellipsis = any("…" in cell for column in columns for cell in column.cells)
    assert has_ellipsis or not any("…" in line for line in lines)


def test_long_cells_are_clipped_before_columns_are_dropped() -> None:
    columns = [
        Column(header="ID", cells=["abc"]),
        Column(header="N", cells=["12"], drop_priority=1),
        Column(header="FOLDER", cells=["/a/long/folder/name"], min_width=8, drop_priority=2),
        Column(header="TITLE", cells=["a title of some length"], min_width=8),
    ]
    assert render_table(columns, 60)[1] == "abc  12  /a/long/folder/name  a title of some length"
    assert render_table(columns, 40)[1] == "abc  12  /a/long/folde…  a title of som…"
    assert render_table(columns, 24)[1] == "abc  12  a title of som…"
    assert render_table(columns, 14)[1] == "abc  a title…"


@pytest.mark.parametrize(
    ("minutes", "age"),
    [(0.5, "now"), (5, "5m"), (90, "1h"), (60 * 30, "1d"), (60 * 24 * 20, "2w"), (60 * 24 * 800, "2y")],
)
def test_ages_are_short(minutes: float, age: str) -> None:
    now = datetime(2025, 6, 1, tzinfo=UTC)
    then = datetime.fromtimestamp(now.timestamp() - minutes * 60, UTC)
    assert format_age(then.isoformat().replace("+00:00", "Z"), now) == age


@pytest.mark.parametrize("timestamp", ["", "x", "2025-01-01T00:00:00"])
def test_an_invalid_time_has_no_age(timestamp: str) -> None:
    assert format_age(timestamp) == ""


def test_sizes_and_texts_are_short_and_safe() -> None:
    assert [format_size(n) for n in (0, 999, 1500, 42_000, 3_400_000, 5_000_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "42 kB",
        "3.4 MB",
        "5.0 GB",
    ]
    assert one_line("a\n b\x1b[31m c" + "d" * 10, 8) == "a b cdd…"
    assert indent_lines("a\n\n  b\x07\n") == ["  a", "", "    b"]


def test_durations_are_parsed_or_refused() -> None:
    assert (parse_days("12h", "--x"), parse_days("30d", "--x"), parse_days("4w", "--x")) == (0.5, 30, 28)
    for text in ("", "d", "30", "-1d", "1.5d", "99999d", "30m"):
        with pytest.raises(UsageError, match="--x"):
            parse_days(text, "--x")


@given(
    st.lists(
        st.tuples(st.sampled_from(["ok", "--"]), st.text("abc", max_size=8), st.text("ab ", max_size=90)), min_size=1
    )
)
def test_the_last_cell_of_a_row_is_wrapped(cells: list[tuple[str, str, str]]) -> None:
    lines = render_rows(cells, 40)
    assert all(cell_len(line) <= 40 for line in lines)
    assert "".join("".join(row).replace(" ", "") for row in cells) == "".join(lines).replace(" ", "")


def test_text_without_enough_room_goes_on_its_own_line() -> None:
    assert render_rows([("  /budget [TOKENS|$USD]", "Show or set what a run may cost.")], 40) == [
        "  /budget [TOKENS|$USD]",
        "    Show or set what a run may cost.",
    ]
    assert render_rows([("ok", "a text of some length")], None) == ["ok  a text of some length"]


def test_headers_and_cells_are_colored_without_changing_the_columns() -> None:
    columns = [
        Column(header="ID", cells=["a", "bb"], tone="accent"),
        Column(header="STATUS", cells=["success", "error_task"], tones=["good", "bad"]),
        Column(header="TITLE", cells=["one", "a longer title than there is room for"], min_width=8),
    ]
    plain, colored = (render_table(columns, 30, Paint(has_color=has_color)) for has_color in (False, True))
    assert plain == render_table(columns, 30)
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in colored] == plain
    assert colored[1].startswith("\x1b[36ma   \x1b[0m\x1b[32msuccess") and "\x1b[31merror_task" in colored[2]


def test_ids_are_short_where_that_is_unique() -> None:
    one, same_end, named = "run-20260101000000-abcdef", "run-20270101000000-abcdef", "my-work"
    assert short_ids([one, one, "20260101-000000-012345", named]) == ["abcdef", "abcdef", "012345", named]
    assert short_ids([one, same_end]) == [one, same_end]
    assert short_ids(["undo-20261118002645-b81966"]) == ["b81966"]


def test_names_statuses_and_fields_of_a_page_are_told_apart() -> None:
    page = {
        "cmds  go on": "<36 cmds>  go on",
        "run-1  2026-11-18 02:34  success, exit 0": "<36 run-1>  2026-11-18 02:34  <32 success, exit 0>",
        "run-2  error_task, exit 1": "<36 run-2>  <31 error_task, exit 1>",
        "partial, exit 1": "<33 partial, exit 1>",
        "  folder   /srv": "<2   folder>   /srv",
        "  session s-1, run-1": "<2   session> s-1, run-1",
        "  time limit: 120 s": "<2   time limit:> 120 s",
        "  ok in 0.5s": "  <32 ok in 0.5s>",
        "  Read a text file.": "  Read a text file.",
        "{": "{",
        "plan:": "<1 plan:>",
        "  STEP  STATUS  TIME": "<2   STEP  STATUS  TIME>",
        "  a     ok      1.0s": "<36   a     ><32 ok>      1.0s",
    }
    colored = [re.sub("\x1b\\[0m", ">", line) for line in color_page(page, Paint(has_color=True))]
    assert [re.sub("\x1b\\[([0-9]+)m", r"<\1 ", line) for line in colored] == list(page.values())


def test_statuses_are_words_that_leave_room_for_the_request() -> None:
    words = [status_word(status) for status in (*get_args(Subtype), "interrupted", "running", "unreadable")]
    assert words[:4] == ["success", "partial", "failed", "no key"]
    assert all(len(word) <= 15 and "_" not in word for word in words)
