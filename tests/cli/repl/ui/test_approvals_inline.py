"""Approvals and questions in the REPL, while other steps go on and somebody types."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, TAB, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import composer_reply, one_step, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]
PUSH = "git push --dry-run"


def push_script() -> tuple[dict[str, object], ...]:
    return one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "that was it"))


def decisions(seat: TerminalSession) -> list[object]:
    return [event["decision"] for event in events(seat) if event["type"] == "approval.resolved"]


def test_one_key_allows_a_command_once(sit: Open) -> None:
    seat = sit(*push_script())
    seat.send_line("push it")
    seat.wait_for("[n] no")
    seat.pause()
    seat.send("y")
    seat.wait_for("you allowed it")
    assert decisions(seat) == ["allow"]


def test_keys_that_were_typed_ahead_do_not_answer(sit: Open) -> None:
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 700}
    seat = sit(*one_step(slow, step_reply("s1", "that was it")))
    seat.send_line("push it")
    seat.wait_for("s1 Title of s1")
    seat.send("yyyy")
    seat.wait_for("press Tab to answer")
    seat.pause()
    assert decisions(seat) == []
    seat.send(TAB)
    seat.wait_for("[n] no")
    seat.pause()
    seat.send("n")
    seat.wait_for("you declined")
    assert "yyyy" in seat.pause()


def test_a_refusal_with_words_reaches_the_model(sit: Open) -> None:
    seat = sit(*push_script())
    seat.send_line("push it")
    seat.wait_for("[n] no")
    seat.pause()
    seat.send("w")
    seat.pause()
    seat.send("use a branch" + ENTER)
    seat.wait_for("you declined")
    outputs = [str(event["output"]) for event in events(seat) if event["type"] == "tool.completed"]
    assert "use a branch" in outputs[0]


def test_a_command_can_be_edited_before_it_runs(sit: Open) -> None:
    seat = sit(*push_script())
    seat.send_line("push it")
    seat.wait_for("[e] edit")
    seat.pause()
    seat.send("e")
    seat.pause()
    seat.send(ctrl("a") + ctrl("k") + "echo instead" + ENTER)
    seat.wait_for("you allowed it")
    seat.wait_for("that was it")
    outputs = [str(event["output"]) for event in events(seat) if event["type"] == "tool.completed"]
    assert "echo instead" in outputs[0]


def test_other_steps_go_on_while_one_waits(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b")),
        step_call("a", "run_command", command=PUSH),
        step_reply("a", "a done"),
        step_reply("b", "b done", delay_ms=700),
        composer_reply("Both are done."),
    )
    seat.send_line("go")
    seat.wait_for("[n] no")
    seat.wait_for("✓ b Title of b")
    seat.pause()
    seat.send("n")
    seat.wait_for("Both are done.")


def test_a_question_of_the_plan_is_answered_by_its_number(sit: Open) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    seat = sit(plan(asking))
    seat.send_line("paint it")
    seat.wait_for("type a number")
    seat.pause()
    seat.send("2" + ENTER)
    seat.wait_for("answered: blue")


def test_cards_wait_in_line_and_can_be_put_off(sit: Open) -> None:
    pushes = [step_call(name, "run_command", command=f"{PUSH} {name}") for name in ("a", "b")]
    seat = sit(
        plan(step("a"), step("b")),
        *pushes,
        step_reply("a", "a"),
        step_reply("b", "b"),
        composer_reply("Neither was pushed."),
        columns=120,
    )
    seat.send_line("push both")
    seat.wait_for("(1 more waiting)")
    assert "2 waiting for you" in seat.pause()
    seat.send(ESC)
    seat.wait_for("press Tab to answer (1 more waiting)")
    seat.send("a draft" + TAB)
    seat.wait_until(lambda: "[n] no" in seat.window_text(), "the card to be back")
    for left in ("[n] no", "> a draft"):
        seat.pause()
        seat.send("n")
        seat.wait_until(lambda left=left: left in seat.window_text(), left)
    seat.wait_for("Neither was pushed.")
    assert decisions(seat) == ["deny", "deny"]


@pytest.mark.parametrize(("key", "lasts"), [("r", ""), ("p", "project"), ("a", "always")])
def test_one_key_allows_what_is_alike_for_longer(sit: Open, key: str, lasts: str) -> None:
    push = step_call("s1", "run_command", command=PUSH)
    seat = sit(*one_step(push, push, step_reply("s1", "that was it")))
    seat.send_line("push it")
    seat.wait_for("[r] this run")
    seat.pause()
    seat.send(key)
    seat.wait_for("that was it")
    assert [event["by"] for event in events(seat) if event["type"] == "approval.resolved"].count("person") == 1
    rules = seat.user.agent("rules", "list", cwd=seat.folder).stdout
    assert ("git push" in rules) == bool(lasts), rules
    seat.send_line("push again")
    seat.wait_until(lambda: len(seat.full_text().split("> push again")) == 2, "the second request")
    if lasts:
        seat.wait_until(lambda: seat.full_text().count("that was it") == 2, "a run that asks nothing")
    else:
        seat.wait_until(lambda: "[n] no" in seat.window_text(), "to be asked again")


@pytest.mark.parametrize(
    "pasted",
    [
        "yes please",
        "plan all of it\n",
        "\ny\n",
        "\ty",
        "\x1b\ty",
        "\x1b[200~y\x1b[201~",
        # A text that holds the mark at which a paste ends, and keys behind it.
        "\x1b[200~text\x1b[201~\ty",
    ],
)
def test_what_is_pasted_on_a_card_answers_nothing(sit: Open, pasted: str) -> None:
    seat = sit(*push_script())
    seat.send_line("push it")
    seat.wait_for("[n] no")
    seat.pause()
    seat.send(pasted)
    seat.wait_for("press Tab to answer")
    seat.pause()
    assert decisions(seat) == []
    seat.send(TAB)
    seat.wait_for("[n] no")
    seat.send("n")
    seat.wait_for("you declined")


def test_a_command_is_edited_as_it_is_seen(sit: Open) -> None:
    hidden = step_call("s1", "run_command", command="git push \u202e--dry\u200b-run")
    seat = sit(*one_step(hidden, step_reply("s1", "that was it")))
    seat.send_line("push it")
    seat.wait_for("[n] no")
    seat.pause()
    seat.send("e")
    seat.wait_for("> git push --dry-run")
    seat.send(ENTER)
    seat.wait_for("that was it")
    outputs = [str(event["output"]) for event in events(seat) if event["type"] == "tool.completed"]
    assert PUSH in outputs[0]
