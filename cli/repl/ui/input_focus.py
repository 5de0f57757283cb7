"""Decides what receives keys: the prompt, a card, or text for a card; preserves the draft in the prompt."""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from agent.protocol.envelope import Envelope
from agent.protocol.events import ApprovalRequested, QuestionAsked
from cli.repl.ui.approval_cards import ApprovalCards
from cli.screen.cards import EDITABLE_TOOLS
from cli.screen.colors import to_single_line
from tooling.safety.hidden_characters import strip_invisible_characters

# Text typed for a card: a replacement command, or a reason for declining.
_WritingMode: TypeAlias = Literal["command", "reason"]
WRITING_HINTS: dict[_WritingMode, str] = {
    "command": "edit the command: Enter runs it, Ctrl-C cancels",
    "reason": "reason for declining: Enter sends it, Ctrl-C cancels",
}
_ANY_WIDTH = 1000


class InputFocus:
    """Switches the keyboard between the prompt and the cards."""

    def __init__(
        self,
        *,
        buffer: Buffer,
        cards: ApprovalCards,
        refresh: Callable[[], None],
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create it; while `is_busy`, the prompt is used for something else and no card takes the focus."""
        self._buffer = buffer
        self._is_busy = is_busy
        # The answer marked with the arrow keys, and the card it belongs to.
        self._marked_for = ("", 0)
        self._cards = cards
        self._refresh = refresh
        self._draft = Document()
        self._writing: _WritingMode | None = None

    @property
    def is_on_approval(self) -> bool:
        """Whether keys answer an approval."""
        cards = self._cards
        return cards.has_focus and isinstance(cards.current, ApprovalRequested) and not self._writing

    @property
    def has_card(self) -> bool:
        """Whether an approval or a question is open, focused or not."""
        return self._cards.current is not None

    @property
    def has_own_question(self) -> bool:
        """Whether the REPL itself asks something."""
        return self._cards.has_own_question

    @property
    def is_too_early(self) -> bool:
        """Whether the card has only just appeared, so that keys are meant for the prompt."""
        return self._cards.has_focus and not self._cards.is_seen and not self._writing

    @property
    def can_focus_card(self) -> bool:
        """Whether there is an unfocused card that was visible long enough."""
        return self._cards.current is not None and not self._cards.has_focus and self._cards.is_seen

    @property
    def can_mark(self) -> bool:
        """Whether the arrow keys choose an answer: of an approval, or of a question while nothing is typed."""
        request = self._cards.current
        if not self._cards.is_ready or self._writing:
            return False
        return not isinstance(request, QuestionAsked) or bool(request.options and not self._buffer.text)

    def lines(self, width: int) -> list[str]:
        """Return the key help of the current card, with the answer that the arrow keys have marked."""
        hint = WRITING_HINTS[self._writing] if self._writing else ""
        request, marked = self._cards.current, self._marked
        if marked is None or not self.can_mark:
            return self._cards.lines(width, hint=hint)
        if isinstance(request, QuestionAsked):
            number, option = marked + 1, request.options[marked]
            return self._cards.lines(width, hint=to_single_line(f"<{number}> {option}: Enter chooses it"))
        key = self._keys()[marked]
        return [line.replace(f"[{key}]", f"<{key}>", 1) for line in self._cards.lines(width)]

    @property
    def _marked(self) -> int | None:
        card, index = self._marked_for
        return index if card and card == self._cards.current_id else None

    def mark(self, step: int) -> None:
        """Move the mark to the next or the previous answer."""
        request = self._cards.current
        count = len(request.options) if isinstance(request, QuestionAsked) else len(self._keys())
        if count:
            first = 0 if step > 0 else count - 1
            index = first if self._marked is None else (self._marked + step) % count
            self._marked_for = (self._cards.current_id, index)
            self._refresh()

    def answer_marked(self) -> None:
        """Answer an approval as marked; without a mark nothing happens, so that no stray Enter allows anything."""
        if self._marked is not None:
            self.answer_key(self._keys()[self._marked])

    def _keys(self) -> list[str]:
        """Return the keys that answer the current approval, as its key help shows them."""
        return re.findall(r"\[([a-z])\]", "\n".join(self._cards.lines(_ANY_WIDTH)))

    def on_event(self, envelope: Envelope) -> None:
        """Update the cards; discard text typed for a card that is gone."""
        before = self._cards.current_id if self._cards.has_focus else ""
        self._cards.on_event(envelope, is_typing=self._is_busy() or bool(self._buffer.text))
        self._discard_stale_text(before)

    def reset(self) -> None:
        """Drop the cards of a run that has ended."""
        before = self._cards.current_id if self._cards.has_focus else ""
        self._cards.clear()
        self._discard_stale_text(before)

    async def ask(self, question: str, options: tuple[str, ...], *, is_expected: bool = False) -> str:
        """Ask a question of the REPL itself; the draft is restored afterwards."""
        self._save_draft()
        return await self._cards.ask(question, options, is_expected=is_expected)

    def answer_key(self, key: str) -> None:
        """Answer the current approval with one key, or start typing the text of the answer."""
        if key == "e":
            self._edit()
        elif key == "w":
            self._explain()
        else:
            self._cards.answer_key(key)
            self._after_answer()

    def _edit(self) -> None:
        """Start editing the command of the current approval."""
        request = self._cards.current
        if self._cards.is_ready and isinstance(request, ApprovalRequested) and request.tool in EDITABLE_TOOLS:
            # Invisible characters could not be seen in the prompt, so they are removed.
            self._write("command", strip_invisible_characters(request.command))

    def _explain(self) -> None:
        """Start typing a reason for declining."""
        if self._cards.is_ready:
            self._write("reason", "")

    def focus_card(self) -> None:
        """Move the focus from the prompt to the card."""
        self._save_draft()
        self._cards.focus()
        self._refresh()

    def focus_prompt(self) -> None:
        """Move the focus back to the prompt; the card stays."""
        self._cards.unfocus()
        self._restore_draft()
        self._refresh()

    def accept(self, line: str) -> bool:
        """Use a line as the answer; return False if it is not meant for a card."""
        if self._writing:
            is_command, self._writing = self._writing == "command", None
            self._cards.answer_text(line, is_command=is_command)
        elif self._cards.is_ready and isinstance(self._cards.current, QuestionAsked):
            marked = "" if self._marked is None else str(self._marked + 1)
            if not line and not marked:
                return True
            self._cards.answer_text(line or marked)
        else:
            return False
        self._buffer.reset()
        self._after_answer()
        return True

    def cancel_edit(self) -> bool:
        """Cancel typing text for a card, or a question of the REPL itself; return False if there is neither."""
        if self._writing is None:
            return self.decline_own()
        self._writing = None
        self._buffer.reset()
        self._refresh()
        return True

    def decline_own(self) -> bool:
        """Decline a question of the REPL itself; return False if none is shown."""
        if not self._cards.decline_own():
            return False
        self._buffer.reset()
        self._after_answer()
        return True

    def _write(self, mode: _WritingMode, text: str) -> None:
        self._save_draft()
        self._writing = mode
        self._buffer.set_document(Document(text))

    def _discard_stale_text(self, before: str) -> None:
        """Clear text typed for a card that is gone; it is not meant for the next one."""
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
