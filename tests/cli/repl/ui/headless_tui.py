"""A REPL without a terminal: what it says is collected, what it hands to the command line is written down."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.protocol.events import Envelope
from agent.sessions.store import SessionStore
from cli.pages.session_changes import take_back
from cli.repl.commands.builtin import COMMANDS
from cli.repl.external_programs import Guests
from cli.repl.repl import Repl
from cli.repl.state import ReplPlace
from cli.screen.colors import Paint
from cli.screen.plan_board import PlanBoard


class QuietFace:
    """Takes the place of a screen and a keyboard."""

    columns = 80

    def __init__(self, repl: Repl) -> None:
        self.said: list[str] = []
        self.heard: list[Envelope] = []
        self.plan = PlanBoard(repl.paint)
        self.running: tuple[str, ...] = ()
        self.left: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.is_ready = asyncio.Event()
        self.has_heard = asyncio.Event()
        self.answers: list[str] = []
        self.text = ""

    async def run(self) -> int:
        return await self.left

    def leave(self, exit_code: int) -> None:
        self.left.set_result(exit_code)

    def say(self, text: str) -> None:
        self.said.append(text)

    def echo(self, text: str) -> None:
        """Say nothing: only what is answered counts."""

    def hear(self, envelope: Envelope) -> None:
        self.plan.hear(envelope)
        self.heard.append(envelope)
        self.has_heard.set()

    def ended(self) -> None:
        """Nothing is shown that could be stale."""

    def ready(self) -> None:
        self.is_ready.set()

    def offer_anew(self) -> None:
        """Nothing is offered."""

    def close(self) -> None:
        """Nothing is held back."""

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.said += [question, *options]
        return self.answers.pop(0)

    async def lend(self, deed: Callable[[], None]) -> None:
        deed()

    def drop_text(self) -> bool:
        has_text, self.text = bool(self.text), ""
        return has_text

    def put_text(self, text: str) -> bool:
        self.text = text
        return True

    def stop_writing(self) -> bool:
        return False


class Notebook(Guests):
    """Writes down what would be run."""

    def __init__(self, environ: dict[str, str], cwd: Path) -> None:
        super().__init__(environ, cwd)
        self.asked: list[tuple[str, ...]] = []
        self.does_undo = False

    def agent(self, *words: str, typed: str | None = None) -> None:
        self.asked.append(words if typed is None else (*words, f"< {typed}"))
        if self.does_undo and words[:2] == ("sessions", "undo"):
            _undo(self._environ, *words[2:])


def _undo(environ: Mapping[str, str], session: str, *words: str) -> None:
    folder = SessionStore(Path(environ["AGENT_SANDBOX"])).existing(session)
    run = words[words.index("--run") + 1] if "--run" in words else None
    take_back(folder, run=run, step=None, is_agreed="--yes" in words, is_forced="--force" in words)


class Talk:
    """A conversation with such a REPL."""

    def __init__(self, home: Path, **environ: str) -> None:
        project = home / "project"
        project.mkdir(parents=True)
        self.environ = {"HOME": str(home), "AGENT_SANDBOX": str(home / "data"), **environ}
        place = ReplPlace(environ=self.environ, cwd=project)
        self.repl = Repl(place=place, paint=Paint(has_colour=False), commands=COMMANDS, face=QuietFace)  # type: ignore[arg-type, return-value]
        self.notebook = self.repl.guests = Notebook(self.environ, project)
        face = self.repl.face
        assert isinstance(face, QuietFace)
        self.face: QuietFace = face

    async def says(self, line: str) -> str:
        """Send a line and return what was said to it, once nothing is going on any more."""
        before = len(self.face.said)
        self.repl.accept(line)
        await self.rests()
        return "\n".join(self.face.said[before:])

    async def hears(self, kind: str) -> None:
        """Wait until a kind of event has happened."""
        while all(envelope.event.type != kind for envelope in self.face.heard):
            self.face.has_heard.clear()
            await self.face.has_heard.wait()

    async def rests(self) -> None:
        """Wait until nothing is going on."""
        while not self.repl.is_idle:
            self.face.is_ready.clear()
            await self.face.is_ready.wait()
