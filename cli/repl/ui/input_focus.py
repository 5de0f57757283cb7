"""Who gets the keys: the prompt, a card, or words for a card; what stood in the prompt is never lost on the way."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from agent.protocol.events import ApprovalRequested, Envelope, QuestionAsked
from cli.repl.ui.approval_cards import ApprovalCards
from tooling.safety.shell.parse import strip_invisible_characters

# What is written for a card: another command in place of the one asked for, or why not.
_WritingMode: TypeAlias = Literal["command", "reason"]
_HINTS: dict[_WritingMode, str] = {
    "command": "edit the command: Enter runs it, Ctrl-C gives it up",
    "reason": "say why not: Enter sends it, Ctrl-C gives it up",
}


class InputFocus:
    """The prompt's text and the cards, of which only one can be typed at."""

    def __init__(self, *, buffer: Buffer, cards: ApprovalCards, refresh: Callable[[], None]) -> None:
        self._buffer = buffer
        self._cards = cards
        self._refresh = refresh
        self._draft = Document()
        self._writing: _WritingMode | None = None

    @property
    def is_on_approval(self) -> bool:
        """Say whether keys answer an approval."""
        cards = self._cards
        return cards.has_focus and isinstance(cards.current, ApprovalRequested) and not self._writing

    @property
    def is_too_early(self) -> bool:
        """Say whether a card has only just come: who types now means the prompt."""
        return self._cards.has_focus and not self._cards.is_seen and not self._writing

    @property
    def can_focus_card(self) -> bool:
        """Say whether a card can be turned to, and has been there long enough for that to be meant."""
        return self._cards.current is not None and not self._cards.has_focus and self._cards.is_seen

    def lines(self, width: int) -> list[str]:
        """Return what the keys do for what waits."""
        return self._cards.lines(width, hint=_HINTS[self._writing] if self._writing else "")

    def on_event(self, envelope: Envelope) -> None:
        """Take in what is asked and what is answered."""
        before = self._cards.current_id if self._cards.has_focus else ""
        self._cards.on_event(envelope, is_typing=bool(self._buffer.text))
        self._discard_stale_text(before)

    def reset(self) -> None:
        """Let the cards of a run go that has ended."""
        before = self._cards.current_id if self._cards.has_focus else ""
        self._cards.clear()
        self._discard_stale_text(before)

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """Put a question of our own; what stands in the prompt waits."""
        self._save_draft()
        return await self._cards.ask(question, options)

    def answer_key(self, key: str) -> None:
        """Answer the approval on screen with one key."""
        self._cards.answer_key(key)
        self._after_answer()

    def edit(self) -> None:
        """Let the person write another command in place of the one asked for."""
        asked = self._cards.current
        if self._cards.is_ready and isinstance(asked, ApprovalRequested) and asked.tool == "run_command":
            # In the prompt invisible characters could not be seen, so what is edited is without them.
            self._write("command", strip_invisible_characters(asked.command))

    def explain(self) -> None:
        """Let the person say no in words."""
        if self._cards.is_ready:
            self._write("reason", "")

    def focus_card(self) -> None:
        """Turn from the prompt to what waits."""
        self._save_draft()
        self._cards.focus()
        self._refresh()

    def focus_prompt(self) -> None:
        """Turn back to the prompt; the card waits."""
        self._cards.unfocus()
        self._restore_draft()
        self._refresh()

    def accept(self, line: str) -> bool:
        """Take a line as an answer; False when it is not meant as one."""
        if self._writing:
            is_command, self._writing = self._writing == "command", None
            self._cards.answer_text(line, is_command=is_command)
        elif self._cards.is_ready and isinstance(self._cards.current, QuestionAsked):
            if not line:
                return True
            self._cards.answer_text(line)
        else:
            return False
        self._buffer.reset()
        self._after_answer()
        return True

    def cancel_edit(self) -> bool:
        """Give up the words for a card; False when there were none."""
        if self._writing is None:
            return False
        self._writing = None
        self._buffer.reset()
        self._refresh()
        return True

    def _write(self, what: _WritingMode, text: str) -> None:
        self._save_draft()
        self._writing = what
        self._buffer.set_document(Document(text))

    def _discard_stale_text(self, before: str) -> None:
        """Give up what was being typed for a card that is gone: it was not meant for the next one."""
        if before and before != self._cards.current_id:
            self._writing = None
            self._buffer.reset()
        if not self._cards.has_focus:
            self._restore_draft()

    def _after_answer(self) -> None:
        if not self._cards.has_focus:
            self._restore_draft()
        self._refresh()

    def _save_draft(self) -> None:
        if self._buffer.text:
            self._draft = self._buffer.document
            self._buffer.reset()

    def _restore_draft(self) -> None:
        if self._draft.text:
            self._buffer.set_document(self._draft)
            self._draft = Document()
