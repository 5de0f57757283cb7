"""The REPL: turns typed lines into requests, slash commands and shell commands; a UI displays the results."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent.protocol.commands import Steer, Submit
from agent.protocol.envelope import Envelope
from agent.protocol.events import RunCompleted
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, UsageError
from cli.external_programs import ExternalPrograms
from cli.messages.translate import translate
from cli.repl.asides import Asides
from cli.repl.input import TypedAhead
from cli.repl.mentions import find_mentions
from cli.repl.plan_choice import PlanReview, ask_about_proposal, plan_again
from cli.repl.request_queue import BUG_HINT, QueuedRequest, RequestQueue, paused_notice
from cli.repl.shell_escape import ShellEscape
from cli.repl.slash_commands import Candidate, SlashCommand, is_command_line, parse_command, unknown_command
from cli.repl.state import PLAN_MODE, ReplState
from cli.repl.welcome import welcome
from cli.screen.colors import Paint, Tone, clip, wrap_lines
from cli.screen.format import hint_lines
from cli.screen.sanitize import sanitize

if TYPE_CHECKING:
    from agent.app import App
    from cli.repl.plugins import PromptPlugins
    from cli.repl.ui.plain_ui import PlainUi
    from cli.repl.ui.tui import Tui

    ReplUi: TypeAlias = Tui | PlainUi

_SIGNALS = {signal.SIGTERM: "terminated", signal.SIGHUP: "the terminal was closed"}
_SPECIAL = ("/", "!", "#")
PASTED_NOTE = "sent as a request because it was pasted; a special line starts with a {} that you type"
CONFIRM_EXIT = "press Ctrl-C again or Ctrl-D to quit"
SHELL_OUTPUT_NOTE = "output will be included in your next message"
NOTHING_TO_STEER = "nothing is running; Enter sends your text as a request"
NOT_ATTACHED_NOTE = "files are attached to requests only; the model can read them itself"
_STEERING_HINT = "type a message for the running steps, then press Ctrl-S"


def resume_session_hint(session_id: str) -> str:
    """Return the command that opens the prompt in a session again."""
    return f"resume with: agent -r {session_id}"


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
        self.asides = Asides(self)
        self._typed_ahead = TypedAhead(lambda: self.queue.is_starting, self.accept)
        self._shell = ShellEscape(state.environ)
        self._is_exit_requested = False
        self.shell_output = ""
        self._echoed_line = ""
        # The answer of a successful run in plan mode, until the user has decided on it.
        self._proposal = ""
        self._run_mode = ""
        self._tasks: set[asyncio.Future[None]] = set()
        self._run_choice: asyncio.Future[str | None] | None = None
        self._loading: asyncio.Future[None] | None = None
        self.plugins: PromptPlugins | None = None
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
            self.spawn(welcome(self))
        try:
            return await self.ui.run()
        finally:
            self.queue.stop()
            await queue_task
            if self.queue.session_id:
                self._print_quiet(resume_session_hint(self.queue.session_id))
            self.ui.close()

    def add_commands(self, commands: Iterable[SlashCommand]) -> None:
        """Add commands; one whose name is taken is ignored with a warning, unless it replaces a request of ours."""
        for command in commands:
            replaced = next((known for known in self.commands if known.name == command.name), None)
            if replaced and replaced.is_replaceable:
                self.commands = tuple(command if known is replaced else known for known in self.commands)
            elif replaced:
                self.warn(f"a command /{command.name} already exists; ignoring the new one")
            else:
                self.commands = (*self.commands, command)
        self.ui.refresh_completions()

    def complete_word(self, word: str) -> Iterable[Candidate]:
        """Return the completions that plugins have for a word of a request."""
        return self.plugins.complete(word) if self.plugins else ()

    def load_in_background(self, loader: Awaitable[None]) -> None:
        """Load additional commands in the background."""
        self._loading = self.spawn(loader)

    async def wait_loaded(self) -> None:
        """Wait until all commands are loaded."""
        if self._loading:
            await asyncio.wait([self._loading])

    def print_line(self, text: str, tone: Tone = "plain") -> None:
        """Print lines, wrapped at word boundaries to the width of the window."""
        self.ui.print_line("\n".join(self.paint(tone, line) for line in wrap_lines(translate(text), self.ui.columns)))

    def warn(self, problem: str) -> None:
        self.print_line(f"warning: {problem}", "warn")

    def spawn(self, work: Awaitable[None]) -> "asyncio.Future[None]":
        """Run something in the background; errors are printed."""
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def accept(self, text: str, *, is_pasted: bool = False) -> None:
        """Process a text: one typed line may be a command or a note, anything else is a request."""
        # Undecodable bytes can be neither stored nor sent.
        line = text.encode("utf-8", "replace").decode().strip()
        self._is_exit_requested = False
        is_special = line[:1] in _SPECIAL and "\n" not in line
        if is_pasted and is_special:
            self._print_quiet(PASTED_NOTE.format(line[:1]))
        elif line and self._typed_ahead.holds(line, is_special=is_special):
            return
        match line[:1] if not line or not (is_pasted or "\n" in line) else "request":
            case "":
                self.queue.resume()
            case "/" if is_command_line(line, self.commands):
                self._run_command(line)
            case "!":
                self._on_shell_line(line[1:].strip())
            case "#":
                self._on_note(line)
            case _ if self.plugins and self.plugins.handles_input:
                self.spawn(self._filter_and_submit(self.plugins, line))
            case _:
                self.submit(line)

    async def _filter_and_submit(self, plugins: "PromptPlugins", line: str) -> None:
        request = await plugins.filter_input(line)
        if request is not None:
            self.submit(request)

    def submit(self, request: str, *, is_reviewed: bool = False, title: str = "") -> None:
        """Queue a request with the files it mentions and the output of `!` commands."""
        mentions = find_mentions(request, self.state.cwd)
        submit = Submit(prompt=request, files=mentions.files, stdin=self.shell_output or None)
        self.shell_output = ""
        queued = QueuedRequest(
            submit=submit, is_reviewed=is_reviewed, title=title, attached=mentions.attached, problems=mentions.problems
        )
        self.enqueue(queued)

    def enqueue(self, request: QueuedRequest) -> None:
        """Queue a request and report it if another one is running."""
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

    async def pick_during_run(self, title: str, candidates: Sequence[Candidate]) -> str | None:
        """Let the user choose something of the current run; return None if the run ends first."""
        picking = self._run_choice = asyncio.ensure_future(self.ui.pick(title, candidates))
        await asyncio.wait([picking])
        return None if picking.cancelled() else picking.result()

    def exit(self, exit_code: int = exit_codes.OK) -> None:
        """Close the prompt; a current run is stopped first."""
        self.ui.exit(exit_code)

    def interrupt(self) -> None:
        """Cancel a search, an answer or an aside, else stop the run, clear the line, or explain how to quit."""
        if self.ui.cancel_edit() or self.asides.cancel():
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
        if not message or not self.queue.is_busy:
            self._print_quiet(_STEERING_HINT if self.queue.is_busy else NOTHING_TO_STEER)
            return False
        is_accepted = self.queue.send(Steer(text=message))
        if is_accepted:
            self.print_line(sanitize(f"» {message}"), "strong")
            if find_mentions(message, self.state.cwd).files:
                self._print_quiet(NOT_ATTACHED_NOTE)
        return is_accepted

    def print_error(self, error: AgentError) -> None:
        self.print_line(f"error: {error.message}", "bad")
        if error.hint:
            self._print_quiet("\n".join(f"  {line}" for line in hint_lines(error.hint, in_repl=True)))

    def _print_quiet(self, text: str) -> None:
        self.print_line(text, "quiet")

    def _open_app(self, request: QueuedRequest) -> "App":
        review = self._plan_review(request.submit.prompt) if request.is_reviewed else None
        return self.state.open_app(self.queue.session_id, review, request.resumes, approval_mode=request.approval_mode)

    def _plan_review(self, request: str) -> PlanReview:
        return PlanReview(
            state=self.state,
            request=request,
            ask=self.ui.ask,
            show=self.ui.show_plan,
            run_external=self.ui.run_external,
            plan_again=lambda remark: plan_again(self, request, remark),
        )

    def _on_request_started(self, request: QueuedRequest) -> None:
        # A request with its own mode proposes nothing, and does not change the user's mode.
        self._run_mode = "" if request.approval_mode else self.state.approval_mode
        if self._run_mode != PLAN_MODE:
            self.state.used_mode = self._run_mode or self.state.used_mode
        is_echoed, self._echoed_line = request.display_text == self._echoed_line, ""
        if not is_echoed:
            self.ui.echo("\n".join(self.paint("strong", line) for line in request.display_lines()))
        for attached in request.attached:
            self._print_quiet(f"  + {attached}")
        for problem in request.problems:
            self.warn(problem)

    def _on_event(self, envelope: Envelope) -> None:
        self.state.on_event(envelope)
        self.ui.on_event(envelope)
        if isinstance(envelope.event, RunCompleted):
            is_proposal = self._run_mode == PLAN_MODE and not envelope.event.is_error
            self._proposal = envelope.event.result if is_proposal else ""

    def _on_request_ended(self) -> None:
        self._is_exit_requested = False
        if self._run_choice:
            self._run_choice.cancel()
        self.ui.on_request_ended()
        self.state.refresh_status()
        if not self.queue.is_starting:
            self._typed_ahead.release()
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
