"""What every key does, in the prompt, on a card, and while a run is going on."""

from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from cli.repl.repl import Repl
    from cli.repl.ui.tui import Tui

_ANSWERS = ("y", "r", "p", "a", "n")


def key_bindings(repl: "Repl", face: "Tui") -> KeyBindings:
    """Return the bindings that are ours; prompt-toolkit's own (emacs or vi) lie beneath."""
    keys = KeyBindings()
    _bind_cards(keys, face)
    _bind_prompt(keys, repl, face)
    _bind_run(keys, repl, face)
    return keys


def _bind_cards(keys: KeyBindings, face: "Tui") -> None:
    on_card = Condition(lambda: face.focus.is_on_approval)

    @keys.add(Keys.Any, filter=on_card, eager=True)
    def _other(event: KeyPressEvent) -> None:
        """Swallow keys that mean nothing on a card."""

    for key in _ANSWERS:

        @keys.add(key, filter=on_card, eager=True)
        def _answer(event: KeyPressEvent) -> None:
            face.focus.answer_key(event.data)

    @keys.add("e", filter=on_card, eager=True)
    def _edit(event: KeyPressEvent) -> None:
        face.focus.edit()

    @keys.add("w", filter=on_card, eager=True)
    def _why(event: KeyPressEvent) -> None:
        face.focus.explain()

    @keys.add("escape", filter=on_card, eager=True)
    def _later(event: KeyPressEvent) -> None:
        face.focus.focus_prompt()

    # Keys that came in one go were pasted, also by a terminal that does not say so.
    pasted = Condition(lambda: bool(get_app().key_processor.input_queue))

    @keys.add("tab", filter=Condition(lambda: face.focus.can_focus_card) & ~has_completions & ~pasted)
    def _focus(event: KeyPressEvent) -> None:
        face.focus.focus_card()

    # Last, so that they come before the keys of the card.
    not_meant = Condition(lambda: face.focus.is_too_early) | (on_card & pasted)

    @keys.add(Keys.Any, filter=not_meant, eager=True)
    def _typing(event: KeyPressEvent) -> None:
        """Let who was typing when the card came, or pastes, go on with the prompt."""
        face.focus.focus_prompt()
        if event.data.isprintable():
            face.buffer.insert_text(event.data)

    for key in (*_ANSWERS, "e", "w"):
        keys.add(key, filter=not_meant, eager=True)(_typing)

    @keys.add(Keys.BracketedPaste, eager=True)
    def _paste(event: KeyPressEvent) -> None:
        if face.focus.is_on_approval or face.focus.is_too_early:
            face.focus.focus_prompt()
        face.paste(event.data)


def _bind_prompt(keys: KeyBindings, repl: "Repl", face: "Tui") -> None:
    typing = Condition(lambda: not face.focus.is_on_approval)

    @keys.add("enter", filter=typing & ~is_searching)
    @keys.add("c-j", filter=typing & ~is_searching)
    def _accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        is_choosing = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if is_choosing and not buffer.text.startswith("/"):
            # The path that was chosen stands in the text; the request goes on.
            buffer.complete_state = None
            return
        face.accept()

    @keys.add("escape", "enter", filter=typing)
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-x", "c-e", filter=typing)
    def _editor(event: KeyPressEvent) -> None:
        face.open_editor()

    @keys.add("c-d", filter=typing & Condition(lambda: not get_app().current_buffer.text))
    def _leave(event: KeyPressEvent) -> None:
        repl.exit()

    @keys.add("c-z", eager=True)
    def _stop(event: KeyPressEvent) -> None:
        face.suspend()

    @keys.add("c-l", eager=True)
    def _clear(event: KeyPressEvent) -> None:
        face.terminal.clear()


def _bind_run(keys: KeyBindings, repl: "Repl", face: "Tui") -> None:
    # A program that has the terminal hears Ctrl-C itself.
    is_ours = Condition(lambda: not face.terminal.is_external_running)

    @keys.add("c-c", eager=True)
    @keys.add("<sigint>", filter=is_ours, eager=True)
    def _interrupt(event: KeyPressEvent) -> None:
        repl.interrupt()

    @keys.add("<sigint>", filter=~is_ours, eager=True)
    def _not_for_us(event: KeyPressEvent) -> None:
        """Go on."""

    is_busy = Condition(lambda: repl.queue.is_busy and not face.focus.is_on_approval)

    @keys.add("c-s", filter=is_busy)
    def _steer(event: KeyPressEvent) -> None:
        if repl.steer(face.full_text()):
            face.save_and_clear()

    @keys.add("escape", filter=is_busy & emacs_mode & ~has_completions & ~is_searching)
    def _stop_step(event: KeyPressEvent) -> None:
        repl.spawn(repl.stop_step())

    @keys.add("c-o", eager=True)
    def _unfold(event: KeyPressEvent) -> None:
        face.show_folded()
