"""A diff shows every line that changes."""

from cli.screen.colors import Paint
from cli.screen.diff import color_diff, diff_lines


def test_the_header_goes_and_lines_that_look_like_it_stay() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- drop nothing\n+++ drop everything\n same\n"
    assert diff_lines(diff) == [
        ("quiet", "@@ -1,2 +1,2 @@"),
        ("removed", "--- drop nothing"),
        ("added", "+++ drop everything"),
        ("quiet", " same"),
    ]


def test_a_line_cannot_be_made_two() -> None:
    assert len(diff_lines("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+one\u2028-two\x0b+three\x85four\n")) == 2


def test_a_whole_diff_has_its_header_and_keeps_every_line() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- no header\n same\n"
    assert color_diff(diff, Paint(has_colour=False)) == diff
    head, _, _, removed, *_ = color_diff(diff, Paint(has_colour=True)).split("\n")
    assert head == "\x1b[1m--- a/x\x1b[0m" and removed == "\x1b[31m--- no header\x1b[0m"
    assert color_diff("a file that is no text\n", Paint(has_colour=False)) == "a file that is no text\n"
