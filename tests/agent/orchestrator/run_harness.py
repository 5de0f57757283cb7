"""Runs a complete task in the test: a scripted model, real tools, a scripted user, and all events."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.app import App
from agent.backends.sandbox.runner import PROTECTS_LESS
from agent.config.load import load_settings
from agent.hooks.hook import Hook
from agent.protocol.codec import to_json
from agent.protocol.commands import AnswerQuestion, Submit
from agent.protocol.events import QuestionAsked
from agent.run_context import RunOptions
from agent.run_scope import SessionLocation
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan
from agent.vocabulary.task_config import TaskConfig
from tests.docs.grammar import broken_rules

EventJson = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """The outcome and events of a run."""

    outcome: Outcome
    events: Sequence[EventJson]

    def of_type(self, kind: str) -> list[EventJson]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def statuses(self) -> dict[object, object]:
        return {event["step_id"]: event["status"] for event in self.of_type("step.completed")}

    @property
    def plans(self) -> list[tuple[str, str | None]]:
        """The reason and diff of each announced plan."""
        return [(str(event["reason"]), event.get("diff")) for event in self.of_type("plan")]  # type: ignore[misc]

    @property
    def warnings(self) -> list[str]:
        """All warnings but the one about this machine, that it has no bubblewrap."""
        texts = [str(event["message"]) for event in self.of_type("warning")]
        return [text for text in texts if PROTECTS_LESS not in text]


@dataclass(kw_only=True)
class RunHarness:
    """Runs tasks; `answers` are the user's answers to questions, in order.

    Runs with a `session` share it. `on_event` sees every event and may send commands to the run.
    """

    home: Path
    session: str | None = None
    prompt: str = "do it"
    on_event: Callable[[App, EventJson], None] = lambda app, event: None
    answers: list[str] = field(default_factory=list)
    is_user_present: bool = False
    plan: Plan | None = None
    resumes: str | None = None
    hooks: tuple[Hook, ...] = ()
    task: TaskConfig = field(default_factory=TaskConfig)

    @property
    def log(self) -> Path:
        """The event log of the session."""
        return self.data / "sessions" / str(self.session) / "events.jsonl"

    @property
    def data(self) -> Path:
        """The folder of sessions, and the home folder: not in the workspace, where it would be protected."""
        return self.home.with_name(f"{self.home.name}-data")

    def run(self, *replies: object, **flags: object) -> FinishedRun:
        """Run a scripted model and check that its events obey the grammar."""
        script = self.home / "script.jsonl"
        script.write_text("\n".join(json.dumps(reply) for reply in replies))
        run = asyncio.run(self._run({"model": f"script:{script}", "planning": "always", **flags}))
        assert broken_rules(run.events) == []
        return run

    async def _run(self, flags: Mapping[str, object]) -> FinishedRun:
        self.data.mkdir(mode=0o700, exist_ok=True)
        environ = {"HOME": str(self.data)}
        app = App(
            loaded=load_settings(environ=environ, flags=flags, bare=True),
            environ=environ,
            options=RunOptions(
                location=SessionLocation(data_dir=self.data, cwd=self.home, session_id=self.session),
                is_user_present=self.is_user_present,
                resumes=self.resumes,
                hooks=self.hooks,
                task=self.task,
            ),
        )
        events: list[EventJson] = []
        listener = asyncio.ensure_future(self._listen(app, events))
        outcome = await app.run(Submit(prompt=self.prompt, plan=self.plan))
        await listener
        return FinishedRun(outcome=outcome, events=events)

    async def _listen(self, app: App, events: list[EventJson]) -> None:
        async for envelope in app.subscribe():
            events.append(to_json(envelope))
            self.on_event(app, events[-1])
            if isinstance(envelope.event, QuestionAsked) and self.is_user_present:
                app.send(AnswerQuestion(question_id=envelope.event.question_id, answer=self.answers.pop(0)))
