"""Ctrl-Z and SIGTSTP: the shell gets the terminal back, and `fg` restores the prompt."""

import os
import signal

import pytest

from cli.repl.ui.approval_cards import DENY_HINT
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, TerminalSession, child_processes, ctrl
from tests.cli.repl.ui.test_approvals_inline import PUSH, wait_decision
from tests.cli.terminal_user import User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow


def open_in_shell(open_terminal: OpenTerminal, user: User) -> tuple[TerminalSession, int]:
    """Open the prompt from a shell with job control; return the pid of the prompt as well."""
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 1500}
    model = user.script(*one_step(slow, step_reply("s1", "that was it")))
    terminal = open_terminal(program=("bash", "--norc", "-i"), PS1="shell$ ", AGENT_MODEL=model)
    terminal.wait_for("shell$")
    terminal.send(" ".join(user.command()) + ENTER)
    terminal.wait_ready()
    terminal.wait_for("script:")
    return terminal, child_processes(terminal.child.pid)[0]


def resume_from_shell(terminal: TerminalSession, times: int) -> None:
    terminal.wait_until(lambda: terminal.full_text().count("Stopped") == times, f"{times} stops")
    terminal.send("echo $((6 * 7))" + ENTER)
    terminal.wait_until(lambda: terminal.full_text().count("\n42") == times, "the shell to work")
    terminal.send("fg" + ENTER)


@pytest.mark.parametrize("how", ["key", "signal"])
def test_prompt_run_and_card_survive_being_suspended(open_terminal: OpenTerminal, user: User, how: str) -> None:
    terminal, pid = open_in_shell(open_terminal, user)

    def suspend() -> None:
        if how == "key":
            terminal.send(ctrl("z"))
        else:
            os.kill(pid, signal.SIGTSTP)

    terminal.send("push ")
    terminal.wait_for("> push")
    suspend()
    resume_from_shell(terminal, 1)
    terminal.send("it")
    terminal.wait_for("> push it")
    terminal.send(ENTER)
    terminal.wait_for("s1 Title of s1")
    suspend()
    resume_from_shell(terminal, 2)
    terminal.wait_for(DENY_HINT)
    terminal.pause()
    suspend()
    resume_from_shell(terminal, 3)
    terminal.wait_until(lambda: DENY_HINT in terminal.window_text().partition("fg")[2], "the card to be offered again")
    terminal.pause()
    terminal.send("n")
    wait_decision(terminal, "deny")
    terminal.wait_for("that was it")


def test_without_a_shell_to_return_to_it_does_not_suspend(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(*one_step(step_reply("s1", "that was it")))
    terminal.wait_ready()
    terminal.send(ctrl("z") + "still here")
    terminal.wait_for("> still here")
