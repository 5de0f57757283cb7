"""OSC 8 links: only where the terminal is known to support them, only for URLs and existing files."""

import re
from pathlib import Path

import pytest

from cli.screen.links import link_writer, supports_links

KITTY = {"TERM": "xterm-kitty"}


def links(text: str, folder: Path, columns: int = 80, **environ: str) -> list[tuple[str, str]]:
    linked = link_writer(environ or KITTY, folder, lambda: columns)(text)
    assert re.sub(r"\x1b\]8;;[^\x1b]*\x1b\\", "", linked) == text
    return [
        (target.partition(":")[0], shown)
        for target, shown in re.findall(r"\x1b\]8;;([^\x1b]+)\x1b\\(.*?)\x1b\]8;;\x1b\\", linked)
    ]


@pytest.mark.parametrize(
    ("environ", "is_supported"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "dumb", "VTE_VERSION": "7200"}, False),
        ({"TERM": "screen", "KITTY_WINDOW_ID": "1"}, False),
        ({"TERM": "screen-256color", "KITTY_WINDOW_ID": "1", "TMUX": "x"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4800"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, True),
    ],
)
def test_only_known_terminals_get_links(environ: dict[str, str], is_supported: bool) -> None:
    assert supports_links(environ) == is_supported


def test_urls_and_existing_files_are_links(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    text = "\x1b[1msee\x1b[0m src/main.py:12, src/gone.py and (https://example.org/a?b=c). v0.1.0 e.g. main"
    assert links(text, tmp_path) == [("file", "src/main.py"), ("https", "https://example.org/a?b=c")]
    assert links(text, tmp_path, TERM="xterm-256color") == []


def test_a_url_that_may_be_cut_at_the_end_of_its_line_is_no_link(tmp_path: Path) -> None:
    assert links("x https://example.org/abc\ndef", tmp_path, columns=25) == []
    assert links("x https://example.org/abc\ndef", tmp_path, columns=40) == [("https", "https://example.org/abc")]
