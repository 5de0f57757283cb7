"""Who gets the keys: a draft is never lost, and no word reaches a card it was not written for."""

import asyncio

from prompt_toolkit.buffer import Buffer

from agent.protocol.commands import AnswerQuestion, ResolveApproval
from agent.protocol.events import ApprovalResolved, Event, QuestionAnswered
from cli.repl.ui.input_focus import Answering
from tests.cli.repl.ui.test_approval_cards import Desk, approval, question
from tests.cli.screen.test_live_area import envelope


class Person:
    """Somebody who types, with cards that come and go."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.buffer = Buffer(multiline=True)
        self.answering = Answering(buffer=self.buffer, cards=self.desk.cards, refresh=lambda: None)

    def types(self, text: str) -> "Person":
        self.buffer.insert_text(text)
        return self

    def hears(self, *events: Event) -> "Person":
        for event in events:
            self.answering.hear(envelope(event, "s1"))
        return self

    def looks(self) -> "Person":
        self.desk.is_seen()
        return self


def resolved(number: str = "1") -> ApprovalResolved:
    return ApprovalResolved(approval_id=number, decision="deny", by="person")


def test_a_card_does_not_take_the_keys_from_somebody_who_types() -> None:
    person = Person().types("half a thou").hears(approval()).looks()
    assert (person.answering.is_on_approval, person.answering.is_awaited) == (False, True)


def test_a_card_that_was_not_seen_cannot_be_turned_to() -> None:
    person = Person().types("half a thou").hears(approval())
    assert not person.answering.is_awaited


def test_a_draft_comes_back_after_the_answer() -> None:
    person = Person().types("half a thou").hears(approval()).looks()
    person.answering.turn_to_card()
    assert person.buffer.text == ""
    person.answering.key("y")
    assert person.buffer.text == "half a thou"
    assert person.desk.sent == [ResolveApproval(approval_id="1", decision="allow", scope="once")]


def test_a_draft_comes_back_when_the_card_lapses() -> None:
    person = Person().types("half a thou").hears(approval()).looks()
    person.answering.turn_to_card()
    person.hears(resolved())
    assert person.buffer.text == "half a thou"


def test_a_draft_comes_back_when_the_run_ends_while_a_reason_is_written() -> None:
    person = Person().types("half a thou").hears(approval()).looks()
    person.answering.turn_to_card()
    person.answering.explain()
    person.types("because")
    person.answering.forget()
    assert person.buffer.text == "half a thou"
    assert person.desk.sent == []


def test_keys_in_the_first_moment_of_a_card_belong_to_the_prompt() -> None:
    person = Person().hears(approval())
    person.desk.cards.drawn()
    assert person.answering.is_too_early
    person.answering.turn_to_prompt()
    person.types("y")
    assert (person.buffer.text, person.desk.sent, person.answering.is_on_approval) == ("y", [], False)


def test_another_command_for_a_card_that_lapsed_is_not_run_for_the_next_one() -> None:
    person = Person().hears(approval("1"), approval("2")).looks()
    person.answering.edit()
    person.types(" --force")
    person.hears(resolved("1")).looks()
    assert person.buffer.text == ""
    assert person.answering.accept("git push 1 --force") is False
    assert person.desk.sent == []


def test_words_for_a_question_that_lapsed_do_not_answer_the_next_one() -> None:
    person = Person().hears(question("red", "blue"), approval("2")).looks()
    person.types("gre")
    person.hears(QuestionAnswered(question_id="q", answer=None))
    assert (person.buffer.text, person.desk.sent) == ("", [])


def test_an_empty_line_answers_no_question() -> None:
    person = Person().hears(question("red")).looks()
    assert person.answering.accept("") is True
    assert person.desk.sent == []
    assert person.answering.accept("1") is True
    assert person.desk.sent == [AnswerQuestion(question_id="q", answer="red")]


def test_a_line_sent_before_the_question_was_seen_is_a_request() -> None:
    person = Person().hears(question("red"))
    assert person.answering.accept("2") is False


def test_a_refusal_without_words_stays_on_the_card() -> None:
    person = Person().hears(approval()).looks()
    person.answering.explain()
    assert person.answering.accept("") is True
    assert (person.desk.sent, person.answering.is_on_approval) == ([], True)


def test_ctrl_c_gives_up_the_words_and_not_the_card() -> None:
    person = Person().hears(approval()).looks()
    person.answering.explain()
    person.types("becau")
    assert person.answering.stop_writing() is True
    assert (person.buffer.text, person.answering.is_on_approval) == ("", True)
    assert person.answering.stop_writing() is False


async def test_a_question_of_our_own_keeps_what_stands_in_the_prompt() -> None:
    person = Person().types("half a thou")
    asking = asyncio.ensure_future(person.answering.ask("Which step?", ("a", "b")))
    await asyncio.sleep(0)
    person.looks()
    assert person.buffer.text == ""
    assert person.answering.accept("2") is True
    assert (await asking, person.buffer.text) == ("b", "half a thou")
