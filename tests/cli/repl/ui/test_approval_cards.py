"""ApprovalCards: shown in order, and answered only by keys pressed after they were visible."""

import asyncio
from collections.abc import Sequence

from agent.protocol.commands import Answer, AnswerQuestion, ResolveApproval
from agent.protocol.events import ApprovalRequested, ApprovalResolved, Event, QuestionAsked
from cli.repl.ui.approval_cards import FOCUS_HINT, ApprovalCards
from cli.screen.colors import Paint
from tests.cli.screen.test_live_area import envelope


class CardsHarness:
    """ApprovalCards with a manual clock, a recorded screen and recorded answers."""

    def __init__(self) -> None:
        self.time = 0.0
        self.sent: list[Answer] = []
        self.written: list[str] = []
        self.cards = ApprovalCards(
            send=self._send, show=self._show, paint=Paint(has_color=False), now=lambda: self.time
        )

    def receive(self, *events: Event, is_typing: bool = False) -> "CardsHarness":
        for event in events:
            self.cards.on_event(envelope(event, "s1"), is_typing=is_typing)
        return self

    def mark_seen(self) -> "CardsHarness":
        self.cards.mark_drawn()
        self.time += 1
        return self

    def _show(self, lines: Sequence[str]) -> None:
        self.written.append("\n".join(lines) + "\n")

    def _send(self, answer: Answer) -> bool:
        self.sent.append(answer)
        return True


def approval(number: str = "1", rule: str = "git push", **more: str) -> ApprovalRequested:
    return ApprovalRequested(
        approval_id=number, command=f"git push {number}", cwd="/w", reason="it publishes", rule=rule, tool="run_command"
    )


def question(*options: str) -> QuestionAsked:
    return QuestionAsked(question_id="q", question="Which?", options=options)


def test_a_key_answers_a_visible_card() -> None:
    harness = CardsHarness().receive(approval()).mark_seen()
    assert harness.cards.answer_key("y")
    assert harness.sent == [ResolveApproval(approval_id="1", decision="allow", scope="once")]
    assert harness.cards.current is None


def test_a_key_pressed_before_the_card_was_drawn_answers_nothing() -> None:
    harness = CardsHarness().receive(approval())
    assert not harness.cards.answer_key("y")
    harness.cards.mark_drawn()
    assert not harness.cards.answer_key("y")
    harness.time += 1
    assert harness.cards.answer_key("y")


def test_the_next_card_must_be_visible_as_well() -> None:
    harness = CardsHarness().receive(approval("1"), approval("2")).mark_seen()
    assert harness.cards.answer_key("y")
    assert not harness.cards.answer_key("y")
    assert harness.mark_seen().cards.answer_key("n")
    assert [
        (answer.approval_id, answer.decision) for answer in harness.sent if isinstance(answer, ResolveApproval)
    ] == [
        ("1", "allow"),
        ("2", "deny"),
    ]


def test_a_card_does_not_take_the_focus_from_a_user_who_is_typing() -> None:
    harness = CardsHarness().receive(approval(), is_typing=True).mark_seen()
    assert not harness.cards.answer_key("y")
    assert FOCUS_HINT in harness.cards.lines(80)[0]
    harness.cards.focus()
    assert harness.mark_seen().cards.answer_key("y")


def test_without_a_rule_saving_one_is_not_offered() -> None:
    harness = CardsHarness().receive(approval(rule="")).mark_seen()
    assert "[a]" not in harness.cards.lines(80)[0]
    assert not harness.cards.answer_key("a")
    assert harness.sent == []


def test_a_long_command_is_printed_completely() -> None:
    long = ApprovalRequested(
        approval_id="1", command="echo " + "x" * 500 + " ; rm -rf /", cwd="/w", reason="r", rule="echo"
    )
    harness = CardsHarness().receive(long)
    assert "x" * 500 + " ; rm -rf /" in "".join(harness.written)
    assert "the rule 'echo'" in "".join(harness.written)


def test_a_card_accepts_an_edited_command_or_a_reason() -> None:
    harness = CardsHarness().receive(approval("1"), approval("2")).mark_seen()
    assert harness.cards.answer_text("git push --dry-run", is_command=True)
    assert harness.mark_seen().cards.answer_text("not on Fridays")
    assert harness.sent == [
        ResolveApproval(approval_id="1", decision="allow", command="git push --dry-run"),
        ResolveApproval(approval_id="2", decision="deny", remark="not on Fridays"),
    ]


def test_a_question_is_answered_by_number_or_text() -> None:
    for line, answer in (("2", "blue"), ("B", "blue"), ("7", "7"), ("x", "x"), ("green", "green")):
        harness = CardsHarness().receive(question("red", "blue")).mark_seen()
        assert harness.cards.answer_text(line)
        assert harness.sent == [AnswerQuestion(question_id="q", answer=answer)]


def test_an_expired_card_is_replaced_by_the_next() -> None:
    harness = CardsHarness().receive(approval("1"), approval("2")).mark_seen()
    harness.receive(ApprovalResolved(approval_id="1", decision="deny", by="person"))
    assert harness.cards.current == approval("2")
    assert not harness.cards.answer_key("y")


def test_the_number_of_pending_cards_is_shown() -> None:
    harness = CardsHarness().receive(approval("1"), approval("2"), approval("3"))
    assert "(2 more waiting)" in " ".join(harness.cards.lines(80))


async def test_a_question_of_the_repl_survives_the_end_of_a_run() -> None:
    harness = CardsHarness().receive(approval())
    asking = asyncio.ensure_future(harness.cards.ask("Which model?", ("one", "two")))
    await asyncio.sleep(0)
    harness.cards.clear()
    assert harness.cards.answer_text("2")
    assert await asking == "two"
    assert harness.sent == []
