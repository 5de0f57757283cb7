"""InputFocus: drafts are never lost, and no text answers a card it was not typed for."""

import asyncio

from prompt_toolkit.buffer import Buffer

from agent.protocol.commands import AnswerQuestion, ResolveApproval
from agent.protocol.events import ApprovalResolved, Event, QuestionAnswered
from cli.repl.ui.input_focus import WRITING_HINTS, InputFocus
from tests.cli.repl.ui.test_approval_cards import CardsHarness, approval, question
from tests.cli.screen.test_live_area import envelope


class FocusHarness:
    """A prompt and cards; `type_text` types, `receive` adds and resolves cards."""

    def __init__(self, *, is_busy: bool = False) -> None:
        self.cards = CardsHarness()
        self.buffer = Buffer(multiline=True)
        self.focus = InputFocus(
            buffer=self.buffer, cards=self.cards.cards, refresh=lambda: None, is_busy=lambda: is_busy
        )

    def type_text(self, text: str) -> "FocusHarness":
        self.buffer.insert_text(text)
        return self

    def receive(self, *events: Event) -> "FocusHarness":
        for event in events:
            self.focus.on_event(envelope(event, "s1"))
        return self

    def mark_seen(self) -> "FocusHarness":
        self.cards.mark_seen()
        return self


def resolved(number: str = "1") -> ApprovalResolved:
    return ApprovalResolved(approval_id=number, decision="deny", by="person")


def test_a_card_does_not_take_the_focus_from_a_user_who_is_typing() -> None:
    keyboard = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    assert (keyboard.focus.is_on_approval, keyboard.focus.can_focus_card) == (False, True)


def test_a_card_that_was_not_visible_yet_cannot_be_focused() -> None:
    keyboard = FocusHarness().type_text("half a thou").receive(approval())
    assert not keyboard.focus.can_focus_card


def test_the_draft_is_restored_after_the_answer() -> None:
    keyboard = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    keyboard.focus.focus_card()
    assert keyboard.buffer.text == ""
    keyboard.focus.answer_key("y")
    assert keyboard.buffer.text == "half a thou"
    assert keyboard.cards.sent == [ResolveApproval(approval_id="1", decision="allow", scope="once")]


def test_the_draft_is_restored_when_the_card_expires() -> None:
    keyboard = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    keyboard.focus.focus_card()
    keyboard.receive(resolved())
    assert keyboard.buffer.text == "half a thou"


def test_the_draft_is_restored_when_the_run_ends_while_a_reason_is_typed() -> None:
    keyboard = FocusHarness().type_text("half a thou").receive(approval()).mark_seen()
    keyboard.focus.focus_card()
    keyboard.focus.answer_key("w")
    keyboard.type_text("because")
    keyboard.focus.reset()
    assert keyboard.buffer.text == "half a thou"
    assert keyboard.cards.sent == []


def test_keys_pressed_just_as_a_card_appears_go_to_the_prompt() -> None:
    keyboard = FocusHarness().receive(approval())
    keyboard.cards.cards.mark_drawn()
    assert keyboard.focus.is_too_early
    keyboard.focus.focus_prompt()
    keyboard.type_text("y")
    assert (keyboard.buffer.text, keyboard.cards.sent, keyboard.focus.is_on_approval) == ("y", [], False)


def test_an_edited_command_for_an_expired_card_is_not_used_for_the_next() -> None:
    keyboard = FocusHarness().receive(approval("1"), approval("2")).mark_seen()
    keyboard.focus.answer_key("e")
    keyboard.type_text(" --force")
    keyboard.receive(resolved("1")).mark_seen()
    assert keyboard.buffer.text == ""
    assert keyboard.focus.accept("git push 1 --force") is False
    assert keyboard.cards.sent == []


def test_text_for_an_expired_question_does_not_answer_the_next() -> None:
    keyboard = FocusHarness().receive(question("red", "blue"), approval("2")).mark_seen()
    keyboard.type_text("gre")
    keyboard.receive(QuestionAnswered(question_id="q", answer=None))
    assert (keyboard.buffer.text, keyboard.cards.sent) == ("", [])


def test_an_empty_line_answers_no_question() -> None:
    keyboard = FocusHarness().receive(question("red")).mark_seen()
    assert keyboard.focus.accept("") is True
    assert keyboard.cards.sent == []
    assert keyboard.focus.accept("1") is True
    assert keyboard.cards.sent == [AnswerQuestion(question_id="q", answer="red")]


def test_a_line_sent_before_the_question_was_visible_is_a_request() -> None:
    keyboard = FocusHarness().receive(question("red"))
    assert keyboard.focus.accept("2") is False


def test_an_empty_reason_keeps_the_card_open() -> None:
    keyboard = FocusHarness().receive(approval()).mark_seen()
    keyboard.focus.answer_key("w")
    assert keyboard.focus.accept("") is True
    assert (keyboard.cards.sent, keyboard.focus.is_on_approval) == ([], True)


def test_ctrl_c_cancels_the_reason_and_not_the_card() -> None:
    keyboard = FocusHarness().receive(approval()).mark_seen()
    keyboard.focus.answer_key("w")
    keyboard.type_text("becau")
    assert keyboard.focus.cancel_edit() is True
    assert (keyboard.buffer.text, keyboard.focus.is_on_approval) == ("", True)
    assert keyboard.focus.cancel_edit() is False


async def test_a_question_of_the_repl_keeps_the_draft() -> None:
    keyboard = FocusHarness().type_text("half a thou")
    asking = asyncio.ensure_future(keyboard.focus.ask("Which step?", ("a", "b")))
    await asyncio.sleep(0)
    keyboard.mark_seen()
    assert keyboard.buffer.text == ""
    assert keyboard.focus.accept("2") is True
    assert (await asking, keyboard.buffer.text) == ("b", "half a thou")


def test_the_arrow_keys_mark_an_option_and_enter_chooses_it() -> None:
    keyboard = FocusHarness().receive(question("red", "blue")).mark_seen()
    keyboard.focus.mark(1)
    keyboard.focus.mark(1)
    assert keyboard.focus.lines(80) == ["<2> blue: Enter chooses it"]
    assert keyboard.focus.accept("") is True
    assert keyboard.cards.sent == [AnswerQuestion(question_id="q", answer="blue")]


def test_typed_words_are_the_answer_whatever_is_marked() -> None:
    keyboard = FocusHarness().receive(question("red", "blue")).mark_seen()
    keyboard.focus.mark(-1)
    keyboard.type_text("green")
    assert not keyboard.focus.can_mark
    assert keyboard.focus.accept("green") is True
    assert keyboard.cards.sent == [AnswerQuestion(question_id="q", answer="green")]


def test_a_mark_does_not_outlive_its_card_and_without_one_enter_allows_nothing() -> None:
    keyboard = FocusHarness().receive(approval("1"), approval("2")).mark_seen()
    keyboard.focus.mark(1)
    assert "<y> once" in keyboard.focus.lines(80)[0]
    keyboard.receive(resolved("1")).mark_seen()
    keyboard.focus.answer_marked()
    assert keyboard.cards.sent == []
    keyboard.focus.mark(-1)
    keyboard.focus.answer_marked()
    assert keyboard.focus.lines(80) == [WRITING_HINTS["reason"]]


def test_a_card_does_not_take_the_focus_while_a_list_is_open() -> None:
    keyboard = FocusHarness(is_busy=True).receive(approval()).mark_seen()
    assert not keyboard.focus.is_on_approval
