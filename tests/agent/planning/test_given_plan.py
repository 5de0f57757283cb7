"""A given plan is run without a planner, and needs a model only for its tasks."""

import asyncio
import json
from pathlib import Path

import pytest

from agent.app import App
from agent.config.load import load_settings
from agent.execution.step.step_status import unanswered
from agent.protocol.commands import Submit
from agent.run_context import RunOptions
from agent.run_scope import SessionLocation
from agent.vocabulary.outcome import Outcome
from agent.vocabulary.plan import Plan, PlanStep
from tests.cli.terminal_user import composer_reply, step_reply


def run(tmp_path: Path, submit: Submit, *replies: object) -> Outcome:
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps(reply) for reply in replies))
    flags = {"model": f"script:{script}"} if replies else {}
    loaded = load_settings(environ={"HOME": str(tmp_path)}, flags=flags, bare=True)
    options = RunOptions(location=SessionLocation(data_dir=tmp_path, is_ephemeral=True))

    async def run_app() -> Outcome:
        return await App(loaded=loaded, environ={"HOME": str(tmp_path)}, options=options).run(submit)

    return asyncio.run(run_app())


def task(name: str, *after: str) -> PlanStep:
    return PlanStep(id=name, title=name, instruction=f"do {name}", depends_on=after)


def test_a_given_plan_needs_no_planner(tmp_path: Path) -> None:
    plan = Plan(steps=(task("a"), task("b", "a")), reason="file")
    outcome = run(
        tmp_path, Submit(prompt="x", plan=plan), step_reply("a", "A"), step_reply("b", "B"), composer_reply("both")
    )
    assert (outcome.exit_code, outcome.answer) == (0, "both")
    assert outcome.plan and [step.id for step in outcome.plan.steps] == ["a", "b"]


def test_a_plan_of_questions_runs_without_a_model(tmp_path: Path) -> None:
    question = PlanStep(id="q", title="q", instruction="Which?", type="ask_user", ask_question="Which?")
    outcome = run(tmp_path, Submit(prompt="x", plan=Plan(steps=(question,))))
    assert (outcome.exit_code, outcome.error) == (1, unanswered("Which?"))


@pytest.mark.parametrize(("plan_only", "needs"), [(False, True), (True, False)])
def test_showing_a_plan_needs_no_model(plan_only: bool, needs: bool) -> None:
    assert Submit(prompt="x", plan=Plan(steps=(task("a"),)), plan_only=plan_only).needs_model is needs
