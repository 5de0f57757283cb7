"""The REPL on a terminal that can be drawn on: transcript above, live lines, cards and the prompt below."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.search import stop_search

from agent.config.user_dirs import data_dir
from agent.protocol.events import Envelope, RunCompleted
from cli.repl.input import LargePastes, open_history
from cli.repl.slash_commands import Candidate, SlashCommand
from cli.repl.ui.approval_cards import ApprovalCards
from cli.repl.ui.completion import FileIndex, ReplCompleter
from cli.repl.ui.frame_output import RESET_TERMINAL
from cli.repl.ui.input_focus import InputFocus
from cli.repl.ui.keys import key_bindings
from cli.repl.ui.notifications import notification_for
from cli.repl.ui.terminal import Terminal, TerminalCapabilities
from cli.screen.ascii_fallback import supports_unicode
from cli.screen.colors import clip
from cli.screen.live_area import LiveArea
from cli.screen.plan_view import PlanView
from cli.screen.resize_behavior import reflows_lines
from cli.screen.sanitize import strip_invisible
from cli.screen.transcript import Transcript
from tooling.safety.secrets.redact import Redactor

if TYPE_CHECKING:
    from cli.repl.repl import Repl

_FOLD_RULE = "─" * 8


class Tui:
    """Shows what happens and takes what is typed, both at any time."""

    def __init__(self, repl: "Repl") -> None:
        place, paint = repl.state, repl.paint
        settings = place.read_settings()
        self._repl = repl
        self._paint = paint
        self._live_area = LiveArea(paint=paint)
        self._pastes = LargePastes()
        self.buffer = Buffer(
            history=open_history(data_dir(place.environ), Redactor(settings.secrets).redact),
            completer=ThreadedCompleter(
                ReplCompleter(
                    commands=lambda: repl.commands,
                    arguments=self._arguments,
                    files=FileIndex(place.cwd, place.environ),
                )
            ),
            complete_while_typing=True,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            enable_history_search=True,
        )
        self.terminal = Terminal(
            buffer=self.buffer,
            live=self._live_lines,
            status=self._status,
            keys=key_bindings(repl, self),
            ability=TerminalCapabilities(
                term=place.term,
                has_colour=paint.has_colour,
                has_unicode=supports_unicode(place.environ),
                reflows_lines=reflows_lines(place.environ),
            ),
            is_vi=settings.settings.editing_mode == "vi",
            is_moving=lambda: self._live_area.is_running,
            drawn=self._on_drawn,
        )
        self.cards = ApprovalCards(
            send=repl.queue.send, write=self.terminal.print, paint=paint, width=lambda: self.terminal.columns
        )
        self.focus = InputFocus(buffer=self.buffer, cards=self.cards, refresh=self.terminal.refresh)
        self._transcript = Transcript(
            write=self.terminal.print,
            width=lambda: self.terminal.columns,
            paint=paint,
            markdown=self._markdown,
            expand_hint=" (Ctrl-O)",
        )

    @property
    def plan(self) -> PlanView:
        """Return the plan of the newest run."""
        return self._transcript.plan

    @property
    def columns(self) -> int:
        """Return how wide the window is."""
        return self.terminal.columns

    @property
    def running_steps(self) -> tuple[str, ...]:
        """Return the ids of the steps at work."""
        return self._live_area.running_steps

    async def run(self) -> int:
        """Show the prompt until somebody leaves; return the exit code."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self.suspend)
        return await self.terminal.run()

    def suspend(self) -> None:
        """Stop as other programs do on Ctrl-Z; the terminal is the shell's until we are told to go on."""
        if self.terminal.is_external_running:
            # Who has the terminal was told as well, and the shell waits for us to follow.
            with self._default_sigtstp():
                signal.raise_signal(signal.SIGTSTP)
        else:
            self._repl.spawn(self._suspend())

    async def _suspend(self) -> None:
        with self._default_sigtstp():
            # To the very thread that lent the terminal: it must not take it back before all have stopped.
            await self.terminal.run_external(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTSTP))

    @contextmanager
    def _default_sigtstp(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTSTP)
        try:
            yield
        finally:
            loop.add_signal_handler(signal.SIGTSTP, self.suspend)

    def exit(self, exit_code: int) -> None:
        """Close the prompt."""
        self.terminal.exit(exit_code)

    def close(self) -> None:
        """Show the rest."""
        self.terminal.close()

    def print_line(self, text: str) -> None:
        """Add lines to the scrollback."""
        self.terminal.print(text)

    def echo(self, text: str) -> None:
        """Add to the scrollback what the person wrote, apart from what came before: the prompt is empty again."""
        self.print_line(f"\n{text}")

    def on_event(self, envelope: Envelope) -> None:
        """Show an event of the run."""
        self.focus.on_event(envelope)
        self._live_area.on_event(envelope)
        self._transcript.on_event(envelope)
        self.terminal.send_sequence(notification_for(envelope.event, term=self._repl.state.term))
        if isinstance(envelope.event, RunCompleted):
            self.focus.reset()
        self.terminal.refresh()

    def on_request_ended(self) -> None:
        """Be ready for the next request."""
        self.focus.reset()
        self._live_area.reset()

    def show_ready(self) -> None:
        """Show that the next request can be typed."""
        self.terminal.refresh()

    def refresh_completions(self) -> None:
        """Offer commands that have come while the name of one is being typed."""
        chosen = self.buffer.complete_state and self.buffer.complete_state.current_completion
        if self.buffer.text.startswith("/") and not chosen:
            self.buffer.start_completion()

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """Put a question to the person."""
        return await self.focus.ask(question, options)

    async def run_external(self, deed: Callable[[], None]) -> None:
        """Give the terminal to something else, and have it back as it was."""

        def tidily() -> None:
            try:
                deed()
            finally:
                # A terminal that is gone needs no tidying.
                with suppress(OSError):
                    os.write(sys.stdout.fileno(), RESET_TERMINAL)

        await self.terminal.run_external(tidily)

    def accept(self) -> None:
        """Take what was typed: an answer to what is asked, or something for the REPL."""
        if self.focus.accept(self.full_text().strip()):
            return
        whole = self.full_text()
        self.save_and_clear()
        self._repl.accept(whole)

    def full_text(self) -> str:
        """Return what stands in the prompt, with all that was pasted."""
        return self._pastes.expand(self.buffer.text)

    def save_and_clear(self) -> None:
        """Empty the prompt; what stood there can be found again."""
        if (whole := self.full_text()).strip():
            self.buffer.history.append_string(whole)
        self.clear()

    def paste(self, pasted: str) -> None:
        """Put a pasted text into the prompt."""
        # What nobody sees would be run or sent without having been read.
        self.buffer.insert_text(self._pastes.add(strip_invisible(pasted)))

    def clear_text(self) -> bool:
        """Clear the prompt; False when it is empty."""
        has_text = bool(self.buffer.text)
        self.clear()
        return has_text

    def set_text(self, text: str) -> bool:
        """Put a text into the prompt, to be changed and sent; True when that can be done."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)
        return True

    def cancel_edit(self) -> bool:
        """Give up a search, or words for a card; False when there is neither."""
        if get_app().layout.is_searching:
            stop_search()
            return True
        return self.focus.cancel_edit()

    def clear(self) -> None:
        """Empty the prompt."""
        self.buffer.reset()
        self._pastes.clear()

    def show_folded(self) -> None:
        """Show what was folded, whole and newest first, in a pager."""
        parts = [f"{_FOLD_RULE} {part.title}\n{part.text}\n" for part in reversed(self._transcript.folded)]
        if parts:
            self._repl.spawn(self.run_external(lambda: self._repl.programs.open_pager("\n".join(parts))))

    def open_editor(self) -> None:
        """Let the person write in their own editor."""
        self._repl.spawn(self._edit())

    async def _edit(self) -> None:
        ended: list[str] = []
        text = self.buffer.text
        await self.run_external(lambda: ended.append(self._repl.programs.edit(text)))
        if ended and self.buffer.text == text:
            self.buffer.text = ended[0]
            self.buffer.cursor_position = len(ended[0])

    def _on_drawn(self) -> None:
        self.cards.mark_drawn()

    def _arguments(self, command: SlashCommand, words: Sequence[str]) -> Iterable[Candidate]:
        return command.complete(self._repl, words) if command.complete else ()

    def _live_lines(self, width: int, height: int) -> list[str]:
        card = self.focus.lines(width)[:height]
        answer = self._answer_lines(width, max(0, (height - len(card)) // 2))
        lanes = self._live_area.lines(width, max(0, height - len(card) - len(answer)))
        return [*answer, *lanes, *card]

    def _answer_lines(self, width: int, height: int) -> list[str]:
        lines = self._transcript.partial_answer.splitlines()
        return [clip(line, width) for line in lines[-height:]] if height else []

    def _status(self, width: int) -> str:
        waiting = f" · {len(self._repl.queue.pending)} queued" if self._repl.queue.pending else ""
        return self._paint("quiet", clip(f"{self._repl.state.status}{waiting}", width))

    def _markdown(self, text: str) -> str:
        from cli.screen.markdown import render_markdown

        return render_markdown(text, width=self.terminal.columns, paint=self._paint)
