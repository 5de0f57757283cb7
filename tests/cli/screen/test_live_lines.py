"""Live lines are drawn, updated and erased without moving anything else on the screen."""

import pyte
from hypothesis import given
from hypothesis import strategies as st

from cli.repl.ui.terminal_features import reflows_lines
from cli.screen.ascii_fallback import supports_unicode, to_ascii
from cli.screen.live_lines import LiveLines, cursor_up

line = st.text(alphabet="abc漢é ", min_size=0, max_size=30)


class FakeTerminal:
    """A terminal emulator that live lines are written to."""

    def __init__(self, columns: int = 40, rows: int = 30) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.Stream(self.screen)

    def write(self, text: str) -> None:
        self.stream.feed(text)

    def lines(self) -> list[str]:
        return [text.rstrip() for text in self.screen.display if text.strip()]


@given(st.lists(line, min_size=1, max_size=6), st.data(), st.integers(0, 3))
def test_lines_are_updated_in_place_and_the_cursor_stays(before: list[str], data: st.DataObject, below: int) -> None:
    after = data.draw(st.lists(line, min_size=len(before), max_size=len(before)))
    terminal, lines = FakeTerminal(), LiveLines()
    terminal.write("above\r\n" + lines.draw(before) + "\r\n" * below + "prompt\r" + cursor_up(len(before) + below))
    row = terminal.screen.cursor.y
    terminal.write(lines.update(after))
    assert (terminal.screen.cursor.y, terminal.screen.cursor.x) == (row, 0)
    assert terminal.lines() == ["above", *(text.rstrip() for text in after if text.strip()), "prompt"]


@given(st.lists(line, max_size=6))
def test_lines_are_erased_with_everything_below(before: list[str]) -> None:
    terminal, lines = FakeTerminal(), LiveLines()
    terminal.write("above\r\n" + lines.draw(before) + lines.erase() + "after")
    assert terminal.lines() == ["above", "after"]
    assert lines.drawn == []


def test_a_line_that_fills_its_row_keeps_its_last_cell() -> None:
    lines = LiveLines()
    lines.draw(["x" * 40])
    # Without wrapping, a real terminal leaves the cursor on the last cell; the emulator moves it on.
    assert "y\x1b[K" not in lines.update(["y" * 40])


def test_only_changed_lines_are_written() -> None:
    lines = LiveLines()
    lines.draw(["one", "two", "three"])
    written = lines.update(["one", "2", "three"])
    assert "2" in written and "one" not in written and "three" not in written


def test_symbols_have_ascii_replacements_of_the_same_width() -> None:
    drawn = "✓ a │ └─┬ … 3 more · ⠹ █░ » “quoted” → ┏━┓"
    plain = to_ascii(drawn)
    assert plain.isascii()
    assert len(plain) == len(drawn)
    assert to_ascii("漢字") == "漢字"


def test_unicode_support_follows_the_locale_variables() -> None:
    assert supports_unicode({"LANG": "de_DE.UTF-8"})
    assert supports_unicode({"LC_ALL": "C.utf8", "LANG": "C"})
    assert not supports_unicode({"LC_ALL": "C", "LANG": "en_US.UTF-8"})
    assert not supports_unicode({"LANG": "de_DE.ISO-8859-1"})
    assert not supports_unicode({"LANG": "C", "LC_CTYPE": "C.UTF-8"})
    assert supports_unicode({"LC_CTYPE": "C.UTF-8"})
    assert supports_unicode({})


def test_only_known_terminals_are_expected_to_rewrap_lines() -> None:
    assert reflows_lines({"TERM": "xterm-256color", "VTE_VERSION": "7200"})
    assert reflows_lines({"TERM": "tmux-256color"})
    assert reflows_lines({"TERM": "screen-256color", "TMUX": "/tmp/x"})
    assert reflows_lines({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"})
    assert not reflows_lines({"TERM": "xterm-256color"})
    assert not reflows_lines({"TERM": "screen", "VTE_VERSION": "7200"})
    assert not reflows_lines({"TERM": "linux"})
