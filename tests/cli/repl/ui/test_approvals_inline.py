"""Approvals and questions in the REPL, while other steps go on and somebody types."""

from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, TAB, Seat, ctrl
from tests.cli.repl.test_conversation import events
from tests.cli.terminal_user import calls, composes, one_step, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
PUSH = "git push --dry-run"


def pushing() -> tuple[dict[str, object], ...]:
    return one_step(calls("s1", "run_command", command=PUSH), says("s1", "that was it"))


def decided(seat: Seat) -> list[object]:
    return [event["decision"] for event in events(seat) if event["type"] == "approval.resolved"]


def test_one_key_allows_a_command_once(sit: Open) -> None:
    seat = sit(*pushing())
    seat.says("push it")
    seat.sees("[n] no")
    seat.settles()
    seat.types("y")
    seat.sees("allowed by person")
    assert decided(seat) == ["allow"]


def test_keys_that_were_typed_ahead_do_not_answer(sit: Open) -> None:
    slow = {**calls("s1", "run_command", command=PUSH), "delay_ms": 700}
    seat = sit(*one_step(slow, says("s1", "that was it")))
    seat.says("push it")
    seat.sees("s1 Title of s1")
    seat.types("yyyy")
    seat.sees("press Tab to answer")
    seat.settles()
    assert decided(seat) == []
    seat.types(TAB)
    seat.sees("[n] no")
    seat.settles()
    seat.types("n")
    seat.sees("denied by person")
    assert "yyyy" in seat.settles()


def test_a_refusal_with_words_reaches_the_model(sit: Open) -> None:
    seat = sit(*pushing())
    seat.says("push it")
    seat.sees("[n] no")
    seat.settles()
    seat.types("w")
    seat.settles()
    seat.types("use a branch" + ENTER)
    seat.sees("denied by person")
    outputs = [str(event["output"]) for event in events(seat) if event["type"] == "tool.completed"]
    assert "use a branch" in outputs[0]


def test_a_command_can_be_edited_before_it_runs(sit: Open) -> None:
    seat = sit(*pushing())
    seat.says("push it")
    seat.sees("[e] edit")
    seat.settles()
    seat.types("e")
    seat.settles()
    seat.types(ctrl("a") + ctrl("k") + "echo instead" + ENTER)
    seat.sees("allowed by person")
    seat.sees("that was it")
    outputs = [str(event["output"]) for event in events(seat) if event["type"] == "tool.completed"]
    assert "echo instead" in outputs[0]


def test_other_steps_go_on_while_one_waits(sit: Open) -> None:
    seat = sit(
        plan(step("a"), step("b")),
        calls("a", "run_command", command=PUSH),
        says("a", "a done"),
        says("b", "b done", delay_ms=700),
        composes("Both are done."),
    )
    seat.says("go")
    seat.sees("[n] no")
    seat.sees("✓ b Title of b")
    seat.settles()
    seat.types("n")
    seat.sees("Both are done.")


def test_a_question_of_the_plan_is_answered_by_its_number(sit: Open) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    seat = sit(plan(asking))
    seat.says("paint it")
    seat.sees("type a number")
    seat.settles()
    seat.types("2" + ENTER)
    seat.sees("answered: blue")


def test_cards_wait_in_line_and_can_be_put_off(sit: Open) -> None:
    pushes = [calls(name, "run_command", command=f"{PUSH} {name}") for name in ("a", "b")]
    seat = sit(
        plan(step("a"), step("b")),
        *pushes,
        says("a", "a"),
        says("b", "b"),
        composes("Neither was pushed."),
        columns=120,
    )
    seat.says("push both")
    seat.sees("(1 more waiting)")
    assert "2 waiting for you" in seat.settles()
    seat.types(ESC)
    seat.sees("press Tab to answer (1 more waiting)")
    seat.types("a draft" + TAB)
    seat.until(lambda: "[n] no" in seat.window(), "the card to be back")
    for left in ("[n] no", "> a draft"):
        seat.settles()
        seat.types("n")
        seat.until(lambda left=left: left in seat.window(), left)
    seat.sees("Neither was pushed.")
    assert decided(seat) == ["deny", "deny"]


@pytest.mark.parametrize(("key", "lasts"), [("r", ""), ("p", "project"), ("a", "always")])
def test_one_key_allows_what_is_alike_for_longer(sit: Open, key: str, lasts: str) -> None:
    push = calls("s1", "run_command", command=PUSH)
    seat = sit(*one_step(push, push, says("s1", "that was it")))
    seat.says("push it")
    seat.sees("[r] this run")
    seat.settles()
    seat.types(key)
    seat.sees("that was it")
    assert [event["by"] for event in events(seat) if event["type"] == "approval.resolved"].count("person") == 1
    rules = seat.user.agent("rules", "list", cwd=seat.folder).stdout
    assert ("git push" in rules) == bool(lasts), rules
    seat.says("push again")
    seat.until(lambda: len(seat.all().split("> push again")) == 2, "the second request")
    if lasts:
        seat.until(lambda: seat.all().count("that was it") == 2, "a run that asks nothing")
    else:
        seat.until(lambda: "[n] no" in seat.window(), "to be asked again")


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
    seat = sit(*pushing())
    seat.says("push it")
    seat.sees("[n] no")
    seat.settles()
    seat.types(pasted)
    seat.sees("press Tab to answer")
    seat.settles()
    assert decided(seat) == []
    seat.types(TAB)
    seat.sees("[n] no")
    seat.types("n")
    seat.sees("denied by person")


def test_a_command_is_edited_as_it_is_seen(sit: Open) -> None:
    hidden = calls("s1", "run_command", command="git push \u202e--dry\u200b-run")
    seat = sit(*one_step(hidden, says("s1", "that was it")))
    seat.says("push it")
    seat.sees("[n] no")
    seat.settles()
    seat.types("e")
    seat.sees("> git push --dry-run")
    seat.types(ENTER)
    seat.sees("that was it")
    outputs = [str(event["output"]) for event in events(seat) if event["type"] == "tool.completed"]
    assert PUSH in outputs[0]
