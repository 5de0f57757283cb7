"""/init and /review: requests with a prompt of ours."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.prompts.load import load_prompt
from agent.protocol.events import MessageAdded, RunStarted
from cli.repl.commands.request_commands import REVISE, REVISE_QUESTION
from cli.repl.commands.setting_commands import WHICH_MODEL
from cli.repl.plan_choice import CANCEL, PLAN_QUESTION
from cli.repl.slash_commands import SlashCommand
from tests.agent.workspace.test_git_diff import commit, git
from tests.cli.repl.commands.test_commands import write_script
from tests.cli.repl.repl_harness import ReplHarness
from tests.cli.terminal_user import lead_call, lead_reply
from tests.programs import needs


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ReplHarness]:
    model = write_script(
        tmp_path,
        lead_call("write_file", path="AGENTS.md", content="# Project\n"),
        lead_reply("Done."),
    )
    harness = ReplHarness(
        tmp_path / "home", AGENT_MODEL=model, AGENT_PLANNING="auto", AGENT_APPROVAL_MODE="yolo", PATH="/usr/bin:/bin"
    )
    async with harness.serving():
        yield harness


def messages(harness: ReplHarness, role: str) -> list[str]:
    said = [envelope.event for envelope in harness.ui.events if isinstance(envelope.event, MessageAdded)]
    return [event.content for event in said if event.role == role]


async def test_init_lets_the_model_write_agents_md(harness: ReplHarness) -> None:
    await harness.send("/init")
    assert messages(harness, "user")[0] == load_prompt("init")
    assert (harness.repl.state.cwd / "AGENTS.md").read_text() == "# Project\n"


@pytest.mark.parametrize("choice", [CANCEL, REVISE])
async def test_init_asks_before_an_existing_file_is_touched(harness: ReplHarness, choice: str) -> None:
    notes = harness.repl.state.cwd / "AGENTS.md"
    notes.write_text("mine\n")
    harness.ui.answers = [choice]
    assert REVISE_QUESTION in await harness.send("/init")
    assert bool(messages(harness, "user")) == (choice == REVISE)


@needs("git")
async def test_review_sends_the_diff_and_changes_nothing(harness: ReplHarness) -> None:
    folder = harness.repl.state.cwd
    git(folder, harness.environ, "init", "-q")
    commit(folder, harness.environ, "a.txt", "one\n")
    (folder / "a.txt").write_text("two\n")
    printed = await harness.send("/review")
    assert "  + git diff HEAD (" in printed and PLAN_QUESTION not in printed
    assert "-one\n+two" in messages(harness, "context")[0]
    assert messages(harness, "user")[0] == load_prompt("review", command="git diff HEAD")
    (started,) = (e.event for e in harness.ui.events if isinstance(e.event, RunStarted))
    assert started.approval_mode == "plan" and not (folder / "AGENTS.md").exists()
    assert "yolo" in harness.repl.state.status


async def test_a_command_of_the_user_replaces_ours(harness: ReplHarness) -> None:
    harness.repl.add_commands([SlashCommand(name="review", help="Mine.", run=lambda repl, argument: None)])
    assert await harness.send("/help review") == "  /review  Mine."
    harness.repl.add_commands([SlashCommand(name="exit", help="Mine.", run=lambda repl, argument: None)])
    assert await harness.send("/help exit") == "  /exit  Quit."


async def test_model_lists_the_known_models_and_sets_the_chosen_one(harness: ReplHarness) -> None:
    harness.ui.has_lists = True
    harness.ui.answers = ["openai/gpt-5-mini"]
    harness.environ["OPENAI_API_KEY"] = "sk-x"
    printed = (await harness.send("/model")).splitlines()
    assert printed[0].startswith("model: script:") and WHICH_MODEL in printed
    assert "openai/gpt-5-mini (key is set)" in printed and not any("anthropic/" in line for line in printed)
    assert printed[-1] == "model: openai/gpt-5-mini"
