"""A lead at the prompt: its answer streams, its turns can be stopped, rewound, and proposed in plan mode."""

import pytest

from agent.sessions.resume.conversation import read_conversation
from cli.repl.commands.session_commands import REWOUND, WHICH_REQUEST
from cli.repl.plan_choice import PLAN_QUESTION
from tests.cli.repl.terminal_session import ENTER, ESC, OpenTerminal, TerminalSession
from tests.cli.repl.test_conversation import events
from tests.cli.repl.test_endings import result_of
from tests.cli.repl.test_plan_choice import SHIFT_TAB
from tooling.approvals.policy import PLAN_MODE

pytestmark = pytest.mark.slow


def said(text: str, contains: str, **more: object) -> dict[str, object]:
    """Script the lead to answer a message that contains a text."""
    return {"match": {"contains": contains}, "text": text, **more}


def called(contains: str, tool: str, **arguments: object) -> dict[str, object]:
    return {"match": {"contains": contains}, "tool_calls": [{"name": tool, "arguments": arguments}]}


def open_lead(open_terminal: OpenTerminal, *replies: object, **environ: str) -> TerminalSession:
    terminal = open_terminal(*replies, AGENT_PLANNING="auto", AGENT_MEMORY="false", columns=150, **environ)
    terminal.wait_ready()
    return terminal


def ended(terminal: TerminalSession, *codes: int) -> None:
    terminal.wait_until(lambda: result_of(terminal) == list(codes), f"results {codes}")


def test_an_answer_is_shown_once_without_steps(open_terminal: OpenTerminal) -> None:
    terminal = open_lead(
        open_terminal,
        called("how many", "run_command", command="seq 3"),
        said("There are three.", "1\n2\n3"),
    )
    terminal.send_line("how many?")
    terminal.wait_for("There are three.")
    ended(terminal, 0)
    lines = terminal.wait_stable().splitlines()
    shown = lines[lines.index("> how many?") :]
    assert "• $ seq 3" in shown and shown.count("There are three.") == 1
    assert not any("lead" in line or " ok" in line for line in shown)


def test_a_stopped_answer_stays_on_the_screen_and_in_the_conversation(open_terminal: OpenTerminal) -> None:
    terminal = open_lead(
        open_terminal,
        said("word " * 200, "tell me", chunks=200, chunk_delay_ms=100),
        said("In French: mot.", "in French"),
    )
    terminal.send_line("tell me")
    terminal.wait_for("word word")
    terminal.send(ESC)
    ended(terminal, 130)
    terminal.send_line("in French")
    shown = terminal.wait_for("In French: mot.")
    assert "word word" in shown
    ended(terminal, 130, 0)


def test_a_rewound_turn_leaves_the_conversation_and_its_files(open_terminal: OpenTerminal) -> None:
    terminal = open_lead(
        open_terminal,
        called("write it", "write_file", path="a.txt", content="one"),
        said("I wrote it.", "Created a.txt"),
        said("I know nothing of it.", "what did you write"),
        AGENT_APPROVAL_MODE="auto-edit",
    )
    terminal.send_line("write it")
    ended(terminal, 0)
    assert (terminal.folder / "a.txt").exists()
    terminal.wait_stable()
    terminal.send(ESC + ESC)
    terminal.wait_for(WHICH_REQUEST)
    terminal.pause()
    terminal.send(ENTER)
    terminal.wait_for(REWOUND)
    assert not (terminal.folder / "a.txt").exists()
    terminal.wait_until(lambda: "\n> write it" in terminal.window_text(), "the request in the prompt")
    terminal.send("\x15what did you write" + ENTER)
    terminal.wait_for("I know nothing of it.")
    (log,) = terminal.user.data.glob("sessions/*/events.jsonl")
    request, answer = read_conversation(log, lambda tool: None)
    assert request.content.endswith("what did you write") and answer.content == "I know nothing of it."


def test_plan_mode_is_told_to_the_model_and_left_with_run(open_terminal: OpenTerminal) -> None:
    terminal = open_lead(
        open_terminal,
        called("Carry out the plan.", "write_file", path="a.txt", content="one"),
        said("Done.", "Created a.txt"),
        called("add a file", "write_file", path="a.txt", content="one"),
        said("You need to add a.txt.", PLAN_MODE),
        AGENT_APPROVAL_MODE="auto-edit",
    )
    terminal.send(SHIFT_TAB)
    terminal.wait_for("· plan ·")
    terminal.send_line("add a file")
    terminal.wait_for(PLAN_QUESTION)
    assert not (terminal.folder / "a.txt").exists()
    terminal.pause()
    terminal.send("1" + ENTER)
    terminal.wait_for("Done.")
    contexts = [str(event["content"]) for event in events(terminal) if event.get("role") == "context"]
    assert "plan mode" in contexts[0] and "plan mode" not in contexts[1] and "writable" in contexts[1]


def test_the_last_lines_of_a_running_command_are_shown_live(open_terminal: OpenTerminal) -> None:
    command = "for n in 1 2 3; do echo part $n of 9; done; sleep 60"
    terminal = open_lead(open_terminal, called("count", "run_command", command=command))
    terminal.send_line("count")
    terminal.wait_until(lambda: "part 3 of 9" in terminal.window_text(), "the output of the running command")
    assert not any(event["type"] in ("tool.completed", "tool.output") for event in events(terminal))
