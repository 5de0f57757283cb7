"""ApprovalCards: asked in order, answered by a key only once they were seen, and never by what was typed before."""

import asyncio

from agent.protocol.commands import Answer, AnswerQuestion, ResolveApproval
from agent.protocol.events import ApprovalRequested, ApprovalResolved, Event, QuestionAsked
from cli.repl.ui.approval_cards import ApprovalCards
from cli.screen.colors import Paint
from tests.cli.screen.test_live_area import envelope


class CardsHarness:
    """ApprovalCards with a clock wound by hand, a screen, and somebody who takes the answers."""

    def __init__(self) -> None:
        self.time = 0.0
        self.sent: list[Answer] = []
        self.written: list[str] = []
        self.cards = ApprovalCards(
            send=self._send, write=self.written.append, paint=Paint(has_colour=False), now=lambda: self.time
        )

    def receive(self, *events: Event, is_typing: bool = False) -> "CardsHarness":
        for event in events:
            self.cards.on_event(envelope(event, "s1"), is_typing=is_typing)
        return self

    def mark_seen(self) -> "CardsHarness":
        self.cards.mark_drawn()
        self.time += 1
        return self

    def _send(self, answer: Answer) -> bool:
        self.sent.append(answer)
        return True


def approval(number: str = "1", rule: str = "git push", **more: str) -> ApprovalRequested:
    return ApprovalRequested(
        approval_id=number, command=f"git push {number}", cwd="/w", reason="it publishes", rule=rule, tool="run_command"
    )


def question(*options: str) -> QuestionAsked:
    return QuestionAsked(question_id="q", question="Which?", options=options)


def test_a_key_answers_the_card_that_was_seen() -> None:
    desk = CardsHarness().receive(approval()).mark_seen()
    assert desk.cards.answer_key("y")
    assert desk.sent == [ResolveApproval(approval_id="1", decision="allow", scope="once")]
    assert desk.cards.current is None


def test_a_key_that_comes_before_the_card_was_drawn_answers_nothing() -> None:
    desk = CardsHarness().receive(approval())
    assert not desk.cards.answer_key("y")
    desk.cards.mark_drawn()
    assert not desk.cards.answer_key("y")
    desk.time += 1
    assert desk.cards.answer_key("y")


def test_the_next_card_must_be_seen_as_well() -> None:
    desk = CardsHarness().receive(approval("1"), approval("2")).mark_seen()
    assert desk.cards.answer_key("y")
    assert not desk.cards.answer_key("y")
    assert desk.mark_seen().cards.answer_key("n")
    assert [(answer.approval_id, answer.decision) for answer in desk.sent if isinstance(answer, ResolveApproval)] == [
        ("1", "allow"),
        ("2", "deny"),
    ]


def test_somebody_who_is_typing_is_not_interrupted() -> None:
    desk = CardsHarness().receive(approval(), is_typing=True).mark_seen()
    assert not desk.cards.answer_key("y")
    assert "press Tab to answer" in desk.cards.lines(80)[0]
    desk.cards.focus()
    assert desk.mark_seen().cards.answer_key("y")


def test_a_rule_that_cannot_be_stored_is_not_offered() -> None:
    desk = CardsHarness().receive(approval(rule="")).mark_seen()
    assert "[a]" not in desk.cards.lines(80)[0]
    assert not desk.cards.answer_key("a")
    assert desk.sent == []


def test_the_whole_command_stands_in_the_scrollback_however_long_it_is() -> None:
    long = ApprovalRequested(
        approval_id="1", command="echo " + "x" * 500 + " ; rm -rf /", cwd="/w", reason="r", rule="echo"
    )
    desk = CardsHarness().receive(long)
    assert "x" * 500 + " ; rm -rf /" in "".join(desk.written)
    assert "the rule 'echo'" in "".join(desk.written)


def test_another_command_or_a_reason_can_be_written() -> None:
    desk = CardsHarness().receive(approval("1"), approval("2")).mark_seen()
    assert desk.cards.answer_text("git push --dry-run", is_command=True)
    assert desk.mark_seen().cards.answer_text("not on Fridays")
    assert desk.sent == [
        ResolveApproval(approval_id="1", decision="allow", command="git push --dry-run"),
        ResolveApproval(approval_id="2", decision="deny", remark="not on Fridays"),
    ]


def test_a_question_is_answered_by_number_or_in_words() -> None:
    for line, answer in (("2", "blue"), ("7", "7"), ("green", "green")):
        desk = CardsHarness().receive(question("red", "blue")).mark_seen()
        assert desk.cards.answer_text(line)
        assert desk.sent == [AnswerQuestion(question_id="q", answer=answer)]


def test_a_card_that_lapsed_goes_away_and_the_next_one_comes() -> None:
    desk = CardsHarness().receive(approval("1"), approval("2")).mark_seen()
    desk.receive(ApprovalResolved(approval_id="1", decision="deny", by="person"))
    assert desk.cards.current == approval("2")
    assert not desk.cards.answer_key("y")


def test_how_many_wait_is_shown() -> None:
    desk = CardsHarness().receive(approval("1"), approval("2"), approval("3"))
    assert "(2 more waiting)" in " ".join(desk.cards.lines(80))


async def test_a_question_of_our_own_survives_the_end_of_a_run() -> None:
    desk = CardsHarness().receive(approval())
    asking = asyncio.ensure_future(desk.cards.ask("Which model?", ("one", "two")))
    await asyncio.sleep(0)
    desk.cards.clear()
    assert desk.cards.answer_text("2")
    assert await asking == "two"
    assert desk.sent == []
