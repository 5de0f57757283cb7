"""What every key does, in the prompt, on a card, and while a run is going on."""

from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from cli.repl.repl import Repl

_ANSWERS = ("y", "r", "p", "a", "n")


def key_bindings(repl: "Repl") -> KeyBindings:
    """Return the bindings that are ours; prompt-toolkit's own (emacs or vi) lie beneath."""
    keys = KeyBindings()
    _for_cards(keys, repl)
    _for_the_prompt(keys, repl)
    _for_the_run(keys, repl)
    return keys


def _for_cards(keys: KeyBindings, repl: "Repl") -> None:
    on_card = Condition(lambda: repl.is_on_approval)

    @keys.add(Keys.Any, filter=on_card, eager=True)
    def _other(event: KeyPressEvent) -> None:
        """Swallow keys that mean nothing on a card."""

    for key in _ANSWERS:

        @keys.add(key, filter=on_card, eager=True)
        def _answer(event: KeyPressEvent) -> None:
            repl.answer_key(event.data.lower())

    @keys.add("e", filter=on_card, eager=True)
    def _edit(event: KeyPressEvent) -> None:
        repl.edit_command()

    @keys.add("w", filter=on_card, eager=True)
    def _why(event: KeyPressEvent) -> None:
        repl.write_why()

    @keys.add("escape", filter=on_card, eager=True)
    def _later(event: KeyPressEvent) -> None:
        repl.leave_card()

    @keys.add("tab", filter=Condition(lambda: repl.has_unfocused_card) & ~has_completions)
    def _focus(event: KeyPressEvent) -> None:
        repl.focus_card()


def _for_the_prompt(keys: KeyBindings, repl: "Repl") -> None:
    typing = Condition(lambda: not repl.is_on_approval)

    @keys.add("enter", filter=typing & ~is_searching)
    @keys.add("c-j", filter=typing & ~is_searching)
    def _accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        is_choosing = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if is_choosing and not buffer.text.startswith("/"):
            # The path that was chosen stands in the text; the request goes on.
            buffer.complete_state = None
            return
        repl.accept(buffer.text)

    @keys.add("escape", "enter", filter=typing)
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-x", "c-e", filter=typing)
    def _editor(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()

    @keys.add("c-d", filter=typing & Condition(lambda: not get_app().current_buffer.text))
    def _leave(event: KeyPressEvent) -> None:
        repl.leave()

    @keys.add("c-l")
    def _clear(event: KeyPressEvent) -> None:
        event.app.renderer.clear()


def _for_the_run(keys: KeyBindings, repl: "Repl") -> None:
    @keys.add("c-c")
    @keys.add("<sigint>")
    def _interrupt(event: KeyPressEvent) -> None:
        repl.interrupt()

    is_busy = Condition(lambda: repl.turns.is_busy and not repl.is_on_approval)

    @keys.add("c-s", filter=is_busy)
    def _steer(event: KeyPressEvent) -> None:
        repl.steer(event.current_buffer.text)

    @keys.add("escape", filter=is_busy & emacs_mode & ~has_completions & ~is_searching)
    def _stop_step(event: KeyPressEvent) -> None:
        repl.start(repl.stop_step())

    @keys.add("c-o")
    def _unfold(event: KeyPressEvent) -> None:
        repl.unfold()
