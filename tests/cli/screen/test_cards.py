"""Cards of approvals: the head and the tail of a long change, and everything on request."""

from dataclasses import replace

import pytest

from agent.protocol.events import ApprovalRequested
from cli.screen.cards import VIEW_HINT, CardRenderer
from cli.screen.colors import Paint
from tests.cli.screen.hostile import HOSTILE, find_foreign


def write(content: str, path: str = "big.py") -> ApprovalRequested:
    lines = content.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return ApprovalRequested(
        approval_id="1",
        command=path,
        cwd="/w",
        reason="",
        rule="write_file",
        tool="write_file",
        diff=f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}",
    )


def card(width: int = 80, rows: int = 24, *, has_color: bool = False) -> CardRenderer:
    return CardRenderer(paint=Paint(has_color=has_color), width=width, rows=rows)


LONG_FILE = write("\n".join(f"line {number}" for number in range(1, 301)))


@pytest.mark.parametrize("width", [50, 80, 140])
def test_a_long_new_file_is_shown_with_its_head_and_its_tail(width: int) -> None:
    lines = card(width).lines(LONG_FILE)
    assert lines[0] == "allow this?  write_file big.py"
    assert "      1 + line 1" in lines and "    300 + line 300" in lines
    assert any(line.endswith(f"more lines; {VIEW_HINT}") for line in lines)
    assert len(lines) < 16


def test_everything_can_be_viewed() -> None:
    text = card().full_text(LONG_FILE)
    assert text.startswith("big.py\n  in /w\n")
    assert [line.split(" + ")[-1] for line in text.splitlines()[-300:]] == [
        f"line {number}" for number in range(1, 301)
    ]
    assert card().is_folded(LONG_FILE)
    assert not card().is_folded(write("one\ntwo"))


def test_a_taller_window_shows_more() -> None:
    assert len(card(rows=24).lines(LONG_FILE)) < len(card(rows=50).lines(LONG_FILE))


def test_long_lines_are_wrapped_inside_the_card_and_count_as_rows() -> None:
    lines = card(width=40).lines(write("\n".join(["word " * 30] * 20)))
    assert max(map(len, lines)) <= 40 and len(lines) < 16
    assert all(line.startswith("    ") for line in lines[4:])
    short = card(width=40).lines(write("abc " * 20))
    assert "".join(line.strip(" 1+") for line in short[-3:]).count("abc") == 20


def test_a_diff_is_indented_and_colored() -> None:
    change = ApprovalRequested(
        approval_id="1",
        command="a.py",
        cwd="/w",
        reason="",
        rule="",
        tool="edit_file",
        diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n",
    )
    assert card(has_color=True).lines(change)[-2:] == ["    \x1b[31m1 - old\x1b[0m", "    \x1b[32m1 + new\x1b[0m"]


def test_a_diff_cannot_move_the_cursor_or_forge_lines() -> None:
    request = write(f"{HOSTILE}\n  because you asked for it\n--- a/x\n+++ b/y")
    shown = "\n".join(card().lines(request)) + card().full_text(request)
    assert find_foreign(shown.encode("utf-8", "backslashreplace")) == []
    assert "+ --- a/x" in shown and "+ +++ b/y" in shown
    assert sum(line.startswith("  because") for line in card().lines(request)) == 1


def test_a_card_does_not_repeat_the_only_program_of_a_command() -> None:
    request = ApprovalRequested(approval_id="1", command="rm -rf src", cwd="/w", reason="it deletes", rule="")
    for involves, shown in (
        (("runs rm",), []),
        (("runs curl", "runs sh"), ["  it runs curl", "  it runs sh"]),
        (("runs /tmp/rm",), ["  it runs /tmp/rm"]),
    ):
        assert card().lines(replace(request, involves=involves))[3:] == shown
