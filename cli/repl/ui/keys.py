"""Key bindings in the prompt, on a card, in a list, and during a run."""

from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import (
    Condition,
    has_completions,
    has_selection,
    vi_insert_mode,
    vi_navigation_mode,
    vi_replace_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from cli.repl.repl import Repl
    from cli.repl.ui.tui import Tui

_ANSWERS = ("y", "r", "p", "a", "n")
_PAGE_ROWS = 10
_MOVES = {"up": -1, "c-p": -1, "s-tab": -1, "down": 1, "c-n": 1, "tab": 1, "c-r": 1} | {
    "pageup": -_PAGE_ROWS,
    "pagedown": _PAGE_ROWS,
}
_ARROWS = {"up": -1, "left": -1, "down": 1, "right": 1}

# Keys that arrive together were pasted, or are an escape sequence such as that of Alt-Enter.
_has_more_keys = Condition(lambda: bool(get_app().key_processor.input_queue))


def key_bindings(repl: "Repl", ui: "Tui") -> KeyBindings:
    """Build the bindings on top of prompt-toolkit's own (emacs or vi)."""
    keys = KeyBindings()
    _bind_cards(keys, repl, ui)
    _bind_prompt(keys, repl, ui)
    _bind_run(keys, repl, ui)
    _bind_escape(keys, repl, ui)
    _bind_picker(keys, ui)
    return keys


def _bind_cards(keys: KeyBindings, repl: "Repl", ui: "Tui") -> None:
    on_card = Condition(lambda: ui.focus.is_on_approval and not ui.picker.is_open)

    @keys.add(Keys.Any, filter=on_card, eager=True)
    def _other(event: KeyPressEvent) -> None:
        """Ignore keys without a meaning on a card."""

    for key in (*_ANSWERS, "e", "w"):

        @keys.add(key, filter=on_card, eager=True)
        def _answer(event: KeyPressEvent) -> None:
            ui.focus.answer_key(event.data)

    @keys.add("enter", filter=on_card, eager=True)
    def _answer_marked(event: KeyPressEvent) -> None:
        ui.focus.answer_marked()

    @keys.add("c-d", filter=on_card, eager=True)
    def _quit(event: KeyPressEvent) -> None:
        repl.exit()

    @keys.add("v", filter=on_card, eager=True)
    def _view(event: KeyPressEvent) -> None:
        ui.view_card()

    can_mark = Condition(lambda: ui.focus.can_mark and not ui.picker.is_open)
    for key, step in _ARROWS.items():

        @keys.add(key, filter=can_mark, eager=True)
        def _mark(event: KeyPressEvent, step: int = step) -> None:
            ui.focus.mark(step)

    @keys.add("tab", filter=Condition(lambda: ui.focus.can_focus_card) & ~has_completions & ~_has_more_keys)
    def _focus(event: KeyPressEvent) -> None:
        ui.focus.focus_card()

    # Added last, so that they take precedence over the keys of the card.
    is_too_early = Condition(lambda: ui.focus.is_too_early)
    not_meant = is_too_early | (on_card & _has_more_keys)

    @keys.add(Keys.Any, filter=not_meant, eager=True)
    def _typing(event: KeyPressEvent) -> None:
        """Send keys to the prompt if the user was already typing, or pastes."""
        ui.focus.focus_prompt()
        if event.data.isprintable():
            ui.buffer.insert_text(event.data)

    for key in (*_ANSWERS, "e", "w", "v", "enter"):
        keys.add(key, filter=not_meant, eager=True)(_typing)
    # Arrow keys that arrive together are held down.
    for key in _ARROWS:
        keys.add(key, filter=is_too_early, eager=True)(_typing)

    @keys.add(Keys.BracketedPaste, eager=True)
    def _paste(event: KeyPressEvent) -> None:
        if ui.focus.is_on_approval or ui.focus.is_too_early:
            ui.focus.focus_prompt()
        ui.paste(event.data)


def _bind_prompt(keys: KeyBindings, repl: "Repl", ui: "Tui") -> None:
    typing = Condition(lambda: not ui.focus.is_on_approval)

    @keys.add("enter", filter=typing)
    # Before the program could change its mode, the terminal turned Enter into a line feed.
    @keys.add("c-j", filter=typing & Condition(lambda: ui.terminal.is_typed_ahead))
    def _accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        is_choosing = state is not None and state.current_completion is not None and len(state.completions) > 1
        if is_choosing and not buffer.text.startswith("/"):
            # The chosen path is already in the text; keep editing the request.
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\") and not buffer.text.startswith("!"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            ui.accept()

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing & Condition(lambda: not ui.terminal.is_typed_ahead))
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-x", "c-e", filter=typing)
    def _editor(event: KeyPressEvent) -> None:
        ui.open_editor()

    can_search = typing & Condition(lambda: not ui.cards.has_focus)

    @keys.add("c-r", filter=can_search & ~vi_navigation_mode)
    @keys.add("/", filter=can_search & vi_navigation_mode)
    @keys.add("?", filter=can_search & vi_navigation_mode)
    def _search(event: KeyPressEvent) -> None:
        ui.search_history()

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
    # An external program in the foreground receives Ctrl-C itself.
    owns_terminal = Condition(lambda: not ui.terminal.is_external_running)

    @keys.add("c-c", eager=True)
    @keys.add("<sigint>", filter=owns_terminal, eager=True)
    def _interrupt(event: KeyPressEvent) -> None:
        repl.interrupt()

    @keys.add("<sigint>", filter=~owns_terminal, eager=True)
    def _not_for_us(event: KeyPressEvent) -> None:
        """Ignore the key."""

    @keys.add("c-s", filter=Condition(lambda: not ui.focus.is_on_approval))
    def _steer(event: KeyPressEvent) -> None:
        if repl.steer(ui.full_text()):
            ui.save_and_clear()

    @keys.add("s-tab", filter=~has_completions)
    def _mode(event: KeyPressEvent) -> None:
        repl.cycle_mode()

    @keys.add("c-o", eager=True)
    def _unfold(event: KeyPressEvent) -> None:
        ui.show_folded()


def _bind_escape(keys: KeyBindings, repl: "Repl", ui: "Tui") -> None:
    """Bind Esc alone: eagerly, so that a key pressed after it is never treated as the rest of a sequence."""
    # Two quick ones are not a sequence either.
    is_alone = Condition(lambda: all(key.key == Keys.Escape for key in get_app().key_processor.input_queue))
    edits_in_vi = vi_insert_mode | vi_replace_mode | (vi_navigation_mode & has_selection)

    @keys.add("escape", filter=is_alone, eager=True)
    def _escape(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if ui.focus.is_on_approval:
            ui.focus.focus_prompt()
        elif edits_in_vi():
            if not has_selection():
                buffer.cursor_position += buffer.document.get_cursor_left_position()
            buffer.exit_selection()
            event.app.vi_state.input_mode = InputMode.NAVIGATION
        elif has_completions():
            buffer.cancel_completion()
        elif ui.focus.has_own_question:
            ui.focus.decline_own()
        elif repl.asides.is_open:
            repl.asides.cancel()
        elif repl.queue.is_busy:
            if not ui.focus.has_card:
                repl.queue.interrupt()
        # Not a sequence of two keys: a single Esc would have to wait too long for the second one.
        elif repl.is_idle and not buffer.text and ui.is_second_escape():
            repl.accept("/rewind")


def _bind_picker(keys: KeyBindings, ui: "Tui") -> None:
    """Bind the keys of an open list; added last, so that they take precedence."""
    is_picking = Condition(lambda: ui.picker.is_open)

    for key, rows in _MOVES.items():

        @keys.add(key, filter=is_picking, eager=True)
        def _move(event: KeyPressEvent, rows: int = rows) -> None:
            ui.picker.move(rows)

    @keys.add("enter", filter=is_picking, eager=True)
    @keys.add("c-j", filter=is_picking, eager=True)
    def _choose(event: KeyPressEvent) -> None:
        ui.picker.choose()

    @keys.add("escape", filter=is_picking & ~_has_more_keys, eager=True)
    @keys.add("c-g", filter=is_picking, eager=True)
    def _leave(event: KeyPressEvent) -> None:
        ui.picker.cancel()
