"""`/btw`: questions answered in parallel to the run, in a separate block."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from agent.config.user_dirs import data_dir
from agent.sessions.store import SessionStore
from agent.vocabulary.errors import AgentError, UsageError
from cli.screen.colors import clip, to_single_line

if TYPE_CHECKING:
    from cli.repl.repl import Repl

_BAR = "│ "
NO_QUESTION = "no question given"
CANCELLED = "btw: cancelled"
WAITING = "btw (Esc cancels): {question}"


class Asides:
    """The unanswered asides; none of them affects the conversation or the run."""

    def __init__(self, repl: "Repl") -> None:
        self._repl = repl
        self._open: dict[asyncio.Future[str], str] = {}

    @property
    def is_open(self) -> bool:
        """Whether a question is waiting for its answer."""
        return bool(self._open)

    def lines(self, width: int) -> list[str]:
        """Return a live line for each open question."""
        texts = [WAITING.format(question=to_single_line(question)) for question in self._open.values()]
        return [self._repl.paint("quiet", clip(text, width)) for text in texts]

    def cancel(self) -> bool:
        """Cancel the newest question; return False if there is none."""
        if not self._open:
            return False
        return next(reversed(self._open)).cancel()

    def ask(self, question: str) -> Awaitable[None]:
        """Ask a question; its answer is printed when it arrives."""
        if not question:
            raise UsageError(NO_QUESTION, "/btw QUESTION asks about the work without touching it")
        return self._ask(question)

    async def _ask(self, question: str) -> None:
        repl = self._repl
        asking = asyncio.ensure_future(self._answer(question))
        self._open[asking] = question
        repl.ui.show_ready()
        try:
            await asyncio.wait([asking])
        finally:
            asking.cancel()
            del self._open[asking]
        if asking.cancelled():
            repl.print_line(CANCELLED, "quiet")
        elif isinstance(error := asking.exception(), AgentError):
            repl.print_line(clip(f"btw: no answer: {error.message}", repl.ui.columns), "warn")
        else:
            repl.ui.print_line(self._block(question, asking.result()))

    async def _answer(self, question: str) -> str:
        from agent.aside import ask_aside

        repl = self._repl
        session = repl.queue.session_id
        return await ask_aside(
            question,
            loaded=repl.state.read_settings(),
            log=SessionStore(data_dir(repl.state.environ)).find(session).events if session else None,
            progress=self._progress() if repl.queue.is_busy else "",
            on_spent=repl.state.add_usage,
        )

    def _progress(self) -> str:
        plan = self._repl.ui.plan
        return "\n".join(f"{step.id} {step.title}: {plan.status(step.id) or 'waiting'}" for step in plan.steps)

    def _block(self, question: str, answer: str) -> str:
        """Return question and answer with a bar at the left, which separates them from the run's output."""
        from cli.screen.markdown import render_markdown

        repl = self._repl
        bar, width = repl.paint("quiet", _BAR), repl.ui.columns - len(_BAR)
        lines = render_markdown(answer, width=width, paint=repl.paint).strip("\n").splitlines()
        head = repl.paint("quiet", clip(f"btw: {question}", width))
        return "\n".join(["", *(f"{bar}{line}".rstrip() for line in (head, *lines))])
