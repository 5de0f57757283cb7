"""`agent approvals log`: what was asked, what was decided, by whom and by which rule."""

import json

import pytest

from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow
PUSH = "git push --dry-run"


def push_model(user: User) -> str:
    return user.script(*one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "that was it")))


def test_the_log_says_who_decided_what_and_which_rule_was_saved_where(user: User) -> None:
    model = push_model(user)
    terminal = PtyTerminal(user, "run", "push it", "--model", model)
    terminal.wait_for("[y] once")
    terminal.send_line("a")
    shown = terminal.wait_exit()[1]
    config = user.home / ".config" / "agent" / "config.toml"
    assert "you allowed it, always" in shown
    assert f"saved the rule 'git push' (everywhere) in {config}" in " ".join(shown.split())
    user.agent("run", "push it", "--model", model, "--deny", "git push")
    denied, allowed = json.loads(user.agent("approvals", "log", "--json").stdout)
    assert (allowed["command"], allowed["decision"], allowed["by"]) == (PUSH, "allow", "person")
    assert (allowed["scope"], allowed["rule"], allowed["saved_in"]) == ("always", "git push", str(config))
    assert (allowed["step_id"], allowed["tool"]) == ("s1", "run_command")
    assert allowed["asked_at"] <= allowed["decided_at"]
    assert (denied["decision"], denied["by"], denied["rule"]) == ("deny", "a rule", "git push")
    listed = user.agent("approvals", "log").stdout
    assert listed.splitlines()[0].split()[2:5] == ["deny", "a", "rule"]
    assert f"git push in {config}" in listed and "you, always" in listed


def test_an_edited_command_is_in_the_transcript_and_in_the_log(user: User) -> None:
    terminal = PtyTerminal(user, "run", "push it", "--model", push_model(user))
    terminal.wait_for("[e] edit")
    terminal.send_line("e")
    terminal.wait_for("> ")
    terminal.send_line("echo instead")
    shown = terminal.wait_exit()[1]
    assert "$ echo instead  (you edited it)" in shown
    (record,) = json.loads(user.agent("approvals", "log", "--json").stdout)
    assert (record["command"], record["edited_command"], record["scope"]) == (PUSH, "echo instead", "once")


def test_without_approvals_the_log_is_empty(user: User) -> None:
    assert user.agent("approvals", "log").stdout == "(no approvals)\n"
    assert json.loads(user.agent("approvals", "log", "--json").stdout) == []
