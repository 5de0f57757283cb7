"""Session commands: undo and redo, resume, compact, and those that affect the current run."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.config.user_dirs import data_dir
from agent.protocol.events import MessageAdded, RunCompleted, RunStarted
from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import active_runs, read_session
from agent.workspace.request_context import COMPACT_REQUEST
from cli.repl.commands.session_commands import (
    COMPACTED,
    NEW_SESSION,
    NO_OTHER_SESSION,
    NOTHING_TO_REDO,
    NOTHING_TO_UNDO,
    REWOUND,
    RUN_IN_PROGRESS,
    WHICH_REQUEST,
    WHICH_SESSION,
)
from cli.repl.commands.setting_commands import APPLIES_NOW
from tests.cli.repl.commands.test_commands import completions, write_script
from tests.cli.repl.repl_harness import ReplHarness
from tests.cli.repl.test_conversation import reply_to
from tests.cli.terminal_user import answer, plan, step, step_call, step_reply


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ReplHarness]:
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
        reply_to(COMPACT_REQUEST[:6], answer("In short.")),
    )
    harness = ReplHarness(tmp_path / "home", AGENT_MODEL=model, AGENT_APPROVAL_MODE="auto-edit")
    (harness.repl.state.cwd / "a.txt").write_text("one\n")
    harness.programs.runs_undo = True
    async with harness.serving():
        yield harness


def files(harness: ReplHarness) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(harness.repl.state.cwd.glob("*.txt"))}


BOTH = {"a.txt": "two\n", "b.txt": "new\n"}


async def test_undo_and_redo_step_through_the_requests(harness: ReplHarness) -> None:
    await harness.send("edit")
    await harness.send("make")
    assert files(harness) == BOTH
    await harness.send("/undo --yes")
    assert files(harness) == {"a.txt": "two\n"}
    await harness.send("/undo --yes")
    assert files(harness) == {"a.txt": "one\n"}
    assert (await harness.send("/undo --yes")).startswith(f"error: {NOTHING_TO_UNDO}")
    await harness.send("/redo --yes")
    assert files(harness) == {"a.txt": "two\n"}
    await harness.send("/redo --yes")
    assert files(harness) == BOTH
    assert (await harness.send("/redo --yes")).startswith(f"error: {NOTHING_TO_REDO}")
    await harness.send("/undo --yes")
    assert files(harness) == {"a.txt": "two\n"}


async def test_undo_all_and_redo_cover_the_complete_session(harness: ReplHarness) -> None:
    await harness.send("edit")
    await harness.send("make")
    await harness.send("/undo all --yes")
    assert files(harness) == {"a.txt": "one\n"}
    await harness.send("/redo --yes")
    assert files(harness) == BOTH


async def test_undo_keeps_later_edits_of_the_user_unless_forced(harness: ReplHarness) -> None:
    await harness.send("edit")
    (harness.repl.state.cwd / "a.txt").write_text("two\nmine\n")
    await harness.send("/undo --yes")
    assert files(harness) == {"a.txt": "two\nmine\n"}
    await harness.send("/undo --yes --force")
    assert files(harness) == {"a.txt": "one\n"}
    await harness.send("/redo --yes")
    assert files(harness) == {"a.txt": "two\nmine\n"}


async def test_rewind_takes_back_everything_since_a_request(harness: ReplHarness) -> None:
    await harness.send("hello")
    await harness.send("edit")
    await harness.send("make")
    await harness.send("/undo --yes")
    await harness.send("make")
    harness.ui.answers = ["edit"]
    printed = await harness.send("/rewind")
    assert [line for line in printed.splitlines() if "run-" not in line][:4] == [
        WHICH_REQUEST,
        "make (now)",
        "edit (now)",
        "hello (now)",
    ]
    assert (files(harness), harness.ui.text) == ({"a.txt": "one\n"}, "edit")
    record = read_session(SessionStore(data_dir(harness.environ)).find(harness.repl.require_session_id()))
    assert [run.user for run in active_runs(record.runs)] == ["hello"]
    await harness.send("/redo --yes")
    assert files(harness) == BOTH
    harness.ui.answers = [""]
    assert "edit (now)" not in await harness.send("/rewind")


async def test_rewind_keeps_and_names_a_file_that_the_user_has_changed(harness: ReplHarness) -> None:
    await harness.send("edit")
    await harness.send("make")
    (harness.repl.state.cwd / "a.txt").write_text("two\nmine\n")
    harness.ui.answers = ["edit"]
    printed = await harness.send("/rewind")
    assert files(harness) == {"a.txt": "two\nmine\n"}
    assert "Not restored: a.txt was changed since" in printed and REWOUND in printed


async def test_why_finds_steps_of_earlier_requests(harness: ReplHarness) -> None:
    await harness.send("edit")
    edited = harness.repl.require_run_id()
    await harness.send("make")
    assert await completions(harness, "why", "") == ["make", "edit"]
    assert await harness.send("/why") == "error: no step given\n  choose from make, edit"
    await harness.send("/why edit")
    assert harness.programs.calls[-1] == ("runs", "why", edited, "edit")


async def test_resume_switches_sessions_and_shows_the_last_answer(harness: ReplHarness) -> None:
    await harness.send("hello")
    first = harness.repl.require_session_id()
    assert (await harness.send("/clear")).startswith(f"{NEW_SESSION}; /resume {first} ")
    await harness.send("edit")
    second = harness.repl.require_session_id()
    reply = await harness.send(f"/resume {first}")
    assert reply == f"switched to {first}: 1 request so far\n> hello\n  Good day.\n  What can I do?"
    assert harness.repl.require_session_id() == first and (await harness.send("/cost")).endswith("1 request, $0.0000")
    harness.ui.answers = ["edit"]
    await harness.send("/resume")
    assert harness.repl.require_session_id() == second
    harness.ui.answers = [""]
    await harness.send("/resume")
    assert harness.repl.require_session_id() == second


async def test_a_session_in_which_nothing_ran_is_not_offered(harness: ReplHarness) -> None:
    await harness.send("hello")
    await harness.send("/clear")
    SessionStore(data_dir(harness.environ)).open("nothing-ran")
    harness.ui.answers = [""]
    question, *options = (await harness.send("/resume")).splitlines()
    assert question == WHICH_SESSION
    assert [option.split()[0] for option in options] == ["hello"]


async def test_sessions_with_the_same_title_can_be_told_apart(harness: ReplHarness) -> None:
    await harness.send("hello")
    await harness.send("/fork copy")
    await harness.send("/clear")
    harness.ui.answers = [""]
    question, *options = (await harness.send("/resume")).splitlines()
    assert question == WHICH_SESSION
    assert len(options) == 2 and len(set(options)) == 2


async def test_lines_typed_before_the_prompt_was_ready_are_handled_in_the_order_of_typing(harness: ReplHarness) -> None:
    for line in ("hello", "/clear", "hello", "/why", "/nonsense"):
        harness.repl.accept(line)
    await harness.wait_idle()
    shown = "\n".join(harness.ui.printed)
    started = [envelope for envelope in harness.ui.events if isinstance(envelope.event, RunStarted)]
    assert len({envelope.session_id for envelope in started}) == 2, "the second request is in the new session"
    assert f"/resume {started[0].session_id} returns to the previous" in shown
    assert shown.index(NEW_SESSION) < shown.index("/nonsense")


async def test_a_command_typed_ahead_after_a_request_that_fails_is_not_lost(harness: ReplHarness) -> None:
    for line in ("no such script line", "/clear"):
        harness.repl.accept(line)
    await harness.wait_idle()
    assert NEW_SESSION in "\n".join(harness.ui.printed)


async def test_an_interrupted_run_is_resumed(harness: ReplHarness) -> None:
    harness.repl.accept("slow")
    await harness.wait_for_event("step.started")
    assert send_now(harness, "/undo").startswith(f"error: {RUN_IN_PROGRESS}")
    assert send_now(harness, "/clear").startswith(f"error: {RUN_IN_PROGRESS}")
    assert send_now(harness, "/resume").startswith(f"error: {RUN_IN_PROGRESS}")
    harness.repl.interrupt()
    await harness.wait_idle()
    interrupted = harness.repl.require_run_id()
    remove_delays(harness)
    await harness.send("/resume")
    event = harness.ui.events[-1].event
    assert isinstance(event, RunCompleted) and (event.subtype, event.result) == ("success", "late")
    assert harness.repl.require_run_id() != interrupted
    assert (await harness.send(f"/resume {harness.repl.require_run_id()}")).startswith(
        f"error: {harness.repl.require_run_id()} is already finished"
    )


async def test_a_run_that_was_stopped_before_other_requests_is_resumed_only_by_its_name(harness: ReplHarness) -> None:
    harness.repl.accept("slow")
    await harness.wait_for_event("step.started")
    harness.repl.interrupt()
    await harness.wait_idle()
    interrupted = harness.repl.require_run_id()
    remove_delays(harness)
    await harness.send("hello")
    later = harness.repl.require_run_id()
    assert (await harness.send("/resume")).startswith(f"error: {NO_OTHER_SESSION}")
    assert harness.repl.require_run_id() == later
    await harness.send(f"/resume {interrupted}")
    event = harness.ui.events[-1].event
    assert isinstance(event, RunCompleted) and (event.subtype, event.result) == ("success", "late")


async def test_a_run_that_was_rewound_is_not_resumed(harness: ReplHarness) -> None:
    harness.repl.accept("slow")
    await harness.wait_for_event("step.started")
    harness.repl.interrupt()
    await harness.wait_idle()
    interrupted = harness.repl.require_run_id()
    harness.ui.answers = ["slow"]
    await harness.send("/rewind")
    assert (await harness.send(f"/resume {interrupted}")).startswith(f"error: {interrupted} was taken back by a rewind")


def remove_delays(harness: ReplHarness) -> None:
    """Make the model reply without delays."""
    script = Path(harness.environ["AGENT_MODEL"].removeprefix("script:"))
    script.write_text(script.read_text().replace('"delay_ms": 20000', '"delay_ms": 0'))


def send_now(harness: ReplHarness, line: str) -> str:
    """Send a line that is answered immediately, even during a run."""
    before = len(harness.ui.printed)
    harness.repl.accept(line)
    return "\n".join(harness.ui.printed[before:])


async def test_queued_requests_can_be_dropped_and_edited(harness: ReplHarness) -> None:
    for line in ("slow", "hello", "edit", "make"):
        harness.repl.accept(line)
        await asyncio.sleep(0)
    assert send_now(harness, "/queue") == "  1. hello\n  2. edit\n  3. make"
    assert send_now(harness, "/queue drop 2") == "  1. hello\n  2. make"
    assert send_now(harness, "/queue edit 2") == "  1. hello"
    assert harness.ui.text == "make"
    assert await completions(harness, "queue", "drop", "") == ["1"]
    send_now(harness, "/queue clear")
    harness.repl.interrupt()
    await harness.wait_idle()


async def test_a_new_budget_applies_to_the_current_run(harness: ReplHarness) -> None:
    harness.repl.accept("slow")
    await harness.wait_for_event("step.started")
    assert send_now(harness, "/budget 5k").endswith(APPLIES_NOW)
    app = harness.repl.queue._app
    assert app is not None and app._context.budget.max_tokens == 5000
    harness.repl.interrupt()
    await harness.wait_idle()


async def test_compact_shows_the_sizes_and_hides_its_request(harness: ReplHarness) -> None:
    for _ in range(3):
        await harness.send("hello")
    reply = await harness.send("/compact")
    assert COMPACTED in reply and " → " in reply
    asked = [one.event for one in harness.ui.events if isinstance(one.event, MessageAdded) and one.event.role == "user"]
    assert asked[-1].content == COMPACT_REQUEST
    assert not any(COMPACT_REQUEST in line for line in harness.ui.printed)


async def test_resume_shows_the_last_request_of_the_user(harness: ReplHarness) -> None:
    await harness.send("hello")
    await harness.send("/compact")
    first = harness.repl.require_session_id()
    await harness.send("/clear")
    assert "\n> hello\n" in await harness.send(f"/resume {first}")
