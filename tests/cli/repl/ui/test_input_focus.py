"""Who gets the keys: a draft is never lost, and no word reaches a card it was not written for."""

import asyncio

from prompt_toolkit.buffer import Buffer

from agent.protocol.commands import AnswerQuestion, ResolveApproval
from agent.protocol.events import ApprovalResolved, Event, QuestionAnswered
from cli.repl.ui.input_focus import InputFocus
from tests.cli.repl.ui.test_approval_cards import CardsHarness, approval, question
from tests.cli.screen.test_live_area import envelope


class FocusHarness:
    """Somebody who types, with cards that come and go."""

    def __init__(self) -> None:
        self.harness = CardsHarness()
        self.buffer = Buffer(multiline=True)
        self.focus = InputFocus(buffer=self.buffer, cards=self.harness.cards, refresh=lambda: None)

    def type_text(self, text: str) -> "FocusHarness":
        self.buffer.insert_text(text)
        return self

    def receive(self, *events: Event) -> "FocusHarness":
        for event in events:
            self.focus.on_event(envelope(event, "s1"))
        return self

    def mark_seen(self) -> "FocusHarness":
        self.harness.mark_seen()
        return self


def resolved(number: str = "1") -> ApprovalResolved:
    return ApprovalResolved(approval_id=number, decision="deny", by="person")


def test_a_card_does_not_take_the_keys_from_somebody_who_types() -> None:
    person = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    assert (person.focus.is_on_approval, person.focus.can_focus_card) == (False, True)


def test_a_card_that_was_not_seen_cannot_be_turned_to() -> None:
    person = FocusHarness().type_text("half a thou").receive(approval())
    assert not person.focus.can_focus_card


def test_a_draft_comes_back_after_the_answer() -> None:
    person = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    person.focus.focus_card()
    assert person.buffer.text == ""
    person.focus.answer_key("y")
    assert person.buffer.text == "half a thou"
    assert person.harness.sent == [ResolveApproval(approval_id="1", decision="allow", scope="once")]


def test_a_draft_comes_back_when_the_card_lapses() -> None:
    person = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    person.focus.focus_card()
    person.receive(resolved())
    assert person.buffer.text == "half a thou"


def test_a_draft_comes_back_when_the_run_ends_while_a_reason_is_written() -> None:
    person = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    person.focus.focus_card()
    person.focus.explain()
    person.type_text("because")
    person.focus.reset()
    assert person.buffer.text == "half a thou"
    assert person.harness.sent == []


def test_keys_in_the_first_moment_of_a_card_belong_to_the_prompt() -> None:
    person = FocusHarness().receive(approval())
    person.harness.cards.mark_drawn()
    assert person.focus.is_too_early
    person.focus.focus_prompt()
    person.type_text("y")
    assert (person.buffer.text, person.harness.sent, person.focus.is_on_approval) == ("y", [], False)


def test_another_command_for_a_card_that_lapsed_is_not_run_for_the_next_one() -> None:
    person = FocusHarness().receive(approval("1"), approval("2")).mark_seen()
    person.focus.edit()
    person.type_text(" --force")
    person.receive(resolved("1")).mark_seen()
    assert person.buffer.text == ""
    assert person.focus.accept("git push 1 --force") is False
    assert person.harness.sent == []


def test_words_for_a_question_that_lapsed_do_not_answer_the_next_one() -> None:
    person = FocusHarness().receive(question("red", "blue"), approval("2")).mark_seen()
    person.type_text("gre")
    person.receive(QuestionAnswered(question_id="q", answer=None))
    assert (person.buffer.text, person.harness.sent) == ("", [])


def test_an_empty_line_answers_no_question() -> None:
    person = FocusHarness().receive(question("red")).mark_seen()
    assert person.focus.accept("") is True
    assert person.harness.sent == []
    assert person.focus.accept("1") is True
    assert person.harness.sent == [AnswerQuestion(question_id="q", answer="red")]


def test_a_line_sent_before_the_question_was_seen_is_a_request() -> None:
    person = FocusHarness().receive(question("red"))
    assert person.focus.accept("2") is False


def test_a_refusal_without_words_stays_on_the_card() -> None:
    person = FocusHarness().receive(approval()).mark_seen()
    person.focus.explain()
    assert person.focus.accept("") is True
    assert (person.harness.sent, person.focus.is_on_approval) == ([], True)


def test_ctrl_c_gives_up_the_words_and_not_the_card() -> None:
    person = FocusHarness().receive(approval()).mark_seen()
    person.focus.explain()
    person.type_text("becau")
    assert person.focus.cancel_edit() is True
    assert (person.buffer.text, person.focus.is_on_approval) == ("", True)
    assert person.focus.cancel_edit() is False


async def test_a_question_of_our_own_keeps_what_stands_in_the_prompt() -> None:
    person = FocusHarness().type_text("half a thou")
    asking = asyncio.ensure_future(person.focus.ask("Which step?", ("a", "b")))
    await asyncio.sleep(0)
    person.mark_seen()
    assert person.buffer.text == ""
    assert person.focus.accept("2") is True
    assert (await asking, person.buffer.text) == ("b", "half a thou")
