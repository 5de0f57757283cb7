"""The REPL: turns typed lines into requests, slash commands and shell commands; a UI displays the results."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent.config.user_dirs import data_dir
from agent.protocol.commands import Steer, Submit
from agent.protocol.events import Envelope, RunCompleted
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import read_session
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, UsageError
from agent.vocabulary.usage import Usage
from cli.external_programs import ExternalPrograms
from cli.repl.input import find_mentions
from cli.repl.plan_choice import PlanReview, ask_about_proposal
from cli.repl.request_queue import BUG_HINT, QueuedRequest, RequestQueue
from cli.repl.shell_escape import ShellEscape
from cli.repl.slash_commands import SlashCommand, parse_command, unknown_command
from cli.repl.state import PLAN_MODE, ReplState
from cli.repl.welcome import welcome
from cli.screen.colors import Paint, Tone, clip, wrap_lines
from cli.screen.format import format_cache_use, format_cost, format_count
from cli.screen.sanitize import sanitize

if TYPE_CHECKING:
    from agent.app import App
    from cli.repl.ui.plain_ui import PlainUi
    from cli.repl.ui.tui import Tui

    ReplUi: TypeAlias = Tui | PlainUi

_REQUEST_LINES = 20
_SIGNALS = {signal.SIGTERM: "terminated", signal.SIGHUP: "the terminal was closed"}
CONFIRM_EXIT = "press Ctrl-C again or Ctrl-D to quit"
SHELL_OUTPUT_NOTE = "output will be included in your next message"
NEW_SESSION = "started a new session"
_STEERING_HINT = "type a message for the running steps, then press Ctrl-S"


def no_run_yet() -> UsageError:
    """Build the error for commands that need a run in this session."""
    return UsageError("this session has no runs yet", "send a request first")


class Repl:
    """One user at one terminal, in one session at a time."""

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
            on_event=self._on_event,
            on_error=self.print_error,
            on_start=self._on_request_started,
            on_end=self._on_request_ended,
        )
        self._shell = ShellEscape(state.environ)
        self._is_exit_requested = False
        self.shell_output = ""
        self._echoed_line = ""
        self._usage = Usage()
        # The answer of a successful run in plan mode, until the user has decided on it.
        self._proposal = ""
        self._run_mode = ""
        self._tasks: set[asyncio.Future[None]] = set()
        self._loading: asyncio.Future[None] | None = None
        self.ui = ui(self)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and nothing will start without input."""
        is_waiting = bool(self.queue.pending) and not self.queue.is_paused
        return not (self.queue.is_busy or is_waiting or self._tasks)

    async def run_until_exit(self, greeting: str) -> int:
        """Run until the user quits; return the exit code."""
        self.print_line(greeting)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_loop_error)
        for number, why in _SIGNALS.items():
            loop.add_signal_handler(number, self._on_signal, why)
        queue_task = asyncio.ensure_future(self.queue.run())
        if not self.state.read_settings().settings.model:
            self.spawn(welcome(self.state.environ, ask=self.ui.ask, report=self._print_quiet))
        try:
            return await self.ui.run()
        finally:
            self.queue.stop()
            await queue_task
            self.ui.close()

    def add_commands(self, commands: Iterable[SlashCommand]) -> None:
        """Add commands; one whose name is taken is ignored with a warning."""
        for command in commands:
            if any(command.name == known.name for known in self.commands):
                self.warn(f"a command /{command.name} already exists; ignoring the new one")
            else:
                self.commands = (*self.commands, command)
        self.ui.refresh_completions()

    def load_in_background(self, loader: Awaitable[None]) -> None:
        """Load additional commands in the background."""
        self._loading = self.spawn(loader)

    async def wait_loaded(self) -> None:
        """Wait until all commands are loaded."""
        if self._loading:
            await asyncio.wait([self._loading])

    def print_line(self, text: str, tone: Tone = "plain") -> None:
        """Print lines, wrapped at word boundaries to the width of the window."""
        self.ui.print_line("\n".join(self.paint(tone, line) for line in wrap_lines(text, self.ui.columns)))

    def warn(self, problem: str) -> None:
        self.print_line(f"warning: {problem}", "warn")

    def spawn(self, work: Awaitable[None]) -> "asyncio.Future[None]":
        """Run something in the background; errors are printed."""
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def accept(self, text: str) -> None:
        """Process a typed line: a command, a note or a request."""
        # Undecodable bytes can be neither stored nor sent.
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
        """Queue a request with the files it mentions and the output of `!` commands."""
        mentions = find_mentions(request, self.state.cwd)
        for problem in mentions.refused:
            self.warn(problem)
        submit = Submit(prompt=request, files=mentions.files, stdin=self.shell_output or None)
        self.shell_output = ""
        self.enqueue(QueuedRequest(submit=submit, is_reviewed=is_reviewed, title=title))

    def enqueue(self, request: QueuedRequest) -> None:
        """Queue a request and say so if another one is running."""
        self.queue.add(request)
        if self.queue.is_busy:
            self._echoed_line = ""
            self._print_quiet(f"queued: {clip(request.display_text, self.ui.columns - 10)}")

    async def run_agent_command(self, *words: str) -> None:
        """Run `agent …` in the foreground."""
        await self.ui.run_external(lambda: self.programs.run_agent(*words))

    def _on_shell_line(self, command: str) -> None:
        if command:
            self.spawn(self._run_shell_command(command))
        else:
            self.print_error(UsageError("no command given", "!COMMAND runs a shell command, for example !git status"))

    def _on_note(self, line: str) -> None:
        self._echo(line)
        if note := line[1:].strip():
            self.spawn(self.ui.run_external(lambda: self.programs.run_agent("memory", "add", "-", stdin=note)))
        else:
            self.print_error(UsageError("nothing to remember", "#NOTE saves a note to memory, for example #use tabs"))

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
            self._print_quiet(f"exit {exit_code}; {SHELL_OUTPUT_NOTE} (/context drop to discard)")

    def require_session_id(self) -> str:
        """Return the id of the current session; raise if it has no runs yet."""
        if self.queue.session_id is None:
            raise no_run_yet()
        return self.queue.session_id

    def require_run_id(self) -> str:
        """Return the id of the latest run; raise if there is none."""
        self.require_session_id()
        if self.queue.run_id is None:
            raise UsageError("no run in this session has finished yet", "send a request first")
        return self.queue.run_id

    def new_session(self) -> None:
        """Start a new session with an empty history."""
        before = self.queue.session_id
        self.queue.session_id = None
        self.shell_output = ""
        self._usage = Usage()
        self.state.show_context_share(None)
        self._print_quiet(f"{NEW_SESSION}; /resume {before} returns to the previous one" if before else NEW_SESSION)

    def switch_session(self, session_id: str) -> None:
        """Switch to another session; later runs get its history."""
        if session_id == self.queue.session_id:
            return
        record = read_session(SessionStore(data_dir(self.state.environ)).find(session_id))
        runs = [run for run in record.runs if run.usage is not None]
        self.queue.session_id = session_id
        self.queue.run_id = runs[-1].run_id if runs else None
        self._usage = sum((run.usage for run in runs if run.usage), Usage())

    def cost_text(self) -> str:
        """Return tokens, requests and cost of this session."""
        cost = "unknown cost" if self._usage.cost_usd is None else format_cost(self._usage.cost_usd)
        requests = "1 request" if self._usage.requests == 1 else f"{self._usage.requests} requests"
        cache = f" ({used})" if (used := format_cache_use(self._usage)) else ""
        return f"{format_count(self._usage.total_tokens)} tokens{cache} in {requests}, {cost}"

    def exit(self, exit_code: int = exit_codes.OK) -> None:
        """Close the prompt; a current run is stopped first."""
        self.ui.exit(exit_code)

    def interrupt(self) -> None:
        """Cancel a search or an answer, else stop the run, else clear the line, else explain how to quit."""
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
            self._print_quiet(CONFIRM_EXIT)

    def cycle_mode(self) -> None:
        """Switch to the next approval mode."""
        try:
            self.state.cycle_mode()
        except AgentError as error:
            self.print_error(error)
        self.ui.show_ready()

    def steer(self, text: str) -> bool:
        """Send a message to the running steps, which read it before their next turn; return False if none does."""
        message = text.strip()
        if not message:
            self._print_quiet(_STEERING_HINT)
            return False
        is_accepted = self.queue.send(Steer(text=message))
        if is_accepted:
            self.print_line(sanitize(f"» {message}"), "strong")
        return is_accepted

    def print_error(self, error: AgentError) -> None:
        self.print_line(f"error: {error.message}", "bad")
        if error.hint:
            self._print_quiet("\n".join(f"  {line}" for line in error.hint.splitlines()))

    def _print_quiet(self, text: str) -> None:
        self.print_line(text, "quiet")

    def _open_app(self, request: QueuedRequest) -> "App":
        review = self._plan_review(request.submit.prompt) if request.is_reviewed else None
        return self.state.open_app(self.queue.session_id, review, request.resumes)

    def _plan_review(self, request: str) -> PlanReview:
        return PlanReview(
            state=self.state,
            request=request,
            ask=self.ui.ask,
            show=self.ui.show_plan,
            run_external=self.ui.run_external,
        )

    def _on_request_started(self, prompt: str) -> None:
        self._run_mode = self.state.approval_mode
        if self._run_mode != PLAN_MODE:
            self.state.used_mode = self._run_mode or self.state.used_mode
        is_echoed, self._echoed_line = prompt == self._echoed_line, ""
        if is_echoed:
            return
        first, *rest = sanitize(prompt).splitlines() or [""]
        lines = [f"> {first}", *(f"  {line}" for line in rest[: _REQUEST_LINES - 1])]
        if len(rest) >= _REQUEST_LINES:
            lines.append(f"  … {len(rest) - _REQUEST_LINES + 1:,} more lines")
        self.ui.echo("\n".join(self.paint("strong", line) for line in lines))

    def _on_event(self, envelope: Envelope) -> None:
        self.state.on_event(envelope)
        self.ui.on_event(envelope)
        if isinstance(envelope.event, RunCompleted):
            self._usage += envelope.event.usage
            is_proposal = self._run_mode == PLAN_MODE and not envelope.event.is_error
            self._proposal = envelope.event.result if is_proposal else ""

    def _on_request_ended(self) -> None:
        self._is_exit_requested = False
        self.ui.on_request_ended()
        self.state.refresh_status()
        if self.queue.is_paused:
            self._print_quiet(paused_notice(len(self.queue.pending)))
        proposal, self._proposal = self._proposal, ""
        if proposal and not self.queue.pending:
            self.spawn(ask_about_proposal(self, proposal))
        self.ui.show_ready()

    def _run_command(self, line: str) -> None:
        name, argument = parse_command(line)
        command = next((command for command in self.commands if command.name == name), None)
        if command is None and self._loading and not self._loading.done():
            self.spawn(self._run_command_when_loaded(line))
            return
        self._echo(line)
        if command is None:
            self.print_error(unknown_command(name, self.commands))
            return
        try:
            if argument and not command.usage:
                raise UsageError(f"/{name} takes no arguments", "/help lists commands and their arguments")
            work = command.run(self, argument)
        except AgentError as error:
            self.print_error(error)
            return
        finally:
            self.state.refresh_status()
        if work is not None:
            self.spawn(work)

    async def _run_command_when_loaded(self, line: str) -> None:
        await self.wait_loaded()
        self._run_command(line)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except AgentError as error:
            self.print_error(error)

    def _on_task_done(self, task: "asyncio.Future[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.print_error(AgentError(f"internal error: {error!r}", BUG_HINT))
        # Many commands change settings, and none knows about the status line.
        self.state.refresh_status()
        self.ui.show_ready()

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Print errors of tasks that nothing awaits; the prompt keeps working."""
        self.print_error(AgentError(f"internal error: {context.get('exception') or context.get('message')!r}"))

    def _on_signal(self, why: str) -> None:
        """Exit as fast as a clean shutdown allows."""
        self.programs.terminate()
        self._shell.terminate()
        self.queue.stop(exit_codes.TERMINATED, why)
        self.exit(exit_codes.TERMINATED)


def paused_notice(count: int) -> str:
    """Return the notice that a failed run paused the queue."""
    requests = "1 request" if count == 1 else f"{count} requests"
    return f"queue paused ({requests}): Enter continues, /queue clear empties it"
