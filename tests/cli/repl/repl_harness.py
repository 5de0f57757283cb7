"""A REPL without a terminal: printed lines and `agent` commands are recorded."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agent.protocol.envelope import Envelope
from agent.sessions.store import SessionStore
from agent.vocabulary.plan import PlanStep
from cli.external_programs import ExternalPrograms
from cli.pages.session_changes import undo_changes
from cli.repl.commands.builtin import COMMANDS
from cli.repl.repl import Repl
from cli.repl.slash_commands import Candidate
from cli.repl.state import ReplState
from cli.screen.colors import Paint
from cli.screen.plan_view import PlanView


class FakeUi:
    """Replaces screen and keyboard."""

    columns = 80
    has_lists = False

    def __init__(self, repl: Repl) -> None:
        self.printed: list[str] = []
        self.events: list[Envelope] = []
        self.plan = PlanView(repl.paint)
        self.running_steps: tuple[str, ...] = ()
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.ready_event = asyncio.Event()
        self.event_received = asyncio.Event()
        self.answers: list[str] = []
        self.text = ""

    async def run(self) -> int:
        return await self.exited

    def exit(self, exit_code: int) -> None:
        self.exited.set_result(exit_code)

    def print_line(self, text: str) -> None:
        self.printed.append(text)

    def echo(self, text: str) -> None:
        """Print nothing: only replies are recorded."""

    def on_event(self, envelope: Envelope) -> None:
        self.plan.on_event(envelope)
        self.events.append(envelope)
        self.event_received.set()

    def on_request_ended(self) -> None:
        """Do nothing."""

    def show_ready(self) -> None:
        self.ready_event.set()

    def show_plan(self, steps: Sequence[PlanStep]) -> None:
        self.printed.append(" ".join(step.id for step in steps))

    def refresh_completions(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.printed += [question, *options]
        return self.answers.pop(0)

    async def pick(self, title: str, candidates: Sequence[Candidate]) -> str | None:
        self.printed += [title, *(f"{label} ({detail})" if detail else label for label, detail in candidates)]
        return self.answers.pop(0) or None

    async def run_external(self, program: Callable[[], None]) -> None:
        program()

    def clear_text(self) -> bool:
        has_text, self.text = bool(self.text), ""
        return has_text

    def set_text(self, text: str, *, is_request: bool = False) -> bool:
        self.text = text
        return True

    def cancel_edit(self) -> bool:
        return False


class RecordingPrograms(ExternalPrograms):
    """Records `agent` commands instead of running them."""

    def __init__(self, environ: dict[str, str], cwd: Path) -> None:
        super().__init__(environ, cwd)
        self.calls: list[tuple[str, ...]] = []
        self.runs_undo = False

    def run_agent(self, *words: str, stdin: str | None = None) -> None:
        self.calls.append(words if stdin is None else (*words, f"< {stdin}"))
        if self.runs_undo and words[:2] == ("sessions", "undo"):
            _undo(self._environ, *words[2:])


def _undo(environ: Mapping[str, str], session: str, *words: str) -> None:
    folder = SessionStore(Path(environ["AGENT_SANDBOX"])).find(session)
    run = words[words.index("--run") + 1] if "--run" in words else None
    undo_changes(folder, run=run, step=None, is_confirmed="--yes" in words, is_forced="--force" in words)


class ReplHarness:
    """A REPL with a fake UI and recorded programs."""

    def __init__(self, home: Path, **environ: str) -> None:
        project = home / "project"
        project.mkdir(parents=True)
        self.environ = {
            "HOME": str(home),
            "AGENT_SANDBOX": str(home / "data"),
            "AGENT_PLANNING": "always",
            **environ,
        }
        state = ReplState(environ=self.environ, cwd=project)
        self.repl = Repl(state=state, paint=Paint(has_color=False), commands=COMMANDS, ui=FakeUi)  # type: ignore[arg-type, return-value]
        self.programs = self.repl.programs = RecordingPrograms(self.environ, project)
        ui = self.repl.ui
        assert isinstance(ui, FakeUi)
        self.ui: FakeUi = ui

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Handle requests, and at the end close everything that `agent` closes."""
        queue_task = asyncio.ensure_future(self.repl.queue.run())
        yield
        self.repl.queue.stop()
        await queue_task
        await self.repl.state.close()

    async def send(self, line: str) -> str:
        """Send a line, wait until the REPL is idle, and return what it printed."""
        before = len(self.ui.printed)
        self.repl.accept(line)
        await self.wait_idle()
        return "\n".join(self.ui.printed[before:])

    async def wait_for_event(self, kind: str) -> None:
        """Wait for an event of this type."""
        while all(envelope.event.type != kind for envelope in self.ui.events):
            self.ui.event_received.clear()
            await self.ui.event_received.wait()

    async def wait_idle(self) -> None:
        while not self.repl.is_idle:
            self.ui.ready_event.clear()
            await self.ui.ready_event.wait()
