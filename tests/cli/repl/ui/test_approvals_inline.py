"""Approvals and questions in the REPL while other steps run and the user types."""

import pytest

from cli.repl.ui.approval_cards import DENY_HINT, FOCUS_HINT, QUESTION_HINT
from tests.cli.repl.terminal_session import ENTER, ESC, TAB, OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
PUSH = "git push --dry-run"


def push_script() -> tuple[dict[str, object], ...]:
    return one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "that was it"))


def decisions(terminal: TerminalSession) -> list[object]:
    return [event["decision"] for event in events(terminal) if event["type"] == "approval.resolved"]


def wait_decision(terminal: TerminalSession, decision: str) -> None:
    terminal.wait_until(lambda: decisions(terminal) == [decision], f"the decision {decision}")


def test_one_key_allows_a_command_once(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*push_script())
    terminal.send_line("push it")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send("y")
    wait_decision(terminal, "allow")


def test_keys_typed_ahead_do_not_answer(open_terminal: OpenTerminal) -> None:
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 700}
    terminal = open_terminal(*one_step(slow, step_reply("s1", "that was it")))
    terminal.send_line("push it")
    terminal.wait_for("s1 Title of s1")
    terminal.send("yyyy")
    terminal.wait_for(FOCUS_HINT)
    terminal.pause()
    assert decisions(terminal) == []
    terminal.send(TAB)
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send("n")
    wait_decision(terminal, "deny")
    terminal.wait_in_window("yyyy")


def test_a_reason_for_declining_reaches_the_model(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*push_script())
    terminal.send_line("push it")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send("w")
    terminal.pause()
    terminal.send("use a branch" + ENTER)
    wait_decision(terminal, "deny")
    terminal.wait_for("that was it")
    outputs = [str(event["output"]) for event in events(terminal) if event["type"] == "tool.completed"]
    assert "use a branch" in outputs[0]


def test_a_command_can_be_edited_before_it_runs(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*push_script())
    terminal.send_line("push it")
    terminal.wait_for("[e] edit")
    terminal.pause()
    terminal.send("e")
    terminal.pause()
    terminal.send(ctrl("a") + ctrl("k") + "echo instead" + ENTER)
    wait_decision(terminal, "allow")
    terminal.wait_for("that was it")
    outputs = [str(event["output"]) for event in events(terminal) if event["type"] == "tool.completed"]
    assert "echo instead" in outputs[0]


def test_other_steps_continue_while_one_waits(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        plan(step("a"), step("b")),
        step_call("a", "run_command", command=PUSH),
        step_reply("a", "a done"),
        step_reply("b", "b done", delay_ms=700),
        composer_reply("Both are done."),
    )
    terminal.send_line("go")
    terminal.wait_for(DENY_HINT)
    terminal.wait_for("✓ b Title of b")
    terminal.pause()
    terminal.send("n")
    terminal.wait_for("Both are done.")


def test_a_question_of_the_plan_is_answered_by_its_number(open_terminal: OpenTerminal) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    terminal = open_terminal(plan(asking))
    terminal.send_line("paint it")
    terminal.wait_for(QUESTION_HINT)
    terminal.pause()
    terminal.send("2" + ENTER)
    terminal.wait_for("answered: blue")


def test_cards_are_queued_and_can_be_postponed(open_terminal: OpenTerminal) -> None:
    pushes = [step_call(name, "run_command", command=f"{PUSH} {name}") for name in ("a", "b")]
    terminal = open_terminal(
        plan(step("a"), step("b")),
        *pushes,
        step_reply("a", "a"),
        step_reply("b", "b"),
        composer_reply("Neither was pushed."),
        columns=120,
    )
    terminal.send_line("push both")
    terminal.wait_for("(1 more waiting)")
    terminal.pause()
    terminal.wait_in_window("2 waiting for you")
    terminal.send(ESC)
    terminal.wait_for(f"{FOCUS_HINT} (1 more waiting)")
    terminal.send("a draft" + TAB)
    terminal.wait_until(lambda: DENY_HINT in terminal.window_text(), "the card to be back")
    for left in (DENY_HINT, "> a draft"):
        terminal.pause()
        terminal.send("n")
        terminal.wait_until(lambda left=left: left in terminal.window_text(), left)
    terminal.wait_for("Neither was pushed.")
    assert decisions(terminal) == ["deny", "deny"]


@pytest.mark.parametrize(("key", "lasts"), [("r", ""), ("p", "project"), ("a", "always")])
def test_one_key_allows_the_same_command_for_longer(open_terminal: OpenTerminal, key: str, lasts: str) -> None:
    push = step_call("s1", "run_command", command=PUSH)
    terminal = open_terminal(*one_step(push, push, step_reply("s1", "that was it")))
    terminal.send_line("push it")
    terminal.wait_for("[r] this run")
    terminal.pause()
    terminal.send(key)
    terminal.wait_for("that was it")
    assert [event["by"] for event in events(terminal) if event["type"] == "approval.resolved"].count("person") == 1
    rules = terminal.user.agent("rules", "list", cwd=terminal.folder).stdout
    assert ("git push" in rules) == bool(lasts), rules
    terminal.send_line("push again")
    terminal.wait_until(lambda: len(terminal.full_text().split("> push again")) == 2, "the second request")
    if lasts:
        terminal.wait_until(lambda: terminal.full_text().count("that was it") == 2, "a run without a question")
    else:
        terminal.wait_until(lambda: DENY_HINT in terminal.window_text(), "to be asked again")


@pytest.mark.parametrize(
    "pasted",
    [
        "yes please",
        "plan all of it\n",
        "\ny\n",
        "\ty",
        "\x1b\ty",
        "\x1b[200~y\x1b[201~",
        # Pasted text that contains the end marker of a paste, followed by keys.
        "\x1b[200~text\x1b[201~\ty",
    ],
)
def test_pasting_onto_a_card_answers_nothing(open_terminal: OpenTerminal, pasted: str) -> None:
    terminal = open_terminal(*push_script())
    terminal.send_line("push it")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send(pasted)
    terminal.wait_for(FOCUS_HINT)
    terminal.pause()
    assert decisions(terminal) == []
    terminal.send(TAB)
    terminal.wait_for(DENY_HINT)
    terminal.send("n")
    wait_decision(terminal, "deny")


def test_an_edited_command_has_no_invisible_characters(open_terminal: OpenTerminal) -> None:
    hidden = step_call("s1", "run_command", command="git push \u202e--dry\u200b-run")
    terminal = open_terminal(*one_step(hidden, step_reply("s1", "that was it")))
    terminal.send_line("push it")
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    terminal.send("e")
    terminal.wait_for("> git push --dry-run")
    terminal.send(ENTER)
    terminal.wait_for("that was it")
    outputs = [str(event["output"]) for event in events(terminal) if event["type"] == "tool.completed"]
    assert PUSH in outputs[0]


def test_a_long_file_can_be_read_completely_before_it_is_allowed(open_terminal: OpenTerminal) -> None:
    content = "".join(f"line {number}\n" for number in range(1, 301))
    replies = one_step(step_call("s1", "write_file", path="big.txt", content=content), step_reply("s1", "written"))
    terminal = open_terminal(*replies, PAGER="sh -c 'cat > pager.txt; echo READ'", AGENT_APPROVAL_MODE="ask")
    terminal.send_line("write it")
    terminal.wait_for("[v] view all")
    terminal.wait_for("300 + line 300\n")
    shown = terminal.pause()
    assert "1 + line 1\n" in shown and "300 + line 300\n" in shown and "150 + line 150" not in shown
    terminal.send("v")
    terminal.wait_for("READ")
    seen = (terminal.folder / "pager.txt").read_text()
    assert all(f"+ line {number}\n" in seen for number in range(1, 301))
    # The card is still there, and takes the answer.
    terminal.wait_until(lambda: DENY_HINT in terminal.window_text(), "the keys of the card")
    assert decisions(terminal) == []
    terminal.send("y")
    wait_decision(terminal, "allow")
    # Its diff was in the card.
    ended = terminal.wait_for("• s1 write_file big.txt  +300 -0")
    assert ended.count("300 + line 300\n") == 1
