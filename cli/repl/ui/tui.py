"""The REPL on a full terminal: transcript above; live lines, cards and the prompt below."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition

from agent.config.user_dirs import data_dir
from agent.protocol.envelope import Envelope
from agent.protocol.events import RunCompleted
from agent.vocabulary.plan import PlanStep
from cli.repl.input import Pastes, open_history
from cli.repl.mentions import image_mentions
from cli.repl.slash_commands import Candidate, SlashCommand
from cli.repl.ui.approval_cards import MIN_SEEN_S, ApprovalCards
from cli.repl.ui.completion import BackgroundCompleter, FileIndex, ReplCompleter
from cli.repl.ui.frame_output import RESET_TERMINAL
from cli.repl.ui.input_focus import InputFocus
from cli.repl.ui.keys import key_bindings
from cli.repl.ui.notifications import notification_for
from cli.repl.ui.picker import Picker
from cli.repl.ui.terminal import Terminal, TerminalCapabilities
from cli.repl.ui.terminal_features import WindowTitle, reflows_lines
from cli.screen.ascii_fallback import supports_unicode
from cli.screen.colors import clip
from cli.screen.links import link_writer
from cli.screen.live_area import LiveArea
from cli.screen.plan_view import PlanView
from cli.screen.sanitize import strip_invisible
from cli.screen.transcript import Transcript
from tooling.safety.secrets.redact import Redactor

if TYPE_CHECKING:
    from cli.repl.repl import Repl

SEARCH_TITLE = "search history"
WORKING, NEEDS_ANSWER = "working", "needs an answer"
_FOLD_RULE = "─" * 8
_DOUBLE_ESCAPE_S = 1.0
_MIN_ROWS_FOR_RULE = 8
_RULE = "─"


class Tui:
    """Shows events and reads input concurrently."""

    has_lists = True

    def __init__(self, repl: "Repl") -> None:
        state, paint = repl.state, repl.paint
        settings = state.read_settings()
        self._repl = repl
        self._paint = paint
        self._live_area = LiveArea(paint=paint, stop_key="Esc")
        self._pastes = Pastes()
        self._escaped_at = float("-inf")
        is_writing = Condition(lambda: not self.picker.is_open)
        self._completer = self._build_completer()
        self.buffer = Buffer(
            history=open_history(data_dir(state.environ), Redactor(settings.secrets).redact),
            completer=self._completer,
            complete_while_typing=is_writing,
            auto_suggest=ConditionalAutoSuggest(AutoSuggestFromHistory(), is_writing),
            multiline=True,
            enable_history_search=True,
        )
        self.terminal = Terminal(
            buffer=self.buffer,
            live_lines=self._live_lines,
            status=self._status,
            keys=key_bindings(repl, self),
            capabilities=TerminalCapabilities(
                term=state.term,
                has_color=paint.has_color,
                has_unicode=supports_unicode(state.environ),
                reflows_lines=reflows_lines(state.environ),
            ),
            is_vi=settings.settings.editing_mode == "vi",
            is_animating=lambda: self._live_area.is_running,
            on_drawn=self._on_drawn,
        )
        self._add_links = link_writer(state.environ, state.cwd, lambda: self.terminal.columns)
        self._title = WindowTitle(
            environ=state.environ, folder=state.cwd.name, is_wanted=settings.settings.terminal_title
        )
        self.cards = ApprovalCards(
            send=repl.queue.send,
            show=self._show_card,
            paint=paint,
            size=lambda: (self.terminal.columns, self.terminal.rows),
        )
        self.picker = Picker(buffer=self.buffer, paint=paint, refresh=self.terminal.refresh)
        self.focus = InputFocus(
            buffer=self.buffer,
            cards=self.cards,
            refresh=self.terminal.refresh,
            is_busy=lambda: self.picker.is_open,
        )
        self._transcript = Transcript(
            write=self.print_line,
            width=lambda: self.terminal.columns,
            paint=paint,
            markdown=self._markdown,
            expand_hint=" (Ctrl-O)",
        )

    @property
    def plan(self) -> PlanView:
        """The plan of the latest run."""
        return self._transcript.plan

    @property
    def columns(self) -> int:
        return self.terminal.columns

    @property
    def running_steps(self) -> tuple[str, ...]:
        return self._live_area.running_steps

    async def run(self) -> int:
        """Show the prompt until the user quits; return the exit code."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self.suspend)
        self.terminal.send_sequence(self._title.begin())
        return await self.terminal.run()

    def suspend(self) -> None:
        """Suspend as other programs do on Ctrl-Z, and return the terminal to the shell until `fg`."""
        if self.terminal.is_external_running:
            # The external program got the signal as well, and the shell waits until we stop, too.
            with self._default_sigtstp():
                signal.raise_signal(signal.SIGTSTP)
        else:
            self._repl.spawn(self._suspend())

    async def _suspend(self) -> None:
        with self._default_sigtstp():
            # Signal this very thread: it must not take the terminal back before the process has stopped.
            self.terminal.send_sequence(self._title.end())
            await self.terminal.run_external(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTSTP))
            self.terminal.send_sequence(self._title.begin())

    @contextmanager
    def _default_sigtstp(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        try:
            yield
        finally:
            loop.add_signal_handler(signal.SIGTSTP, self.suspend)

    def exit(self, exit_code: int) -> None:
        self.terminal.exit(exit_code)

    def close(self) -> None:
        self.terminal.close()
        self.terminal.send_sequence(self._title.end())

    def print_line(self, text: str) -> None:
        self.terminal.print(self._add_links(text))

    def echo(self, text: str) -> None:
        """Print the typed text, separated from the output above by an empty line."""
        self.print_line(f"\n{text}")

    def on_event(self, envelope: Envelope) -> None:
        was_silent = not self._transcript.partial_answer
        self.focus.on_event(envelope)
        self._live_area.on_event(envelope)
        self._transcript.on_event(envelope)
        self.terminal.send_sequence(notification_for(envelope.event, term=self._repl.state.term))
        if isinstance(envelope.event, RunCompleted):
            self.focus.reset()
        # The first word of an answer does not wait for the next frame.
        self.terminal.refresh(is_urgent=was_silent and bool(self._transcript.partial_answer))

    def on_request_ended(self) -> None:
        """Clear the cards and live lines of the run that ended."""
        self.focus.reset()
        self._live_area.reset()

    def show_ready(self) -> None:
        """Redraw the prompt."""
        self.terminal.refresh()

    def show_plan(self, steps: Sequence[PlanStep]) -> None:
        """Draw a plan that has not started yet."""
        self._transcript.show_plan(steps)

    def _build_completer(self) -> BackgroundCompleter:
        repl = self._repl
        completer = ReplCompleter(
            commands=lambda: repl.commands,
            arguments=self._arguments,
            files=FileIndex(repl.state.cwd, repl.state.environ),
            words=repl.complete_word,
        )
        return BackgroundCompleter(completer, lambda: repl.commands)

    def refresh_completions(self) -> None:
        """Offer newly loaded commands if a command name is being typed."""
        self._completer.refresh(self.buffer)

    async def pick(self, title: str, candidates: Sequence[Candidate]) -> str | None:
        """Let the user choose from a list; return None if nothing was chosen."""
        if self.cards.has_focus:
            self.focus.focus_prompt()
        chosen: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.picker.open(
            title,
            candidates,
            lambda choice: None if chosen.done() else chosen.set_result(choice),
            min_seen_s=MIN_SEEN_S,
        )
        try:
            return await chosen
        finally:
            # Also if the run of the list has ended meanwhile.
            if not chosen.done() or chosen.cancelled():
                self.picker.cancel()

    def search_history(self) -> None:
        """Let the user find an earlier request; the chosen one is put into the prompt."""
        history = self.buffer.history
        # Newest first; before the first frame the file has not been read.
        lines = history.get_strings()[::-1] or list(history.load_history_strings())
        self.picker.open(SEARCH_TITLE, [(line, "") for line in dict.fromkeys(lines)], self._recall)

    def _recall(self, line: str | None) -> None:
        if line is not None:
            self.set_text(line)

    async def ask(self, question: str, options: tuple[str, ...], *, is_expected: bool = False) -> str:
        """Ask the user and return the answer; an expected question may be answered at once."""
        with self._live_area.waiting():
            return await self.focus.ask(question, options, is_expected=is_expected)

    async def run_external(self, program: Callable[[], None]) -> None:
        """Call `program` while it owns the terminal, then reset the terminal's modes."""

        def run_and_reset() -> None:
            try:
                program()
            finally:
                # A closed terminal needs no reset.
                with suppress(OSError):
                    os.write(sys.stdout.fileno(), RESET_TERMINAL)

        await self.terminal.run_external(run_and_reset)

    def accept(self) -> None:
        """Submit the prompt's text: as an answer to a card, or to the REPL."""
        if self.focus.accept(self.full_text().strip()):
            return
        text, is_pasted = self.full_text(), self._pastes.begins(self.buffer.text)
        self.save_and_clear()
        self._repl.accept(text, is_pasted=is_pasted)

    def full_text(self) -> str:
        """Return the text in the prompt with pastes expanded."""
        return self._pastes.expand(self.buffer.text)

    def save_and_clear(self) -> None:
        """Clear the prompt and add its text to the history."""
        if (text := self.full_text()).strip():
            self.buffer.history.append_string(text)
        self.clear()

    def paste(self, pasted: str) -> None:
        """Insert pasted text into the prompt."""
        # Invisible characters would be run or sent without having been seen.
        text = strip_invisible(pasted)
        if mentions := image_mentions(text):
            is_in_word = self.buffer.document.char_before_cursor.strip()
            text = f" {mentions}" if is_in_word else mentions
        inserted = self._pastes.add(text)
        if not self.buffer.document.text_before_cursor.strip():
            self._pastes.mark_beginning(inserted.lstrip())
        self.buffer.insert_text(inserted)

    def clear_text(self) -> bool:
        """Clear the prompt; return False if it was empty."""
        has_text = bool(self.buffer.text)
        self.clear()
        return has_text

    def set_text(self, text: str, *, is_request: bool = False) -> bool:
        """Put a text into the prompt for editing, as a line or a request; return whether the UI supports that."""
        self.buffer.text = text
        if is_request:
            self._pastes.mark_beginning(text)
        self.buffer.cursor_position = len(text)
        return True

    def cancel_edit(self) -> bool:
        """Close a list, or cancel text typed for a card; return False if there is neither."""
        return self.picker.cancel() or self.focus.cancel_edit()

    def is_second_escape(self) -> bool:
        """Record that Esc was pressed; return whether it was also pressed just before."""
        before, self._escaped_at = self._escaped_at, time.monotonic()
        return self._escaped_at - before < _DOUBLE_ESCAPE_S

    def clear(self) -> None:
        """Clear the prompt without saving its text."""
        self.buffer.reset()
        self._pastes.clear()

    def show_folded(self) -> None:
        """Show the folded output in a pager, newest first."""
        parts = [f"{_FOLD_RULE} {part.title}\n{part.text}\n" for part in reversed(self._transcript.folded)]
        if parts:
            self._repl.spawn(self.run_external(lambda: self._repl.programs.open_pager("\n".join(parts))))

    def view_card(self) -> None:
        """Show everything about the approval in a pager; the card stays."""
        if self.cards.is_ready and (text := self.cards.full_text()):
            self._repl.spawn(self.run_external(lambda: self._repl.programs.open_pager(text)))

    def open_editor(self) -> None:
        """Open the prompt's text in the user's editor."""
        self._repl.spawn(self._edit())

    async def _edit(self) -> None:
        edited: list[str] = []
        text = self.buffer.text
        await self.run_external(lambda: edited.append(self._repl.programs.edit(text)))
        if edited and self.buffer.text == text:
            self.buffer.text = edited[0]
            self.buffer.cursor_position = len(edited[0])

    def _show_card(self, lines: Sequence[str]) -> None:
        self._transcript.show_card(lines)

    def _on_drawn(self) -> None:
        self.cards.mark_drawn()
        activity = NEEDS_ANSWER if self.cards.current else WORKING if self._repl.queue.is_busy else ""
        self.terminal.send_sequence(self._title.show(activity))

    def _arguments(self, command: SlashCommand, words: Sequence[str]) -> Iterable[Candidate]:
        return command.complete(self._repl, words) if command.complete else ()

    def _live_lines(self, width: int, height: int) -> list[str]:
        """Return the live lines: a blank line, answer, steps, the keys of a card, and the rule above the prompt.

        The blank line and the rule are drawn here rather than by the prompt: however a resized window wraps them, they
        are below the parked cursor, and no finished line is erased with them.
        """
        if height < _MIN_ROWS_FOR_RULE:
            return self._running_lines(width, height)
        running = self._running_lines(width, height - 2)
        return ["", *running, self._paint("quiet", _RULE * width)]

    def _running_lines(self, width: int, height: int) -> list[str]:
        card = self.picker.lines(width, height) if self.picker.is_open else self.focus.lines(width)
        below = card if self.picker.is_open else [*self._repl.asides.lines(width), *card][:height]
        gap = [""] if below and height >= _MIN_ROWS_FOR_RULE else []
        answer = self._transcript.partial_answer_lines(width, (height - len(below)) // 2 - len(gap))
        steps = self._live_area.lines(width, max(0, height - len(below) - len(answer) - len(gap)))
        return [*answer, *steps, *(gap if answer or steps else []), *below]

    def _status(self, width: int) -> str:
        queued = f" · {len(self._repl.queue.pending)} queued" if self._repl.queue.pending else ""
        return self._paint("quiet", clip(f"{self._repl.state.status}{queued}", width))

    def _markdown(self, text: str) -> str:
        from cli.screen.markdown import render_markdown

        return render_markdown(text, width=self.terminal.columns, paint=self._paint)
