"""A diff shows every line that changes."""

from cli.screen.diff import diff_lines


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
