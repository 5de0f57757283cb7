"""The REPL: what is typed becomes requests and commands, one after another; what is shown is its face's business."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent.config.user_dirs import data_dir
from agent.protocol.commands import Steer, StopStep, Submit
from agent.protocol.events import Envelope, RunCompleted
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import read_session
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, UsageError
from agent.vocabulary.usage import Usage
from cli.repl.external_programs import ExternalPrograms
from cli.repl.input import find_mentions
from cli.repl.plan_review import ReplPlanReview
from cli.repl.request_queue import QueuedRequest, RequestQueue
from cli.repl.shell_escape import ShellEscape
from cli.repl.slash_commands import SlashCommand, parse_command, unknown_command
from cli.repl.state import ReplState
from cli.repl.welcome import LATER, welcome
from cli.screen.colors import Paint, Tone, clip, wrap_lines
from cli.screen.format import format_cost, format_count
from cli.screen.sanitize import sanitize

if TYPE_CHECKING:
    from agent.app import App
    from cli.repl.ui.plain_ui import PlainUi
    from cli.repl.ui.tui import Tui

    ReplUi: TypeAlias = Tui | PlainUi

_REQUEST_LINES = 20
_SIGNALS = {signal.SIGTERM: "terminated", signal.SIGHUP: "the terminal was closed"}


class Repl:
    """One person, one terminal, one session after another."""

    def __init__(
        self,
        *,
        state: ReplState,
        paint: Paint,
        commands: Sequence[SlashCommand],
        ui: Callable[["Repl"], "ReplUi"],
    ) -> None:
        self.state = state
        self.paint = paint
        self.commands = tuple(commands)
        self.programs = ExternalPrograms(state.environ, state.cwd)
        self.queue = RequestQueue(
            open_app=self._open_app,
            hear=self._on_event,
            fail=self.print_error,
            begin=self._on_request_started,
            end=self._on_request_ended,
        )
        self._shell = ShellEscape(state.environ)
        self._is_exit_requested = False
        self.shell_output = ""
        self._echoed_line = ""
        self._usage = Usage()
        self._tasks: set[asyncio.Future[None]] = set()
        self._loading: asyncio.Future[None] | None = None
        self.ui = ui(self)

    @property
    def is_idle(self) -> bool:
        """Say whether nothing is going on, and nothing will by itself."""
        is_waiting = bool(self.queue.pending) and not self.queue.is_paused
        return not (self.queue.is_busy or is_waiting or self._tasks)

    async def run_until_exit(self, greeting: str) -> int:
        """Work until the person leaves; return the exit code."""
        self.print_line(greeting)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop_error)
        for number, why in _SIGNALS.items():
            loop.add_signal_handler(number, self._on_signal, why)
        working = asyncio.ensure_future(self.queue.run())
        if not self.state.read_settings().settings.model:
            self.spawn(welcome(self.state.environ, ask=self.ui.ask, say=self._print_quiet))
        try:
            return await self.ui.run()
        finally:
            self.queue.stop()
            await working
            self.ui.close()

    def add_commands(self, commands: Iterable[SlashCommand]) -> None:
        """Offer further commands; a name that is taken stays what it is, and is told of."""
        for command in commands:
            if any(command.name == known.name for known in self.commands):
                self.warn(f"there is already a command /{command.name}; another is left out")
            else:
                self.commands = (*self.commands, command)
        self.ui.refresh_completions()

    def load_in_background(self, deed: Awaitable[None]) -> None:
        """Do in the background what brings further commands."""
        self._loading = self.spawn(deed)

    async def wait_loaded(self) -> None:
        """Wait until all commands are there."""
        if self._loading:
            await asyncio.wait([self._loading])

    def print_line(self, text: str, tone: Tone = "plain") -> None:
        """Add lines of our own to the scrollback, broken between words where the window is too narrow for them."""
        self.ui.print_line("\n".join(self.paint(tone, line) for line in wrap_lines(text, self.ui.columns)))

    def warn(self, problem: str) -> None:
        """Tell of something that is not as it should be."""
        self.print_line(f"warning: {problem}", "warn")

    def spawn(self, deed: Awaitable[None]) -> "asyncio.Future[None]":
        """Do something in the background; what goes wrong with it is told."""
        task = asyncio.ensure_future(self._guarded(deed))
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def accept(self, text: str) -> None:
        """Take what was typed: a command, or a request."""
        # Bytes that were no text in any language we know cannot be kept or sent.
        line = text.encode("utf-8", "replace").decode().strip()
        self._is_exit_requested = False
        match line[:1]:
            case "":
                self.queue.resume()
            case "/":
                self._run_command(line)
            case "!":
                self._on_shell_line(line[1:].strip())
            case "#":
                self._on_note(line)
            case _:
                self.submit(line)

    def submit(self, request: str, *, is_reviewed: bool = False, title: str = "") -> None:
        """Put a request behind those that wait; files it names with @ come along, and what `!` left behind."""
        found = find_mentions(request, self.state.cwd)
        for problem in found.refused:
            self.warn(problem)
        submit = Submit(prompt=request, files=found.files, stdin=self.shell_output or None)
        self.shell_output = ""
        self.enqueue(QueuedRequest(submit=submit, is_reviewed=is_reviewed, title=title))

    def enqueue(self, turn: QueuedRequest) -> None:
        """Put a turn behind those that wait."""
        self.queue.add(turn)
        if self.queue.is_busy:
            self._echoed_line = ""
            self._print_quiet(f"queued: {clip(turn.display_text, self.ui.columns - 10)}")

    async def run_agent_command(self, *words: str) -> None:
        """Run one of our own commands with the terminal as its own."""
        await self.ui.run_external(lambda: self.programs.run_agent(*words))

    def _on_shell_line(self, command: str) -> None:
        if command:
            self.spawn(self._run_shell_command(command))
        else:
            self.print_error(UsageError("which command?", "!command runs a command of yours, such as !git status"))

    def _on_note(self, line: str) -> None:
        self._echo(line)
        if note := line[1:].strip():
            self.spawn(self.ui.run_external(lambda: self.programs.run_agent("memory", "add", "-", typed=note)))
        else:
            self.print_error(UsageError("what shall be remembered?", "#note remembers something, such as #use tabs"))

    def _echo(self, line: str) -> None:
        self._echoed_line = line
        self.ui.echo(self.paint("strong", sanitize(f"> {line}")))

    async def _run_shell_command(self, command: str) -> None:
        ended: list[tuple[int, str]] = []
        self.ui.echo(self.paint("strong", sanitize(f"! {command}")))
        await self.ui.run_external(lambda: ended.append(self._shell.run(command)))
        if ended:
            exit_code, output = ended[0]
            self.shell_output += f"$ {command}\n{output}\n[exit code {exit_code}]\n"
            self._print_quiet(
                f"exit {exit_code}; your next request takes this output along (/context drop leaves it out)"
            )

    def require_session_id(self) -> str:
        """Return the id of the session, once there is one."""
        if self.queue.session_id is None:
            raise UsageError("nothing has been done in this session yet", "ask for something first")
        return self.queue.session_id

    def require_run_id(self) -> str:
        """Return the id of the newest run, once there is one."""
        self.require_session_id()
        if self.queue.run_id is None:
            raise UsageError("no run of this session has ended yet", "ask for something first")
        return self.queue.run_id

    def new_session(self) -> None:
        """Begin anew: nothing said so far is told to the next run."""
        before = self.queue.session_id
        self.queue.session_id = None
        self.shell_output = ""
        self._usage = Usage()
        self._print_quiet(f"a new session; /resume {before} goes back" if before else "a new session")

    def switch_session(self, session_id: str) -> None:
        """Go on in another session: what was said in it is told to the next run."""
        if session_id == self.queue.session_id:
            return
        record = read_session(SessionStore(data_dir(self.state.environ)).find(session_id))
        runs = [run for run in record.runs if run.usage is not None]
        self.queue.session_id = session_id
        self.queue.run_id = runs[-1].run_id if runs else None
        self._usage = sum((run.usage for run in runs if run.usage), Usage())

    def cost_text(self) -> str:
        """Return what this session has cost."""
        cost = "an unknown sum" if self._usage.cost_usd is None else format_cost(self._usage.cost_usd)
        requests = "1 request" if self._usage.requests == 1 else f"{self._usage.requests} requests"
        return f"{format_count(self._usage.total_tokens)} tokens in {requests}, {cost}"

    def exit(self, exit_code: int = exit_codes.OK) -> None:
        """Close the prompt; a run that is going on is ended first."""
        self.ui.exit(exit_code)

    def interrupt(self) -> None:
        """Give up a search or words for a card, else end the run, else clear the line, else say how to leave."""
        if self.ui.cancel_edit():
            return
        if self.queue.is_busy:
            if self._is_exit_requested:
                self.exit()
            self._is_exit_requested = True
            self.queue.interrupt()
        elif self.ui.clear_text():
            self._is_exit_requested = False
        elif self._is_exit_requested:
            self.exit()
        else:
            self._is_exit_requested = True
            self._print_quiet("press Ctrl-C again or Ctrl-D to leave")

    def steer(self, text: str) -> bool:
        """Say something to the steps at work, which hear it before their next turn; False when nobody does."""
        words = text.strip()
        if not words:
            self._print_quiet("write what the run should know, then press Ctrl-S")
            return False
        is_heard = self.queue.send(Steer(text=words))
        if is_heard:
            self.print_line(sanitize(f"» {words}"), "strong")
        return is_heard

    async def stop_step(self) -> None:
        """End one step of the run: the only one at work, or the one the person chooses."""
        running = self.ui.running_steps
        if not running:
            return
        step = running[0]
        if len(running) > 1:
            answer = await self.ui.ask("Which step shall end?", (*running, LATER))
            step = answer if answer in running else ""
        if step:
            self.queue.send(StopStep(step_id=step))

    def print_error(self, error: AgentError) -> None:
        """Tell what went wrong and what to do."""
        self.print_line(f"error: {error.message}", "bad")
        if error.hint:
            self._print_quiet("\n".join(f"  {line}" for line in error.hint.splitlines()))

    def _print_quiet(self, text: str) -> None:
        self.print_line(text, "quiet")

    def _open_app(self, turn: QueuedRequest) -> "App":
        review = ReplPlanReview(self.state, self.ui.run_external, turn.submit.prompt) if turn.is_reviewed else None
        return self.state.open_app(self.queue.session_id, review, turn.resumes)

    def _on_request_started(self, prompt: str) -> None:
        is_there, self._echoed_line = prompt == self._echoed_line, ""
        if is_there:
            return
        first, *rest = sanitize(prompt).splitlines() or [""]
        lines = [f"> {first}", *(f"  {line}" for line in rest[: _REQUEST_LINES - 1])]
        if len(rest) >= _REQUEST_LINES:
            lines.append(f"  … {len(rest) - _REQUEST_LINES + 1:,} more lines")
        self.ui.echo("\n".join(self.paint("strong", line) for line in lines))

    def _on_event(self, envelope: Envelope) -> None:
        self.ui.on_event(envelope)
        if isinstance(envelope.event, RunCompleted):
            self._usage += envelope.event.usage

    def _on_request_ended(self) -> None:
        self._is_exit_requested = False
        self.ui.on_request_ended()
        self.state.refresh_status()
        if self.queue.is_paused:
            count = len(self.queue.pending)
            waits = "1 request waits" if count == 1 else f"{count} requests wait"
            self._print_quiet(f"{waits}: Enter goes on, /queue shows, /queue clear drops")
        self.ui.show_ready()

    def _run_command(self, line: str) -> None:
        name, argument = parse_command(line)
        found = next((command for command in self.commands if command.name == name), None)
        if found is None and self._loading and not self._loading.done():
            self.spawn(self._run_command_when_loaded(line))
            return
        self._echo(line)
        if found is None:
            self.print_error(UsageError(unknown_command(name, self.commands)))
            return
        try:
            if argument and not found.usage:
                raise UsageError(f"/{name} takes no argument", "/help lists what the commands take")
            deed = found.run(self, argument)
        except AgentError as error:
            self.print_error(error)
            return
        finally:
            self.state.refresh_status()
        if deed is not None:
            self.spawn(deed)

    async def _run_command_when_loaded(self, line: str) -> None:
        await self.wait_loaded()
        self._run_command(line)

    async def _guarded(self, deed: Awaitable[None]) -> None:
        try:
            await deed
        except AgentError as error:
            self.print_error(error)

    def _on_task_done(self, task: "asyncio.Future[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.print_error(AgentError(f"internal error: {error!r}", "this is a bug in Windlass"))
        # Many deeds change the settings, and none knows of the line that tells of them.
        self.state.refresh_status()
        self.ui.show_ready()

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Tell of what went wrong where nobody waited for it; the prompt goes on."""
        self.print_error(AgentError(f"internal error: {context.get('exception') or context.get('message')!r}"))

    def _on_signal(self, why: str) -> None:
        """Leave as fast as it can be done cleanly."""
        self.programs.terminate()
        self._shell.terminate()
        self.queue.stop(exit_codes.TERMINATED, why)
        self.exit(exit_codes.TERMINATED)
