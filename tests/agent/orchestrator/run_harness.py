"""A whole run inside the test: a scripted model, real tools, somebody who answers, and every event of it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.app import App
from agent.assembly import RunOptions
from agent.config.load import load_settings
from agent.protocol.codec import to_json
from agent.protocol.commands import AnswerQuestion, Submit
from agent.protocol.events import QuestionAsked
from agent.run_scope import SessionLocation
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan
from tests.docs.grammar import broken_rules

EventJson = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """How a run went."""

    outcome: Outcome
    events: Sequence[EventJson]

    def of_type(self, kind: str) -> list[EventJson]:
        """Return the events of a type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def statuses(self) -> dict[object, object]:
        """Return how each step ended."""
        return {event["step_id"]: event["status"] for event in self.of_type("step.completed")}

    @property
    def plans(self) -> list[tuple[str, str | None]]:
        """Return why each plan was announced, and how it differs from the one before."""
        return [(str(event["reason"]), event.get("diff")) for event in self.of_type("plan")]  # type: ignore[misc]

    @property
    def warnings(self) -> list[str]:
        return [str(event["message"]) for event in self.of_type("warning")]


@dataclass(kw_only=True)
class RunHarness:
    """Plays runs; `answers` are what the person says, question by question, as long as they last."""

    home: Path
    answers: list[str] = field(default_factory=list)
    is_user_present: bool = False
    plan: Plan | None = None

    def run(self, *replies: object, **flags: object) -> FinishedRun:
        """Play a run of a scripted model to its end; whatever happens, its stream obeys the grammar."""
        script = self.home / "script.jsonl"
        script.write_text("\n".join(json.dumps(reply) for reply in replies))
        played = asyncio.run(self._run({"model": f"script:{script}", **flags}))
        assert broken_rules(played.events) == []
        return played

    async def _run(self, flags: Mapping[str, object]) -> FinishedRun:
        environ = {"HOME": str(self.home)}
        app = App(
            loaded=load_settings(environ=environ, flags=flags, bare=True),
            environ=environ,
            options=RunOptions(
                location=SessionLocation(data_dir=self.home, cwd=self.home), is_user_present=self.is_user_present
            ),
        )
        heard: list[EventJson] = []
        listening = asyncio.ensure_future(self._listen(app, heard))
        outcome = await app.run(Submit(prompt="do it", plan=self.plan))
        await listening
        return FinishedRun(outcome=outcome, events=heard)

    async def _listen(self, app: App, heard: list[EventJson]) -> None:
        async for envelope in app.subscribe():
            heard.append(to_json(envelope))
            if isinstance(envelope.event, QuestionAsked) and self.is_user_present:
                app.send(AnswerQuestion(question_id=envelope.event.question_id, answer=self.answers.pop(0)))
