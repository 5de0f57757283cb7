"""What a line at the prompt is: a request, a command, a note; and the keys that start a new line or choose."""

import json
from pathlib import Path

import pytest

from cli.repl.repl import NOTHING_TO_STEER, PASTED_NOTE
from cli.repl.ui.approval_cards import DENY_HINT
from cli.repl.ui.tui import SEARCH_TITLE
from tests.cli.repl.terminal_session import ENTER, ESC, TAB, UP, OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.repl.test_endings import AGAIN, assert_usable, result_of
from tests.cli.repl.ui.test_approvals_inline import decisions, push_script
from tests.cli.repl.ui.test_input import request
from tests.cli.terminal_user import answer, plan, step

pytestmark = pytest.mark.slow
DOWN = "\x1b[B"


def paste(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


def memory_of(terminal: TerminalSession) -> Path:
    return terminal.user.data / "MEMORY.md"


@pytest.mark.parametrize("pasted", ["# Heading\n\nand a text", "# Heading", "/clear\nis a command", "!ls"])
def test_pasted_text_is_a_request_whatever_it_begins_with(open_terminal: OpenTerminal, pasted: str) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send(paste(pasted))
    terminal.wait_for(pasted.splitlines()[-1])
    terminal.send(ENTER)
    shown = terminal.wait_for("Understood.")
    assert request(terminal) == pasted
    assert not memory_of(terminal).exists()
    assert (PASTED_NOTE[:20] in shown) == ("\n" not in pasted)


def test_a_line_that_starts_with_a_path_is_a_request(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.send_line("/usr/bin/foo crashes")
    terminal.wait_for("Understood.")
    assert request(terminal) == "/usr/bin/foo crashes"
    terminal.send_line("/tmp is full")
    terminal.wait_until(lambda: len(result_of(terminal)) == 2, "the second answer")
    terminal.send_line("/exti")
    terminal.wait_for("unknown command /exti, did you mean /exit")


def test_ctrl_j_and_a_backslash_start_a_new_line(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send("one" + ctrl("j") + "two\\" + ENTER + "three")
    terminal.wait_for("three")
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "one\ntwo\nthree"


def test_escape_and_then_enter_sends(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send("one")
    terminal.wait_for("> one")
    terminal.send(ESC)
    terminal.watch(0.3)
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "one"


def test_ctrl_s_without_a_run_keeps_the_text(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send("first words" + ctrl("s"))
    terminal.wait_for(NOTHING_TO_STEER)
    terminal.send(" and more")
    terminal.wait_for("> first words and more")
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "first words and more"


def test_what_a_request_attaches_is_shown_below_it(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    (terminal.folder / "notes.md").write_text("one\ntwo\n")
    (terminal.folder / "src").mkdir()
    terminal.send_line("compare @notes.md, (@src) and @gone.md?")
    shown = terminal.wait_for("Understood.")
    below = shown[shown.index("> compare") :]
    assert "  + notes.md (8 B, 2 lines)\n  + src/ (folder, 0 entries)\n" in below
    assert "warning: @gone.md not attached" in below
    context = next(str(event["content"]) for event in events(terminal) if event.get("role") == "context")
    assert '<file name="notes.md">' in context and '<file name="src/">' in context


def test_tab_quotes_the_only_name_that_fits_and_enter_sends_the_request(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    (terminal.folder / "my long notes.txt").write_text("one\n")
    terminal.wait_ready()
    terminal.send("read @mlnt")
    terminal.wait_for("my long notes.txt")
    terminal.send(TAB)
    terminal.wait_for('read @"my long notes.txt"')
    terminal.send(ENTER)
    terminal.wait_for("+ my long notes.txt (4 B, 1 line)")


def test_escape_works_while_planning_and_ctrl_d_on_a_card(open_terminal: OpenTerminal) -> None:
    slow = {**reply_to("slow", plan(step("s1"))), "delay_ms": 60_000}
    terminal = open_terminal(AGAIN, slow, *push_script())
    terminal.send_line("slow")
    terminal.wait_for("planning")
    terminal.send(ESC)
    terminal.wait_until(lambda: result_of(terminal) == [130], "the run to end")
    assert_usable(terminal)
    terminal.send_line("push it")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0
    session = json.loads(next(terminal.user.data.glob("sessions/*/SESSION.json")).read_text())["id"]
    assert f"resume with: agent -r {session}" in terminal.full_text()


def test_arrow_keys_answer_an_approval(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*push_script())
    terminal.send_line("push it")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send(ENTER)
    terminal.send(DOWN)
    terminal.wait_for("<y> once")
    assert decisions(terminal) == []
    terminal.send(DOWN * 2 + UP)
    terminal.wait_for("<r> this run")
    terminal.send(UP)
    terminal.wait_for("<y> once")
    terminal.send(ENTER)
    terminal.wait_until(lambda: decisions(terminal) == ["allow"], "the approval")


def test_ctrl_r_shows_the_search_and_its_matches(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."), rows=12)
    for line in ("fix the parser", "write the docs"):
        terminal.send_line(line)
        terminal.wait_until(lambda: f"> {line}" in terminal.full_text(), "the request")  # noqa: B023
    terminal.wait_until(lambda: len(result_of(terminal)) == 2, "both answers")
    terminal.send("draft" + ctrl("r"))
    terminal.wait_for("→ write the docs")
    terminal.wait_in_window(f"{SEARCH_TITLE} (2 of 2)")
    terminal.send("prs")
    terminal.wait_for("→ fix the parser")
    terminal.send(ESC)
    terminal.wait_until(lambda: "> draft" in terminal.window_text(), "the draft")
    terminal.send(ctrl("r") + "parser")
    terminal.wait_for("→ fix the parser")
    terminal.send(ENTER)
    terminal.wait_until(lambda: "\n> fix the parser\n" in terminal.window_text() + "\n", "the match in the prompt")
