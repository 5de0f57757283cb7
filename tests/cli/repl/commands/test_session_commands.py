"""Commands about sessions: taking back request by request, going on, the queue, the budget, what was gained."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.protocol.events import MessageSaid, RunCompleted
from tests.cli.repl.commands.test_commands import completions, write_script
from tests.cli.repl.test_conversation import reply_to
from tests.cli.repl.ui.headless_tui import ReplHarness
from tests.cli.terminal_user import answer, plan, step, step_call, step_reply


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[ReplHarness]:
    edit = {"path": "a.txt", "old_text": "one", "new_text": "two"}
    model = write_script(
        tmp_path,
        reply_to("hello", answer("Good day.\n\nWhat can I do?")),
        reply_to("edit", plan(step("edit"))),
        step_call("edit", "edit_file", **edit),
        step_reply("edit", "edited"),
        reply_to("make", plan(step("make"))),
        step_call("make", "write_file", path="b.txt", content="new\n"),
        step_reply("make", "made"),
        reply_to("slow", plan(step("slow"))),
        step_reply("slow", "late", delay_ms=20_000),
        reply_to("Sum up", answer("In short.")),
    )
    talk = ReplHarness(tmp_path / "home", AGENT_MODEL=model, AGENT_APPROVAL_MODE="auto-edit")
    (talk.repl.state.cwd / "a.txt").write_text("one\n")
    talk.programs.runs_undo = True
    working = asyncio.ensure_future(talk.repl.queue.run())
    yield talk
    talk.repl.queue.stop()
    await working


def files(talk: ReplHarness) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(talk.repl.state.cwd.glob("*.txt"))}


BOTH = {"a.txt": "two\n", "b.txt": "new\n"}


async def test_undo_and_redo_go_from_request_to_request(talk: ReplHarness) -> None:
    await talk.send("edit")
    await talk.send("make")
    assert files(talk) == BOTH
    await talk.send("/undo --yes")
    assert files(talk) == {"a.txt": "two\n"}
    await talk.send("/undo --yes")
    assert files(talk) == {"a.txt": "one\n"}
    assert (await talk.send("/undo --yes")).startswith("error: no file tool has changed anything here that still")
    await talk.send("/redo --yes")
    assert files(talk) == {"a.txt": "two\n"}
    await talk.send("/redo --yes")
    assert files(talk) == BOTH
    assert (await talk.send("/redo --yes")).startswith("error: nothing was taken back in this session")
    await talk.send("/undo --yes")
    assert files(talk) == {"a.txt": "two\n"}


async def test_all_of_a_session_is_taken_back_and_comes_back_at_once(talk: ReplHarness) -> None:
    await talk.send("edit")
    await talk.send("make")
    await talk.send("/undo all --yes")
    assert files(talk) == {"a.txt": "one\n"}
    await talk.send("/redo --yes")
    assert files(talk) == BOTH


async def test_what_the_person_wrote_since_stays_and_can_be_insisted_on(talk: ReplHarness) -> None:
    await talk.send("edit")
    (talk.repl.state.cwd / "a.txt").write_text("two\nmine\n")
    await talk.send("/undo --yes")
    assert files(talk) == {"a.txt": "two\nmine\n"}
    await talk.send("/undo --yes --force")
    assert files(talk) == {"a.txt": "one\n"}
    await talk.send("/redo --yes")
    assert files(talk) == {"a.txt": "two\nmine\n"}


async def test_a_step_of_an_earlier_request_can_be_asked_about(talk: ReplHarness) -> None:
    await talk.send("edit")
    edited = talk.repl.require_run_id()
    await talk.send("make")
    assert await completions(talk, "why", "") == ["make", "edit"]
    assert await talk.send("/why") == "error: which step?\n  one of make, edit"
    await talk.send("/why edit")
    assert talk.programs.calls[-1] == ("runs", "why", edited, "edit")


async def test_another_session_is_entered_and_recalled(talk: ReplHarness) -> None:
    await talk.send("hello")
    first = talk.repl.require_session_id()
    assert await talk.send("/clear") == f"a new session; /resume {first} goes back"
    await talk.send("edit")
    second = talk.repl.require_session_id()
    said = await talk.send(f"/resume {first}")
    assert said == f"you are in {first} now: 1 request so far\n> hello\n  Good day.\n  What can I do?"
    assert talk.repl.require_session_id() == first and (await talk.send("/cost")).endswith("1 request, $0.0000")
    talk.ui.answers = ["edit (now, success)"]
    await talk.send("/resume")
    assert talk.repl.require_session_id() == second
    talk.ui.answers = ["Later"]
    await talk.send("/resume")
    assert talk.repl.require_session_id() == second


async def test_a_run_that_was_cut_off_goes_on_at_the_prompt(talk: ReplHarness) -> None:
    talk.repl.accept("slow")
    await talk.wait_for_event("step.started")
    assert send_now(talk, "/undo").startswith("error: a run is going on in this session")
    assert send_now(talk, "/resume").startswith("error: a run is going on")
    talk.repl.interrupt()
    await talk.wait_idle()
    cut = talk.repl.require_run_id()
    remove_delays(talk)
    await talk.send("/resume")
    event = talk.ui.events[-1].event
    assert isinstance(event, RunCompleted) and (event.subtype, event.result) == ("success", "late")
    assert talk.repl.require_run_id() != cut
    assert (await talk.send(f"/resume {talk.repl.require_run_id()}")).startswith(
        f"error: {talk.repl.require_run_id()} has finished"
    )


def remove_delays(talk: ReplHarness) -> None:
    """Let the model no longer be slow."""
    script = Path(talk.environ["AGENT_MODEL"].removeprefix("script:"))
    script.write_text(script.read_text().replace('"delay_ms": 20000', '"delay_ms": 0'))


def send_now(talk: ReplHarness, line: str) -> str:
    """Send a line that is answered at once, whatever goes on."""
    before = len(talk.ui.printed)
    talk.repl.accept(line)
    return "\n".join(talk.ui.printed[before:])


async def test_what_waits_can_be_dropped_and_taken_back_one_by_one(talk: ReplHarness) -> None:
    for line in ("slow", "hello", "edit", "make"):
        talk.repl.accept(line)
        await asyncio.sleep(0)
    assert send_now(talk, "/queue") == "  1. hello\n  2. edit\n  3. make"
    assert send_now(talk, "/queue drop 2") == "  1. hello\n  2. make"
    assert send_now(talk, "/queue edit 2") == "  1. hello"
    assert talk.ui.text == "make"
    assert await completions(talk, "queue", "drop", "") == ["1"]
    send_now(talk, "/queue clear")
    talk.repl.interrupt()
    await talk.wait_idle()


async def test_a_budget_reaches_the_run_that_is_going_on(talk: ReplHarness) -> None:
    talk.repl.accept("slow")
    await talk.wait_for_event("step.started")
    assert send_now(talk, "/budget 5k").endswith("this holds for the run that is going on, too")
    app = talk.repl.queue._app
    assert app is not None and app._budget.max_tokens == 5000
    talk.repl.interrupt()
    await talk.wait_idle()


async def test_making_room_shows_what_was_gained_and_not_how_it_is_asked_for(talk: ReplHarness) -> None:
    for _ in range(3):
        await talk.send("hello")
    said = await talk.send("/compact")
    assert "the history that later requests take along: " in said and " → " in said
    asked = [one.event for one in talk.ui.events if isinstance(one.event, MessageSaid) and one.event.role == "user"]
    assert asked[-1].content.startswith("Sum up")
    assert not any("Sum up" in line for line in talk.ui.printed)


async def test_going_back_recalls_the_persons_own_words(talk: ReplHarness) -> None:
    await talk.send("hello")
    await talk.send("/compact")
    first = talk.repl.require_session_id()
    await talk.send("/clear")
    assert "\n> hello\n" in await talk.send(f"/resume {first}")


async def test_the_context_is_told_part_by_part(talk: ReplHarness) -> None:
    await talk.send("hello")
    (talk.repl.state.cwd / "AGENTS.md").write_text("Use tabs.\n")
    talk.repl.shell_output = "$ ls\na.txt\n"
    said = await talk.send("/context")
    assert [line.split()[0] for line in said.splitlines()] == ["history", "memory", "notes", "output", "in"]
    assert "1 request so far" in said and "about " in said.splitlines()[-1]
    assert "output" not in await talk.send("/context drop") and not talk.repl.shell_output
    assert (await talk.send("/context rob")).startswith("error: the context cannot 'rob'")
