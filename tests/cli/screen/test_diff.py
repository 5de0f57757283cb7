"""Diffs show every changed line."""

from cli.screen.colors import Paint
from cli.screen.diff import color_diff, diff_lines


def test_the_header_is_removed_but_not_lines_that_look_like_it() -> None:
    diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- drop nothing\n+++ drop everything\n same\n"
    assert [(line.tone, line.gutter + line.text) for line in diff_lines(diff)] == [
        ("removed", "1 - -- drop nothing"),
        ("added", "1 + ++ drop everything"),
        ("quiet", "2   same"),
    ]


def test_hunks_are_numbered_and_separated() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -9,2 +9,2 @@\n same\n-old\n+new\n@@ -120 +120,2 @@\n end\n+more\n"
    assert [line.gutter + line.text for line in diff_lines(diff)] == [
        "  9   same",
        " 10 - old",
        " 10 + new",
        "⋮",
        "120   end",
        "121 + more",
    ]


def test_each_of_several_files_is_named() -> None:
    one = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-1\n+2\n"
    gone = "--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\\ No newline at end of file\n"
    lines = diff_lines(one.format("a.py") + gone)
    assert [line.text for line in lines if line.tone == "strong"] == ["a.py", "gone.py"]
    assert lines[-1].text == "No newline at end of file"
    assert not [line for line in diff_lines(one.format("a.py")) if line.tone == "strong"]


def test_exotic_line_separators_do_not_split_a_line() -> None:
    assert len(diff_lines("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+one\u2028-two\x0b+three\x85four\n")) == 1


def test_a_complete_diff_includes_its_header_and_every_line() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- no header\n same\n"
    assert color_diff(diff, Paint(has_color=False)) == diff
    head, _, _, removed, *_ = color_diff(diff, Paint(has_color=True)).split("\n")
    assert head == "\x1b[1m--- a/x\x1b[0m" and removed == "\x1b[31m--- no header\x1b[0m"
    assert color_diff("a file that is no text\n", Paint(has_color=False)) == "a file that is no text\n"
