"""The runs of an MCP server: started by one call; watched, answered and awaited by others."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.app import App
from agent.config.load import LoadedSettings
from agent.planning.plan_text import toml_text
from agent.protocol.commands import AnswerQuestion, ResolveApproval, Submit
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    QuestionAnswered,
    QuestionAsked,
    StepStarted,
    ToolStarted,
)
from agent.run_context import RunOptions
from agent.run_scope import SessionLocation
from agent.sessions.lock import LockTimeout
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, InputError
from agent.vocabulary.outcome import Outcome
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject

MAX_RUNNING = 8
MAX_KEPT = 100
ALLOW, DENY = "allow", "deny"
_CLOSING = "the MCP server was stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """An approval or a question that a run waits for."""

    id: str
    is_approval: bool
    text: str
    options: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """Return the question for the other agent."""
        kind = "approval" if self.is_approval else "question"
        return {"id": self.id, "kind": kind, "text": self.text, "options": list(self.options)}


class ServedRun:
    """One run; `changed` is set whenever it asks a question or ends."""

    def __init__(self, app: App, submit: Submit) -> None:
        self._app = app
        self._submit = submit
        self.id = app.scope.run_id
        self.session_id = app.scope.folder.id
        self.open: dict[str, OpenQuestion] = {}
        self.progress: list[str] = []
        self.outcome: Outcome | None = None
        self.changed = asyncio.Event()
        self.on_progress: Callable[[str], None] = lambda line: None
        self._listening = asyncio.ensure_future(self._listen())
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        self.outcome = await self._app.run(self._submit)
        await self._listening
        self.open.clear()
        self.changed.set()

    async def _listen(self) -> None:
        async for envelope in self._app.subscribe():
            self._on_event(envelope)

    def _on_event(self, envelope: Envelope) -> None:
        match envelope.event:
            case ApprovalRequested(decided=False) as asked:
                text = f"{asked.reason}: {asked.command}" if asked.reason else asked.command
                self._ask(OpenQuestion(id=asked.approval_id, is_approval=True, text=text, options=(ALLOW, DENY)))
            case QuestionAsked() as asked:
                self._ask(
                    OpenQuestion(id=asked.question_id, is_approval=False, text=asked.question, options=asked.options)
                )
            case ApprovalResolved(approval_id=answered) | QuestionAnswered(question_id=answered):
                self.open.pop(answered, None)
            case StepStarted(title=title):
                self._report(title)
            case ToolStarted(name=name):
                self._report(name)

    def _ask(self, question: OpenQuestion) -> None:
        self.open[question.id] = question
        self.changed.set()

    def _report(self, line: str) -> None:
        self.progress.append(line)
        self.on_progress(line)

    def answer(self, question_id: str, answer: str) -> None:
        """Answer an open question. Raises InputError if it is not open."""
        question = self.open.get(question_id)
        if question is None:
            raise InputError(f"{question_id} is not waiting for an answer", "status lists what is")
        if question.is_approval:
            decision, _, remark = answer.strip().partition(" ")
            # Only once: a program must not leave rules for the user's runs.
            is_allowed = decision.lower() in (ALLOW, "yes")
            self._app.send(
                ResolveApproval(approval_id=question_id, decision="allow" if is_allowed else "deny", remark=remark)
            )
        else:
            self._app.send(AnswerQuestion(question_id=question_id, answer=answer))
        self.open.pop(question_id, None)

    async def wait(self, wait_s: float | None) -> None:
        """Wait until the run has ended or asks something, or until the timeout."""
        while self.outcome is None and not self.open:
            self.changed.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self.changed.wait()
            except TimeoutError:
                return

    async def close(self) -> None:
        """Stop the run."""
        self._app.interrupt(exit_codes.TERMINATED, _CLOSING)
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def describe(self) -> JsonObject:
        """Return the state of the run."""
        outcome = self.outcome
        state: dict[str, object] = {
            "run_id": self.id,
            "session_id": self.session_id,
            "status": "running" if outcome is None else "done",
            "progress": self.progress[-5:],
        }
        if outcome is None:
            waiting = [question.to_json() for question in self.open.values()]
            return state | ({"status": "waiting", "waiting_for": waiting} if waiting else {})
        plan = toml_text(self._submit.prompt, outcome.plan.steps) if self._submit.plan_only and outcome.plan else None
        return state | {
            "subtype": outcome.subtype,
            "exit_code": outcome.exit_code,
            "answer": outcome.answer,
            "error": outcome.error,
            "artifacts": list(outcome.artifacts),
            "cost_usd": outcome.usage.cost_usd,
            "resume": outcome.resume,
            **({"plan": plan} if plan else {}),
        }


class ServedRuns:
    """All runs of the server; the oldest finished ones are dropped."""

    def __init__(self, loaded: LoadedSettings, environ: Mapping[str, str], data_dir: Path, root: Path) -> None:
        self._loaded = loaded
        self._environ = environ
        self._data_dir = data_dir
        self._root = root
        self._runs: dict[str, ServedRun] = {}

    def start(self, prompt: str, *, folder: str = "", session: str = "", plan_only: bool = False) -> ServedRun:
        """Start a run in the folder of the server or one below it. Raises AgentError."""
        if not prompt.strip():
            raise InputError("the prompt is empty")
        if sum(run.outcome is None for run in self._runs.values()) >= MAX_RUNNING:
            raise AgentError(f"{MAX_RUNNING} runs are under way already", "wait for one of them with status")
        location = SessionLocation(data_dir=self._data_dir, session_id=session or None, cwd=self._folder(folder))
        options = RunOptions(location=location, is_user_present=True, lock_timeout=LockTimeout(limit_s=0))
        app = App(loaded=self._loaded, environ=self._environ, options=options)
        run = self._runs[app.scope.run_id] = ServedRun(app, Submit(prompt=prompt, plan_only=plan_only))
        for old in [key for key, kept in self._runs.items() if kept.outcome is not None][:-MAX_KEPT]:
            del self._runs[old]
        return run

    def get(self, run_id: str) -> ServedRun:
        """Return a run by its id. Raises InputError."""
        if run_id not in self._runs:
            raise InputError(f"this server has started no run {run_id}")
        return self._runs[run_id]

    async def close(self) -> None:
        """Stop all runs."""
        await asyncio.gather(*(run.close() for run in self._runs.values() if run.outcome is None))

    def _folder(self, name: str) -> Path:
        folder = (self._root / name).resolve()
        if not folder.is_relative_to(self._root) or not folder.is_dir():
            raise InputError(f"{name} is not a folder below {self._root}")
        return folder
