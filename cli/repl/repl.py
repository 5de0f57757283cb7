"""The REPL: what is typed becomes requests and commands, one after another; what is shown is its face's business."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent.config.places import data_dir
from agent.protocol.commands import Steer, StopStep, Submit
from agent.protocol.events import Envelope, RunCompleted
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import read_session
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, UsageError
from agent.vocabulary.usage import Usage
from cli.repl.external_programs import Guests
from cli.repl.input import mentions_in
from cli.repl.plan_review import PlanReview
from cli.repl.request_queue import Turn, Turns
from cli.repl.shell_escape import OwnShell
from cli.repl.slash_commands import SlashCommand, parsed, unknown
from cli.repl.state import ReplPlace
from cli.repl.welcome import LATER, welcome
from cli.screen.colors import Paint, Tone, clipped, fitted
from cli.screen.format import amount, money
from cli.screen.sanitize import readable

if TYPE_CHECKING:
    from agent.app import App
    from cli.repl.ui.plain_ui import LineFace
    from cli.repl.ui.tui import DrawnFace

    Face: TypeAlias = DrawnFace | LineFace

_REQUEST_LINES = 20
_SIGNALS = {signal.SIGTERM: "terminated", signal.SIGHUP: "the terminal was closed"}


class Repl:
    """One person, one terminal, one session after another."""

    def __init__(
        self,
        *,
        place: ReplPlace,
        paint: Paint,
        commands: Sequence[SlashCommand],
        face: Callable[["Repl"], "Face"],
    ) -> None:
        self.place = place
        self.paint = paint
        self.commands = tuple(commands)
        self.guests = Guests(place.environ, place.cwd)
        self.turns = Turns(open_app=self._open_app, hear=self._hear, fail=self.fail, begin=self._begin, end=self._ended)
        self._shell = OwnShell(place.environ)
        self._asked_to_leave = False
        self.overheard = ""
        self._repeated = ""
        self._spent = Usage()
        self._deeds: set[asyncio.Future[None]] = set()
        self._loading: asyncio.Future[None] | None = None
        self.face = face(self)

    @property
    def is_idle(self) -> bool:
        """Say whether nothing is going on, and nothing will by itself."""
        is_waiting = bool(self.turns.waiting) and not self.turns.is_held
        return not (self.turns.is_busy or is_waiting or self._deeds)

    async def talk(self, greeting: str) -> int:
        """Work until the person leaves; return the exit code."""
        self.say(greeting)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_bug)
        for number, why in _SIGNALS.items():
            loop.add_signal_handler(number, self._terminated, why)
        working = asyncio.ensure_future(self.turns.work())
        if not self.place.loaded().settings.model:
            self.start(welcome(self.place.environ, ask=self.face.ask, say=self._say_quietly))
        try:
            return await self.face.run()
        finally:
            self.turns.leave()
            await working
            self.face.close()

    def add_commands(self, commands: Iterable[SlashCommand]) -> None:
        """Offer further commands; a name that is taken stays what it is, and is told of."""
        for command in commands:
            if any(command.name == known.name for known in self.commands):
                self.warn(f"there is already a command /{command.name}; another is left out")
            else:
                self.commands = (*self.commands, command)
        self.face.offer_anew()

    def load(self, deed: Awaitable[None]) -> None:
        """Do in the background what brings further commands."""
        self._loading = self.start(deed)

    async def loaded(self) -> None:
        """Wait until all commands are there."""
        if self._loading:
            await asyncio.wait([self._loading])

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Add lines of our own to the scrollback, broken between words where the window is too narrow for them."""
        self.face.say("\n".join(self.paint(tone, line) for line in fitted(text, self.face.columns)))

    def warn(self, problem: str) -> None:
        """Tell of something that is not as it should be."""
        self.say(f"warning: {problem}", "warn")

    def start(self, deed: Awaitable[None]) -> "asyncio.Future[None]":
        """Do something in the background; what goes wrong with it is told."""
        task = asyncio.ensure_future(self._guarded(deed))
        self._deeds.add(task)
        task.add_done_callback(self._done)
        return task

    def accept(self, text: str) -> None:
        """Take what was typed: a command, or a request."""
        # Bytes that were no text in any language we know cannot be kept or sent.
        line = text.encode("utf-8", "replace").decode().strip()
        self._asked_to_leave = False
        match line[:1]:
            case "":
                self.turns.go_on()
            case "/":
                self._command(line)
            case "!":
                self._own(line[1:].strip())
            case "#":
                self._note(line)
            case _:
                self.ask(line)

    def ask(self, request: str, *, is_reviewed: bool = False, title: str = "") -> None:
        """Put a request behind those that wait; files it names with @ come along, and what `!` left behind."""
        found = mentions_in(request, self.place.cwd)
        for problem in found.refused:
            self.warn(problem)
        submit = Submit(prompt=request, files=found.files, stdin=self.overheard or None)
        self.overheard = ""
        self.add(Turn(submit=submit, is_reviewed=is_reviewed, title=title))

    def add(self, turn: Turn) -> None:
        """Put a turn behind those that wait."""
        self.turns.add(turn)
        if self.turns.is_busy:
            self._repeated = ""
            self._say_quietly(f"queued: {clipped(turn.shown, self.face.columns - 10)}")

    async def lend_to(self, *words: str) -> None:
        """Run one of our own commands with the terminal as its own."""
        await self.face.lend(lambda: self.guests.agent(*words))

    def _own(self, command: str) -> None:
        if command:
            self.start(self._own_command(command))
        else:
            self.fail(UsageError("which command?", "!command runs a command of yours, such as !git status"))

    def _note(self, line: str) -> None:
        self._repeat(line)
        if note := line[1:].strip():
            self.start(self.face.lend(lambda: self.guests.agent("memory", "add", "-", typed=note)))
        else:
            self.fail(UsageError("what shall be remembered?", "#note remembers something, such as #use tabs"))

    def _repeat(self, line: str) -> None:
        self._repeated = line
        self.face.echo(self.paint("strong", readable(f"> {line}")))

    async def _own_command(self, command: str) -> None:
        ended: list[tuple[int, str]] = []
        self.face.echo(self.paint("strong", readable(f"! {command}")))
        await self.face.lend(lambda: ended.append(self._shell.run(command)))
        if ended:
            exit_code, output = ended[0]
            self.overheard += f"$ {command}\n{output}\n[exit code {exit_code}]\n"
            self._say_quietly(
                f"exit {exit_code}; your next request takes this output along (/context drop leaves it out)"
            )

    def session(self) -> str:
        """Return the id of the session, once there is one."""
        if self.turns.session_id is None:
            raise UsageError("nothing has been done in this session yet", "ask for something first")
        return self.turns.session_id

    def run(self) -> str:
        """Return the id of the newest run, once there is one."""
        self.session()
        if self.turns.run_id is None:
            raise UsageError("no run of this session has ended yet", "ask for something first")
        return self.turns.run_id

    def new_session(self) -> None:
        """Begin anew: nothing said so far is told to the next run."""
        before = self.turns.session_id
        self.turns.session_id = None
        self.overheard = ""
        self._spent = Usage()
        self._say_quietly(f"a new session; /resume {before} goes back" if before else "a new session")

    def enter(self, session_id: str) -> None:
        """Go on in another session: what was said in it is told to the next run."""
        if session_id == self.turns.session_id:
            return
        record = read_session(SessionStore(data_dir(self.place.environ)).existing(session_id))
        runs = [run for run in record.runs if run.usage is not None]
        self.turns.session_id = session_id
        self.turns.run_id = runs[-1].run_id if runs else None
        self._spent = sum((run.usage for run in runs if run.usage), Usage())

    def cost_text(self) -> str:
        """Return what this session has cost."""
        cost = "an unknown sum" if self._spent.cost_usd is None else money(self._spent.cost_usd)
        requests = "1 request" if self._spent.requests == 1 else f"{self._spent.requests} requests"
        return f"{amount(self._spent.total_tokens)} tokens in {requests}, {cost}"

    def leave(self, exit_code: int = exit_codes.OK) -> None:
        """Close the prompt; a run that is going on is ended first."""
        self.face.leave(exit_code)

    def interrupt(self) -> None:
        """Give up a search or words for a card, else end the run, else clear the line, else say how to leave."""
        if self.face.stop_writing():
            return
        if self.turns.is_busy:
            if self._asked_to_leave:
                self.leave()
            self._asked_to_leave = True
            self.turns.interrupt()
        elif self.face.drop_text():
            self._asked_to_leave = False
        elif self._asked_to_leave:
            self.leave()
        else:
            self._asked_to_leave = True
            self._say_quietly("press Ctrl-C again or Ctrl-D to leave")

    def steer(self, text: str) -> bool:
        """Say something to the steps at work, which hear it before their next turn; False when nobody does."""
        words = text.strip()
        if not words:
            self._say_quietly("write what the run should know, then press Ctrl-S")
            return False
        is_heard = self.turns.send(Steer(text=words))
        if is_heard:
            self.say(readable(f"» {words}"), "strong")
        return is_heard

    async def stop_step(self) -> None:
        """End one step of the run: the only one at work, or the one the person chooses."""
        running = self.face.running
        if not running:
            return
        step = running[0]
        if len(running) > 1:
            answer = await self.face.ask("Which step shall end?", (*running, LATER))
            step = answer if answer in running else ""
        if step:
            self.turns.send(StopStep(step_id=step))

    def fail(self, error: AgentError) -> None:
        """Tell what went wrong and what to do."""
        self.say(f"error: {error.message}", "bad")
        if error.hint:
            self._say_quietly("\n".join(f"  {line}" for line in error.hint.splitlines()))

    def _say_quietly(self, text: str) -> None:
        self.say(text, "quiet")

    def _open_app(self, turn: Turn) -> "App":
        review = PlanReview(self.place, self.face.lend, turn.submit.prompt) if turn.is_reviewed else None
        return self.place.open_app(self.turns.session_id, review, turn.resumes)

    def _begin(self, prompt: str) -> None:
        is_there, self._repeated = prompt == self._repeated, ""
        if is_there:
            return
        first, *rest = readable(prompt).splitlines() or [""]
        lines = [f"> {first}", *(f"  {line}" for line in rest[: _REQUEST_LINES - 1])]
        if len(rest) >= _REQUEST_LINES:
            lines.append(f"  … {len(rest) - _REQUEST_LINES + 1:,} more lines")
        self.face.echo("\n".join(self.paint("strong", line) for line in lines))

    def _hear(self, envelope: Envelope) -> None:
        self.face.hear(envelope)
        if isinstance(envelope.event, RunCompleted):
            self._spent += envelope.event.usage

    def _ended(self) -> None:
        self._asked_to_leave = False
        self.face.ended()
        self.place.look_again()
        if self.turns.is_held:
            count = len(self.turns.waiting)
            waits = "1 request waits" if count == 1 else f"{count} requests wait"
            self._say_quietly(f"{waits}: Enter goes on, /queue shows, /queue clear drops")
        self.face.ready()

    def _command(self, line: str) -> None:
        name, argument = parsed(line)
        found = next((command for command in self.commands if command.name == name), None)
        if found is None and self._loading and not self._loading.done():
            self.start(self._command_later(line))
            return
        self._repeat(line)
        if found is None:
            self.fail(UsageError(unknown(name, self.commands)))
            return
        try:
            if argument and not found.usage:
                raise UsageError(f"/{name} takes no argument", "/help lists what the commands take")
            deed = found.run(self, argument)
        except AgentError as error:
            self.fail(error)
            return
        finally:
            self.place.look_again()
        if deed is not None:
            self.start(deed)

    async def _command_later(self, line: str) -> None:
        await self.loaded()
        self._command(line)

    async def _guarded(self, deed: Awaitable[None]) -> None:
        try:
            await deed
        except AgentError as error:
            self.fail(error)

    def _done(self, task: "asyncio.Future[None]") -> None:
        self._deeds.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.fail(AgentError(f"internal error: {error!r}", "this is a bug in Windlass"))
        # Many deeds change the settings, and none knows of the line that tells of them.
        self.place.look_again()
        self.face.ready()

    def _on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Tell of what went wrong where nobody waited for it; the prompt goes on."""
        self.fail(AgentError(f"internal error: {context.get('exception') or context.get('message')!r}"))

    def _terminated(self, why: str) -> None:
        """Leave as fast as it can be done cleanly."""
        self.guests.send_away()
        self._shell.send_away()
        self.turns.leave(exit_codes.TERMINATED, why)
        self.leave(exit_codes.TERMINATED)
