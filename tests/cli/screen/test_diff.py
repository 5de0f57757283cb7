"""Diffs show every changed line."""

from cli.screen.colors import Paint
from cli.screen.diff import color_diff, diff_lines


def test_the_header_is_removed_but_not_lines_that_look_like_it() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- drop nothing\n+++ drop everything\n same\n"
    assert diff_lines(diff) == [
        ("quiet", "@@ -1,2 +1,2 @@"),
        ("removed", "--- drop nothing"),
        ("added", "+++ drop everything"),
        ("quiet", " same"),
    ]


def test_exotic_line_separators_do_not_split_a_line() -> None:
    assert len(diff_lines("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+one\u2028-two\x0b+three\x85four\n")) == 2


def test_a_complete_diff_includes_its_header_and_every_line() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- no header\n same\n"
    assert color_diff(diff, Paint(has_color=False)) == diff
    head, _, _, removed, *_ = color_diff(diff, Paint(has_color=True)).split("\n")
    assert head == "\x1b[1m--- a/x\x1b[0m" and removed == "\x1b[31m--- no header\x1b[0m"
    assert color_diff("a file that is no text\n", Paint(has_color=False)) == "a file that is no text\n"
