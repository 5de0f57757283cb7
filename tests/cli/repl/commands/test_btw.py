"""`/btw`: answered beside the run and without touching it, also when something goes wrong."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.repl.asides import CANCELLED, NO_QUESTION
from tests.cli.repl.repl_harness import ReplHarness
from tests.cli.repl.terminal_session import ENTER, ESC, OpenTerminal
from tests.cli.repl.test_conversation import events
from tests.cli.repl.test_endings import result_of

USAGE = {"input_tokens": 100, "output_tokens": 20, "requests": 1}


def lead(contains: str, text: str, **more: object) -> dict[str, object]:
    return {"match": {"purpose": "lead", "contains": contains}, "text": text, "usage": USAGE, **more}


def aside(contains: str, text: str, **more: object) -> dict[str, object]:
    return {"match": {"purpose": "aside", "contains": contains}, "text": text, "usage": USAGE, **more}


REPLIES = (
    lead("the code is 4711", "Noted."),
    lead("take your time", "Finally.", delay_ms=600_000),
    # Only a request that has the conversation is answered like this.
    aside(r"(?s)<conversation>.*4711.*</conversation>\n\nwhich code", "It is **4711**."),
    aside(r"(?s)<conversation>.*take your time.*</conversation>\n\nwhat now", "It is still working."),
    aside("what is a monad", "A monoid, as you know."),
    aside("think long", "Never said.", delay_ms=600_000),
    {"match": {"purpose": "aside", "contains": "break"}, "fault": "auth"},
    {"match": {"purpose": "aside", "contains": "say nothing"}, "tool_calls": [{"name": "read_file"}]},
)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ReplHarness]:
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(map(json.dumps, REPLIES)))
    harness = ReplHarness(
        tmp_path / "home", AGENT_MODEL=f"script:{script}", AGENT_PLANNING="never", AGENT_MEMORY="false"
    )
    async with harness.serving():
        yield harness


def log_of(harness: ReplHarness) -> str:
    (log,) = Path(harness.environ["AGENT_SANDBOX"], "sessions").glob("*/events.jsonl")
    return log.read_text()


async def test_it_knows_the_conversation_and_leaves_no_trace_in_it(harness: ReplHarness) -> None:
    await harness.send("the code is 4711")
    before = log_of(harness)
    assert await harness.send("/btw which code?") == "\n│ btw: which code?\n│ It is 4711."
    assert log_of(harness) == before


async def test_it_works_before_the_first_request(harness: ReplHarness) -> None:
    assert "│ A monoid, as you know." in await harness.send("/btw what is a monad?")
    assert harness.repl.queue.session_id is None


async def test_its_cost_is_part_of_the_session(harness: ReplHarness) -> None:
    await harness.send("/btw what is a monad?")
    assert (await harness.send("/cost")).startswith("120 tokens in 1 request")


async def test_it_is_answered_while_a_run_goes_on(harness: ReplHarness) -> None:
    harness.repl.accept("take your time")
    await harness.wait_for_event("step.started")
    harness.repl.accept("/btw what now?")
    while not any("It is still working." in line for line in harness.ui.printed):
        harness.ui.ready_event.clear()
        await harness.ui.ready_event.wait()
    assert harness.repl.queue.is_busy
    harness.repl.interrupt()
    await harness.wait_idle()


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("/btw break", "btw: no answer: "),
        ("/btw say nothing", "btw: no answer: the model gave no answer"),
        ("/btw what nobody scripted", "btw: no answer: "),
    ],
)
async def test_a_failure_is_one_line(harness: ReplHarness, line: str, printed: str) -> None:
    shown = await harness.send(line)
    assert shown.startswith(printed) and "\n" not in shown
    assert "│ A monoid" in await harness.send("/btw what is a monad?")


async def test_without_a_question_it_says_how(harness: ReplHarness) -> None:
    assert NO_QUESTION in await harness.send("/btw")


async def test_ctrl_c_cancels_it_before_anything_else(harness: ReplHarness) -> None:
    harness.repl.accept("/btw think long")
    harness.ui.ready_event.clear()
    await harness.ui.ready_event.wait()
    assert harness.repl.asides.lines(40) == ["btw (Esc cancels): think long"]
    harness.repl.interrupt()
    await harness.wait_idle()
    assert harness.ui.printed == [CANCELLED]


@pytest.mark.slow
def test_esc_cancels_the_question_and_not_the_run(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*REPLIES, AGENT_PLANNING="never", AGENT_MEMORY="false")
    terminal.wait_ready()
    terminal.send_line("take your time")
    terminal.wait_until(lambda: any(event["type"] == "step.started" for event in events(terminal)), "the run to start")
    terminal.send_line("/btw what now?")
    terminal.wait_for("│ It is still working.")
    terminal.send_line("/btw think long")
    terminal.wait_for("btw (Esc cancels): think long")
    terminal.send(ESC)
    terminal.wait_for(CANCELLED)
    terminal.wait_gone("(Esc cancels)")
    assert result_of(terminal) == []
    terminal.send(ESC)
    terminal.wait_until(lambda: result_of(terminal) == [130], "the run to stop")
    terminal.send("/btw what is a monad?" + ENTER)
    terminal.wait_for("│ A monoid, as you know.")
