"""Commands about sessions: taking back request by request, going on, the queue, the budget, what was gained."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.protocol.events import MessageSaid, RunCompleted
from tests.cli.repl.commands.test_commands import completed, scripted
from tests.cli.repl.test_conversation import to
from tests.cli.repl.ui.headless_tui import Talk
from tests.cli.terminal_user import answer, calls, plan, says, step


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    edit = {"path": "a.txt", "old_text": "one", "new_text": "two"}
    model = scripted(
        tmp_path,
        to("hello", answer("Good day.\n\nWhat can I do?")),
        to("edit", plan(step("edit"))),
        calls("edit", "edit_file", **edit),
        says("edit", "edited"),
        to("make", plan(step("make"))),
        calls("make", "write_file", path="b.txt", content="new\n"),
        says("make", "made"),
        to("slow", plan(step("slow"))),
        says("slow", "late", delay_ms=20_000),
        to("Sum up", answer("In short.")),
    )
    talk = Talk(tmp_path / "home", AGENT_MODEL=model, AGENT_APPROVAL_MODE="auto-edit")
    (talk.repl.place.cwd / "a.txt").write_text("one\n")
    talk.notebook.does_undo = True
    working = asyncio.ensure_future(talk.repl.turns.work())
    yield talk
    talk.repl.turns.leave()
    await working


def files(talk: Talk) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(talk.repl.place.cwd.glob("*.txt"))}


BOTH = {"a.txt": "two\n", "b.txt": "new\n"}


async def test_undo_and_redo_go_from_request_to_request(talk: Talk) -> None:
    await talk.says("edit")
    await talk.says("make")
    assert files(talk) == BOTH
    await talk.says("/undo --yes")
    assert files(talk) == {"a.txt": "two\n"}
    await talk.says("/undo --yes")
    assert files(talk) == {"a.txt": "one\n"}
    assert (await talk.says("/undo --yes")).startswith("error: no file tool has changed anything here that still")
    await talk.says("/redo --yes")
    assert files(talk) == {"a.txt": "two\n"}
    await talk.says("/redo --yes")
    assert files(talk) == BOTH
    assert (await talk.says("/redo --yes")).startswith("error: nothing was taken back in this session")
    await talk.says("/undo --yes")
    assert files(talk) == {"a.txt": "two\n"}


async def test_all_of_a_session_is_taken_back_and_comes_back_at_once(talk: Talk) -> None:
    await talk.says("edit")
    await talk.says("make")
    await talk.says("/undo all --yes")
    assert files(talk) == {"a.txt": "one\n"}
    await talk.says("/redo --yes")
    assert files(talk) == BOTH


async def test_what_the_person_wrote_since_stays_and_can_be_insisted_on(talk: Talk) -> None:
    await talk.says("edit")
    (talk.repl.place.cwd / "a.txt").write_text("two\nmine\n")
    await talk.says("/undo --yes")
    assert files(talk) == {"a.txt": "two\nmine\n"}
    await talk.says("/undo --yes --force")
    assert files(talk) == {"a.txt": "one\n"}
    await talk.says("/redo --yes")
    assert files(talk) == {"a.txt": "two\nmine\n"}


async def test_a_step_of_an_earlier_request_can_be_asked_about(talk: Talk) -> None:
    await talk.says("edit")
    edited = talk.repl.run()
    await talk.says("make")
    assert await completed(talk, "why", "") == ["make", "edit"]
    assert await talk.says("/why") == "error: which step?\n  one of make, edit"
    await talk.says("/why edit")
    assert talk.notebook.asked[-1] == ("runs", "why", edited, "edit")


async def test_another_session_is_entered_and_recalled(talk: Talk) -> None:
    await talk.says("hello")
    first = talk.repl.session()
    assert await talk.says("/clear") == f"a new session; /resume {first} goes back"
    await talk.says("edit")
    second = talk.repl.session()
    said = await talk.says(f"/resume {first}")
    assert said == f"you are in {first} now: 1 request so far\n> hello\n  Good day.\n  What can I do?"
    assert talk.repl.session() == first and (await talk.says("/cost")).endswith("1 request, $0.0000")
    talk.face.answers = ["edit (now, success)"]
    await talk.says("/resume")
    assert talk.repl.session() == second
    talk.face.answers = ["Later"]
    await talk.says("/resume")
    assert talk.repl.session() == second


async def test_a_run_that_was_cut_off_goes_on_at_the_prompt(talk: Talk) -> None:
    talk.repl.accept("slow")
    await talk.hears("step.started")
    assert at_once(talk, "/undo").startswith("error: a run is going on in this session")
    assert at_once(talk, "/resume").startswith("error: a run is going on")
    talk.repl.interrupt()
    await talk.rests()
    cut = talk.repl.run()
    hasten(talk)
    await talk.says("/resume")
    event = talk.face.heard[-1].event
    assert isinstance(event, RunCompleted) and (event.subtype, event.result) == ("success", "late")
    assert talk.repl.run() != cut
    assert (await talk.says(f"/resume {talk.repl.run()}")).startswith(f"error: {talk.repl.run()} has finished")


def hasten(talk: Talk) -> None:
    """Let the model no longer be slow."""
    script = Path(talk.environ["AGENT_MODEL"].removeprefix("script:"))
    script.write_text(script.read_text().replace('"delay_ms": 20000', '"delay_ms": 0'))


def at_once(talk: Talk, line: str) -> str:
    """Send a line that is answered at once, whatever goes on."""
    before = len(talk.face.said)
    talk.repl.accept(line)
    return "\n".join(talk.face.said[before:])


async def test_what_waits_can_be_dropped_and_taken_back_one_by_one(talk: Talk) -> None:
    for line in ("slow", "hello", "edit", "make"):
        talk.repl.accept(line)
        await asyncio.sleep(0)
    assert at_once(talk, "/queue") == "  1. hello\n  2. edit\n  3. make"
    assert at_once(talk, "/queue drop 2") == "  1. hello\n  2. make"
    assert at_once(talk, "/queue edit 2") == "  1. hello"
    assert talk.face.text == "make"
    assert await completed(talk, "queue", "drop", "") == ["1"]
    at_once(talk, "/queue clear")
    talk.repl.interrupt()
    await talk.rests()


async def test_a_budget_reaches_the_run_that_is_going_on(talk: Talk) -> None:
    talk.repl.accept("slow")
    await talk.hears("step.started")
    assert at_once(talk, "/budget 5k").endswith("this holds for the run that is going on, too")
    app = talk.repl.turns._app
    assert app is not None and app._ledger.max_tokens == 5000
    talk.repl.interrupt()
    await talk.rests()


async def test_making_room_shows_what_was_gained_and_not_how_it_is_asked_for(talk: Talk) -> None:
    for _ in range(3):
        await talk.says("hello")
    said = await talk.says("/compact")
    assert "the history that later requests take along: " in said and " → " in said
    asked = [one.event for one in talk.face.heard if isinstance(one.event, MessageSaid) and one.event.role == "user"]
    assert asked[-1].content.startswith("Sum up")
    assert not any("Sum up" in line for line in talk.face.said)


async def test_going_back_recalls_the_persons_own_words(talk: Talk) -> None:
    await talk.says("hello")
    await talk.says("/compact")
    first = talk.repl.session()
    await talk.says("/clear")
    assert "\n> hello\n" in await talk.says(f"/resume {first}")


async def test_the_context_is_told_part_by_part(talk: Talk) -> None:
    await talk.says("hello")
    (talk.repl.place.cwd / "AGENTS.md").write_text("Use tabs.\n")
    talk.repl.overheard = "$ ls\na.txt\n"
    said = await talk.says("/context")
    assert [line.split()[0] for line in said.splitlines()] == ["history", "memory", "notes", "output", "in"]
    assert "1 request so far" in said and "about " in said.splitlines()[-1]
    assert "output" not in await talk.says("/context drop") and not talk.repl.overheard
    assert (await talk.says("/context rob")).startswith("error: the context cannot 'rob'")
