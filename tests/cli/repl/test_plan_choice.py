"""Plans at the prompt: /plan draws a graph and asks; a proposal in plan mode is run, edited or dropped."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.protocol.events import MessageAdded, RunStarted
from cli.repl.plan_choice import CANCEL, CARRY_OUT, CARRY_OUT_EDITED, EDIT, PLAN_QUESTION, RUN
from cli.screen.format import PLAN_CANCELLED
from cli.screen.live_area import WAITING_FOR_USER
from tests.cli.repl.commands.test_commands import write_script
from tests.cli.repl.repl_harness import ReplHarness
from tests.cli.repl.terminal_session import ENTER, OpenTerminal
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.terminal_user import answer, composer_reply, plan, step, step_reply

SHIFT_TAB = "\x1b[Z"
# Removes the last step of a plan.
DROP_LAST = """sh -c 'sed -i "$(grep -n "^\\[\\[" "$1" | tail -1 | cut -d: -f1),\\$d" "$1"' editor"""


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ReplHarness]:
    model = write_script(
        tmp_path,
        reply_to("both\n\nwithout b", plan(step("a"))),
        reply_to("both", plan(step("a"), step("b"))),
        step_reply("a", "a done"),
        step_reply("b", "b done"),
        composer_reply("Both done."),
        reply_to("propose", answer("I would add a test.")),
        reply_to("Carry out", answer("Carried out.")),
        reply_to("and docs", answer("I would add a test and docs.")),
    )
    harness = ReplHarness(tmp_path / "home", AGENT_MODEL=model, EDITOR=DROP_LAST, PATH="/usr/bin:/bin")
    async with harness.serving():
        yield harness


def modes(harness: ReplHarness) -> list[str]:
    return [envelope.event.approval_mode for envelope in harness.ui.events if isinstance(envelope.event, RunStarted)]


def requests(harness: ReplHarness) -> list[str]:
    return [
        envelope.event.content
        for envelope in harness.ui.events
        if isinstance(envelope.event, MessageAdded) and envelope.event.role == "user" and not envelope.step_id
    ]


def completed_steps(harness: ReplHarness) -> set[str | None]:
    return {envelope.step_id for envelope in harness.ui.events if envelope.event.type == "step.completed"}


async def test_plan_draws_the_graph_and_runs_it(harness: ReplHarness) -> None:
    harness.ui.answers = [RUN]
    printed = await harness.send("/plan both")
    assert printed.splitlines() == ["a b", PLAN_QUESTION, RUN, EDIT, CANCEL]
    assert completed_steps(harness) == {"a", "b"}


async def test_an_edited_plan_is_drawn_again_before_it_runs(harness: ReplHarness) -> None:
    harness.ui.answers = ["edit", "run"]
    printed = await harness.send("/plan both")
    assert [line for line in printed.splitlines() if line in ("a b", "a", PLAN_QUESTION)] == [
        "a b",
        PLAN_QUESTION,
        "a",
        PLAN_QUESTION,
    ]
    assert completed_steps(harness) == {"a"}


async def test_a_plan_that_the_editor_left_unchanged_is_asked_about_again(harness: ReplHarness) -> None:
    harness.environ["EDITOR"] = "true"
    harness.ui.answers = [EDIT, CANCEL]
    printed = await harness.send("/plan both")
    assert printed.splitlines().count(PLAN_QUESTION) == 2
    assert completed_steps(harness) == set()


async def test_a_cancelled_plan_runs_nothing(harness: ReplHarness) -> None:
    harness.ui.answers = [CANCEL]
    await harness.send("/plan both")
    assert completed_steps(harness) == set()
    assert PLAN_CANCELLED in [getattr(envelope.event, "message", "") for envelope in harness.ui.events]


async def test_other_words_make_a_new_plan_with_them(harness: ReplHarness) -> None:
    harness.ui.answers = ["without b", RUN]
    await harness.send("/plan both")
    assert requests(harness) == ["both", "both\n\nwithout b"]
    assert completed_steps(harness) == {"a"}


async def test_a_proposal_is_carried_out_in_the_mode_used_before(harness: ReplHarness) -> None:
    harness.repl.cycle_mode()
    await harness.send("both")
    harness.repl.cycle_mode()
    harness.ui.answers = [RUN]
    await harness.send("propose")
    assert requests(harness) == ["both", "propose", CARRY_OUT]
    assert modes(harness) == ["auto-edit", "plan", "auto-edit"]
    assert "auto-edit" in harness.repl.state.status


async def test_switching_through_auto_edit_does_not_count_as_using_it(harness: ReplHarness) -> None:
    harness.repl.cycle_mode()
    harness.repl.cycle_mode()
    harness.ui.answers = [RUN]
    await harness.send("propose")
    assert modes(harness) == ["plan", "ask"]


async def test_a_proposal_can_be_edited_before_it_is_carried_out(harness: ReplHarness) -> None:
    harness.environ["VISUAL"] = "sh -c 'echo Add two tests. > \"$1\"' editor"
    await harness.send("/mode plan")
    harness.ui.answers = [EDIT, RUN]
    printed = await harness.send("propose")
    assert "Add two tests." in printed
    assert requests(harness)[-1] == f"{CARRY_OUT_EDITED}\n\nAdd two tests."


async def test_a_cancelled_proposal_stays_in_plan_mode_and_other_words_are_the_next_request(
    harness: ReplHarness,
) -> None:
    await harness.send("/mode plan")
    harness.ui.answers = [CANCEL]
    await harness.send("propose")
    harness.ui.answers = ["and docs", CANCEL]
    await harness.send("propose")
    assert modes(harness) == ["plan"] * 3
    assert requests(harness)[-1] == "and docs"


@pytest.mark.slow
def test_while_a_plan_waits_for_a_decision_the_live_line_says_so(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(reply_to("both", plan(step("a"), step("b"))))
    terminal.wait_ready()
    terminal.send_line("/plan both")
    terminal.wait_in_window(PLAN_QUESTION)
    terminal.wait_in_window(f"1 {WAITING_FOR_USER}")
    assert "planning ·" not in terminal.window_text()
    terminal.pause()
    terminal.send("3" + ENTER)
    terminal.wait_in_window(PLAN_CANCELLED)
    terminal.wait_gone(WAITING_FOR_USER)


@pytest.mark.slow
def test_shift_tab_shows_the_mode_and_the_plan_question_can_be_answered(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(
        reply_to("propose", answer("I would add a test.")), reply_to("Carry out", answer("Carried out.")), columns=200
    )
    terminal.wait_ready()
    terminal.wait_for("· ask ·")
    terminal.send(SHIFT_TAB)
    terminal.wait_for("· auto-edit ·")
    terminal.send(SHIFT_TAB)
    terminal.wait_for("· plan ·")
    terminal.send_line("propose")
    terminal.wait_for(PLAN_QUESTION)
    terminal.pause()
    terminal.send("1" + ENTER)
    terminal.wait_for("Carried out.")
    terminal.wait_for("· ask ·")
    assert [event["approval_mode"] for event in events(terminal) if event["type"] == "init"] == ["plan", "ask"]
