"""The REPL: what is typed becomes requests, commands and answers; what happens becomes lines."""

import asyncio
import re
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document

from agent.config.edit import set_value
from agent.config.places import config_file
from agent.protocol.commands import Steer, StopStep, Submit
from agent.protocol.events import ApprovalRequested, Envelope, QuestionAsked, RunCompleted
from agent.vocabulary.errors import AgentError, UsageError
from agent.vocabulary.usage import Usage
from cli.repl.cards import Cards
from cli.repl.completion import ReplCompleter
from cli.repl.file_names import FileNames
from cli.repl.keys import key_bindings
from cli.repl.notice import is_worth_it, notice
from cli.repl.own_command import run_on_terminal
from cli.repl.place import ReplPlace
from cli.repl.plan_review import PlanReview
from cli.repl.slash import SlashCommand, parsed, unknown
from cli.repl.terminal import Terminal
from cli.repl.turns import Turn, Turns
from cli.repl.welcome import LATER, NOTHING_FOUND, offers
from cli.screen.live_area import LiveArea
from cli.screen.paint import Paint, clipped
from cli.screen.transcript import Transcript
from cli.screen.wording import amount, money

if TYPE_CHECKING:
    from agent.app import App

_MENTION = re.compile(r"(?:^|(?<=\s))@(\S+)")


class Repl:
    """One person, one terminal, one session after another."""

    def __init__(self, *, place: ReplPlace, paint: Paint, commands: Sequence[SlashCommand]) -> None:
        self.place = place
        self.paint = paint
        self.commands = tuple(commands)
        self.live = LiveArea(paint=paint)
        self.turns = Turns(open_app=self._open_app, hear=self._hear, fail=self.fail, begin=self._begin, end=self._ended)
        self._draft = Document()
        self._writing: str = ""
        self._asked_to_leave = False
        self._overheard = ""
        self._spent = Usage()
        self._deeds: set[asyncio.Future[None]] = set()
        self.buffer = Buffer(
            history=place.history(),
            completer=ThreadedCompleter(
                ReplCompleter(commands=lambda: self.commands, arguments=self._arguments, files=FileNames(place.cwd))
            ),
            complete_while_typing=True,
            auto_suggest=AutoSuggestFromHistory(),
            multiline=True,
            enable_history_search=True,
            tempfile_suffix=".md",
        )
        self.terminal = Terminal(
            buffer=self.buffer,
            live=self._live_lines,
            status=self._status,
            keys=key_bindings(self),
            term=place.term,
            is_vi=place.is_vi,
        )
        self.cards = Cards(send=self.turns.send, write=self.terminal.print, paint=paint)
        self.terminal.app.after_render += lambda _: self.cards.drawn()
        self.transcript = Transcript(
            write=self.terminal.print, width=lambda: self.terminal.columns, paint=paint, markdown=self._markdown
        )

    async def talk(self, greeting: str) -> int:
        """Work until the person leaves; return the exit code."""
        if greeting:
            self.terminal.print(greeting)
        working = asyncio.ensure_future(self.turns.work())
        if not self.place.loaded().settings.model:
            self.start(self._welcome())
        try:
            return await self.terminal.run()
        finally:
            self.turns.leave()
            await working

    async def _welcome(self) -> None:
        """Offer the models that could be used from here, and keep the one that is chosen."""
        found = await offers(self.place.environ)
        if not found:
            self.say(self.paint("quiet", NOTHING_FOUND))
            return
        options = (*map(str, found), LATER)
        answer = await self.cards.ask("No model is set. Which one shall be kept in your settings?", options)
        chosen = next((offer.model for offer in found if str(offer) == answer), "" if answer == LATER else answer)
        if chosen:
            set_value(config_file(self.place.environ), "model", chosen)
            self.say(self.paint("quiet", f"{chosen} is kept in {config_file(self.place.environ)}"))

    def add_commands(self, commands: Iterable[SlashCommand]) -> None:
        """Offer further commands; a name that is taken stays what it is, and is told of."""
        for command in commands:
            if any(command.name == known.name for known in self.commands):
                self.say(
                    self.paint("warn", f"warning: there is already a command /{command.name}; another is left out")
                )
            else:
                self.commands = (*self.commands, command)

    def say(self, text: str) -> None:
        """Add lines of our own to the scrollback."""
        self.terminal.print(text)

    def start(self, deed: Awaitable[None]) -> None:
        """Do something in the background; what goes wrong with it is told."""
        task = asyncio.ensure_future(self._guarded(deed))
        self._deeds.add(task)
        task.add_done_callback(self._deeds.discard)

    def accept(self, text: str) -> None:
        """Take what was typed: an answer, a command, or a request."""
        if self._writing or (isinstance(self.cards.first, QuestionAsked) and self.cards.has_focus):
            self._accept_answer(text.strip())
            return
        self.buffer.reset(append_to_history=bool(text.strip()))
        line = text.strip()
        self._asked_to_leave = False
        match line[:1]:
            case "":
                pass
            case "/":
                self._command(line)
            case "!":
                self.start(self._own_command(line[1:].strip()))
            case "#":
                self.start(self.lend_to("memory", "add", line[1:].strip()))
            case _:
                self.ask(line)

    def ask(self, request: str, *, is_reviewed: bool = False) -> None:
        """Put a request behind those that wait; files it names with @ come along, and what `!` left behind."""
        files = tuple(path for name in _MENTION.findall(request) if (path := self.place.cwd / name).is_file())
        submit = Submit(prompt=request, files=files, stdin=self._overheard or None)
        self.turns.add(Turn(submit=submit, is_reviewed=is_reviewed))
        self._overheard = ""
        if self.turns.is_busy:
            self.say(self.paint("quiet", f"queued: {clipped(request, self.terminal.columns - 10)}"))

    async def lend_to(self, *words: str) -> None:
        """Run one of our own commands with the terminal as its own."""
        await self.terminal.lend(lambda: self.place.run_agent(*words))

    async def _own_command(self, command: str) -> None:
        if not command:
            return
        ended: list[tuple[int, str]] = []
        self.say(self.paint("strong", f"! {command}"))
        await self.terminal.lend(lambda: ended.append(run_on_terminal(command, self.place.environ)))
        exit_code, output = ended[0]
        self._overheard += f"$ {command}\n{output}\n[exit code {exit_code}]\n"
        self.say(self.paint("quiet", f"exit {exit_code}; your next request takes this output along (/clear drops it)"))

    def session(self) -> str:
        """Return the id of the session, once there is one."""
        if self.turns.session_id is None:
            raise UsageError("nothing has been done in this session yet", "ask for something first")
        return self.turns.session_id

    def run(self) -> str:
        """Return the id of the newest run, once there is one."""
        self.session()
        assert self.turns.run_id is not None
        return self.turns.run_id

    def new_session(self) -> None:
        """Begin anew: nothing said so far is told to the next run."""
        self.turns.session_id = None
        self._overheard = ""
        self._spent = Usage()
        self.say(self.paint("quiet", "a new session"))

    def cost_text(self) -> str:
        """Return what this session has cost."""
        cost = "an unknown sum" if self._spent.cost_usd is None else money(self._spent.cost_usd)
        return f"{amount(self._spent.total_tokens)} tokens in {self._spent.requests} requests, {cost}"

    def leave(self) -> None:
        """Close the prompt; a run that is going on is ended first."""
        self.terminal.app.exit(result=0)

    def interrupt(self) -> None:
        """Clear the line, else end the run, else say how to leave."""
        if self.cards.has_focus and self._writing:
            self._end_writing()
        elif self.turns.is_busy:
            if self._asked_to_leave:
                self.leave()
            self._asked_to_leave = True
            self.turns.interrupt()
        elif self.buffer.text:
            self.buffer.reset()
        elif self._asked_to_leave:
            self.leave()
        else:
            self._asked_to_leave = True
            self.say(self.paint("quiet", "press Ctrl-C again or Ctrl-D to leave"))

    def steer(self, text: str) -> None:
        """Say something to the steps at work; they hear it before their next turn."""
        words = text.strip()
        if not words:
            self.say(self.paint("quiet", "write what the run should know, then press Ctrl-S"))
        elif self.turns.send(Steer(text=words)):
            self.buffer.reset(append_to_history=True)
            self.say(self.paint("strong", f"» {words}"))

    async def stop_step(self) -> None:
        """End one step of the run: the only one at work, or the one the person chooses."""
        running = self.live.running
        if not running:
            return
        step = running[0]
        if len(running) > 1:
            answer = await self.cards.ask("Which step shall end?", (*running, LATER))
            step = answer if answer in running else ""
        if step:
            self.turns.send(StopStep(step_id=step))

    def unfold(self) -> None:
        """Show the newest output that was folded, whole, in a pager."""
        if not self.transcript.folded:
            return
        text = self.transcript.folded[-1]
        self.start(self.terminal.lend(lambda: self.place.page(text)))

    @property
    def is_on_approval(self) -> bool:
        """Say whether keys answer an approval."""
        return self.cards.has_focus and isinstance(self.cards.first, ApprovalRequested) and not self._writing

    @property
    def has_unfocused_card(self) -> bool:
        """Say whether something waits while the person types something else."""
        return self.cards.first is not None and not self.cards.has_focus

    def answer_key(self, key: str) -> None:
        """Answer the approval on screen with one key."""
        self.cards.key(key)
        if not self.cards.has_focus:
            self._restore_draft()
        self.terminal.refresh()

    def edit_command(self) -> None:
        """Let the person write another command in place of the one asked for."""
        asked = self.cards.first
        if self.cards.is_ready and isinstance(asked, ApprovalRequested) and asked.tool == "run_command":
            self._begin_writing("command", asked.command)

    def write_why(self) -> None:
        """Let the person say no in words."""
        if self.cards.is_ready:
            self._begin_writing("why", "")

    def focus_card(self) -> None:
        """Turn from the prompt to what waits."""
        self._draft = self.buffer.document
        self.buffer.set_document(Document())
        self.cards.focus()
        self.terminal.refresh()

    def leave_card(self) -> None:
        """Turn back to the prompt; the card waits."""
        self.cards.leave()
        self._restore_draft()

    def _begin_writing(self, what: str, text: str) -> None:
        self._writing = what
        self.buffer.set_document(Document(text))

    def _end_writing(self) -> None:
        self._writing = ""
        self._restore_draft()

    def _accept_answer(self, line: str) -> None:
        is_command, self._writing = self._writing == "command", ""
        if self.cards.text(line, is_command=is_command) or line:
            self.buffer.set_document(Document())
        if not self.cards.has_focus:
            self._restore_draft()
        self.terminal.refresh()

    def _restore_draft(self) -> None:
        self.buffer.set_document(self._draft)
        self._draft = Document()

    def _open_app(self, turn: Turn) -> "App":
        review = PlanReview(self.place, self.terminal.lend, turn.submit.prompt) if turn.is_reviewed else None
        return self.place.open_app(self.turns.session_id, review)

    def _begin(self, prompt: str) -> None:
        self.say(self.paint("strong", f"> {prompt}"))
        self.terminal.animate(lambda: self.live.is_running)

    def _hear(self, envelope: Envelope) -> None:
        self.cards.hear(envelope, is_typing=bool(self.buffer.text))
        self.live.hear(envelope)
        self.transcript.hear(envelope)
        self._notify(envelope)
        if isinstance(envelope.event, RunCompleted):
            self._spent += envelope.event.usage
            self.cards.clear()
        self.terminal.refresh()

    def _notify(self, envelope: Envelope) -> None:
        match envelope.event:
            case RunCompleted(duration_ms=duration, is_error=is_error) if is_worth_it(duration / 1000):
                self.terminal.signal(notice("Windlass: failed" if is_error else "Windlass: done"))
            case ApprovalRequested() | QuestionAsked():
                self.terminal.signal(notice("Windlass needs an answer"))
            case _:
                pass

    def fail(self, error: AgentError) -> None:
        """Tell what went wrong and what to do."""
        self.say(self.paint("bad", f"error: {error.message}"))
        if error.hint:
            self.say(self.paint("quiet", f"  {error.hint}"))

    def _ended(self) -> None:
        self._asked_to_leave = False
        self.cards.clear()
        if self._writing:
            self._end_writing()
        self.terminal.refresh()

    def _arguments(self, command: SlashCommand) -> Iterable[str]:
        return command.complete(self) if command.complete else ()

    def _command(self, line: str) -> None:
        name, argument = parsed(line)
        found = next((command for command in self.commands if command.name == name), None)
        if found is None:
            self.say(self.paint("bad", unknown(name, self.commands)))
            return
        self.say(self.paint("strong", f"> {line}"))
        try:
            deed = found.run(self, argument)
        except AgentError as error:
            self.fail(error)
            return
        if deed is not None:
            self.start(deed)

    async def _guarded(self, deed: Awaitable[None]) -> None:
        try:
            await deed
        except AgentError as error:
            self.fail(error)

    def _live_lines(self, width: int, height: int) -> list[str]:
        card = self.cards.lines(width)
        answer = self._answer_lines(width, max(0, height // 2))
        lanes = self.live.lines(width, max(0, height - len(card) - len(answer)))
        return [*answer, *lanes, *card]

    def _answer_lines(self, width: int, height: int) -> list[str]:
        lines = self.transcript.unfinished.splitlines()
        return [clipped(line, width) for line in lines[-height:]] if height else []

    def _status(self, width: int) -> str:
        waiting = f" · {len(self.turns.waiting)} queued" if self.turns.waiting else ""
        return self.paint("quiet", clipped(f"{self.place.status}{waiting}", width))

    def _markdown(self, text: str) -> str:
        from cli.screen.markdown import rendered

        return rendered(text, width=self.terminal.columns, paint=self.paint)
