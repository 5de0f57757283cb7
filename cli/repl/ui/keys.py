"""Key bindings in the prompt, on a card, and during a run."""

from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, is_searching, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from cli.repl.repl import Repl
    from cli.repl.ui.tui import Tui

_ANSWERS = ("y", "r", "p", "a", "n")


def key_bindings(repl: "Repl", ui: "Tui") -> KeyBindings:
    """Build the bindings on top of prompt-toolkit's own (emacs or vi)."""
    keys = KeyBindings()
    _bind_cards(keys, ui)
    _bind_prompt(keys, repl, ui)
    _bind_run(keys, repl, ui)
    return keys


def _bind_cards(keys: KeyBindings, ui: "Tui") -> None:
    on_card = Condition(lambda: ui.focus.is_on_approval)

    @keys.add(Keys.Any, filter=on_card, eager=True)
    def _other(event: KeyPressEvent) -> None:
        """Ignore keys without a meaning on a card."""

    for key in _ANSWERS:

        @keys.add(key, filter=on_card, eager=True)
        def _answer(event: KeyPressEvent) -> None:
            ui.focus.answer_key(event.data)

    @keys.add("e", filter=on_card, eager=True)
    def _edit(event: KeyPressEvent) -> None:
        ui.focus.edit()

    @keys.add("w", filter=on_card, eager=True)
    def _why(event: KeyPressEvent) -> None:
        ui.focus.explain()

    @keys.add("v", filter=on_card, eager=True)
    def _view(event: KeyPressEvent) -> None:
        ui.view_card()

    @keys.add("escape", filter=on_card, eager=True)
    def _later(event: KeyPressEvent) -> None:
        ui.focus.focus_prompt()

    # Keys that arrive together were pasted, even if the terminal does not mark pastes.
    pasted = Condition(lambda: bool(get_app().key_processor.input_queue))

    @keys.add("tab", filter=Condition(lambda: ui.focus.can_focus_card) & ~has_completions & ~pasted)
    def _focus(event: KeyPressEvent) -> None:
        ui.focus.focus_card()

    # Added last, so that they take precedence over the keys of the card.
    not_meant = Condition(lambda: ui.focus.is_too_early) | (on_card & pasted)

    @keys.add(Keys.Any, filter=not_meant, eager=True)
    def _typing(event: KeyPressEvent) -> None:
        """Send keys to the prompt if the user was already typing, or pastes."""
        ui.focus.focus_prompt()
        if event.data.isprintable():
            ui.buffer.insert_text(event.data)

    for key in (*_ANSWERS, "e", "w", "v"):
        keys.add(key, filter=not_meant, eager=True)(_typing)

    @keys.add(Keys.BracketedPaste, eager=True)
    def _paste(event: KeyPressEvent) -> None:
        if ui.focus.is_on_approval or ui.focus.is_too_early:
            ui.focus.focus_prompt()
        ui.paste(event.data)


def _bind_prompt(keys: KeyBindings, repl: "Repl", ui: "Tui") -> None:
    typing = Condition(lambda: not ui.focus.is_on_approval)

    @keys.add("enter", filter=typing & ~is_searching)
    @keys.add("c-j", filter=typing & ~is_searching)
    def _accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        is_choosing = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if is_choosing and not buffer.text.startswith("/"):
            # The chosen path is in the text already; keep editing the request.
            buffer.complete_state = None
            return
        ui.accept()

    @keys.add("escape", "enter", filter=typing)
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-x", "c-e", filter=typing)
    def _editor(event: KeyPressEvent) -> None:
        ui.open_editor()

    @keys.add("c-d", filter=typing & Condition(lambda: not get_app().current_buffer.text))
    def _quit(event: KeyPressEvent) -> None:
        repl.exit()

    @keys.add("c-z", eager=True)
    def _suspend(event: KeyPressEvent) -> None:
        ui.suspend()

    @keys.add("c-l", eager=True)
    def _clear(event: KeyPressEvent) -> None:
        ui.terminal.clear()


def _bind_run(keys: KeyBindings, repl: "Repl", ui: "Tui") -> None:
    # An external program in the foreground gets Ctrl-C itself.
    owns_terminal = Condition(lambda: not ui.terminal.is_external_running)

    @keys.add("c-c", eager=True)
    @keys.add("<sigint>", filter=owns_terminal, eager=True)
    def _interrupt(event: KeyPressEvent) -> None:
        repl.interrupt()

    @keys.add("<sigint>", filter=~owns_terminal, eager=True)
    def _not_for_us(event: KeyPressEvent) -> None:
        """Ignore it."""

    is_busy = Condition(lambda: repl.queue.is_busy and not ui.focus.is_on_approval)

    @keys.add("c-s", filter=is_busy)
    def _steer(event: KeyPressEvent) -> None:
        if repl.steer(ui.full_text()):
            ui.save_and_clear()

    has_card = Condition(lambda: ui.focus.has_card)
    # In vi mode the first Esc ends inserting.
    can_escape = (emacs_mode | vi_navigation_mode) & ~is_searching

    @keys.add("escape", filter=can_escape & has_completions)
    def _close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("escape", filter=can_escape & ~has_completions & Condition(lambda: ui.focus.has_own_question))
    def _decline(event: KeyPressEvent) -> None:
        ui.focus.decline_own()

    @keys.add("escape", filter=can_escape & ~has_completions & ~has_card & is_busy)
    def _redirect(event: KeyPressEvent) -> None:
        repl.queue.interrupt()

    is_empty = Condition(lambda: repl.is_idle and not ui.buffer.text)

    # Not a sequence of two keys: a single Esc would have to wait for the second one longer than a user wants to.
    @keys.add("escape", filter=can_escape & ~has_card & is_empty)
    def _rewind(event: KeyPressEvent) -> None:
        if ui.is_second_escape():
            repl.accept("/rewind")

    @keys.add("s-tab", filter=~has_completions & ~is_searching)
    def _mode(event: KeyPressEvent) -> None:
        repl.cycle_mode()

    @keys.add("c-o", eager=True)
    def _unfold(event: KeyPressEvent) -> None:
        ui.show_folded()
