"""Hints help: each is followed, and leads further."""

import re
import shlex

import pytest

from agent.execution.result.run_status import ALLOW_ON_RESUME, ASK_IN_TERMINAL
from cli.run.terminal_approvals import ANSWER_PROMPT
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import User, lead_call, lead_reply, one_step, plan, step, step_call, step_reply
from tests.programs import needs

pytestmark = pytest.mark.slow
CURL = "curl -m 3 https://example.invalid/a"
WAYS = re.compile(r"; (?P<flags>--.*?)(?: or (?P<other>--.*?))? would allow it\.")


def ways_out(said: str) -> list[list[str]]:
    """Return the flags that a refusal names, each alternative on its own."""
    found = WAYS.search(said)
    assert found, said
    return [shlex.split(flags) for flags in found.groups() if flags]


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("exec", "--", "git", "push", "--dry-run"), [["--allow", "git push"]]),
        (("exec", "--", CURL), [["--allow-net", "example.invalid"]]),
        (
            ("exec", "--", f"{CURL} && git push"),
            [
                [
                    "--allow",
                    CURL,
                    "--allow",
                    "git push",
                    "--allow-net",
                    "example.invalid",
                ]
            ],
        ),
        (
            ("exec", "--backend", "host", "--", CURL),
            [["--allow", CURL]],
        ),
        (("tools", "call", "delete_file", "path=old.txt"), [["--allow", "delete_file"]]),
        (
            ("tools", "call", "write_file", "path=new.txt", "content=x"),
            [["--allow", "write_file"], ["--approval-mode", "auto-edit"]],
        ),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
@needs("bwrap", "curl")
def test_the_flags_that_a_refusal_names_let_the_call_through(
    user: User, words: tuple[str, ...], flags: list[list[str]]
) -> None:
    (user.home / "old.txt").write_text("old")
    refused = user.agent(*words)
    assert (refused.exit_code, ways_out(refused.stderr)) == (57, flags)
    at = 1 if words[0] == "exec" else 3
    for way in flags:
        allowed = user.agent(*words[:at], *way, *words[at:])
        assert allowed.exit_code not in (2, 57), allowed


def test_a_denied_run_is_finished_by_resuming_with_the_flag_it_names(user: User) -> None:
    model = user.script(
        *one_step(step_call("s1", "run_command", command="git push; true"), step_reply("s1", "could not push"))
    )
    denied = user.agent("run", "push it", "--model", model)
    assert (denied.exit_code, ALLOW_ON_RESUME in denied.stderr) == (57, True)
    resume = re.search(r"resume with: agent (.*)", denied.stderr)
    assert resume
    model = user.script(step_call("s1", "run_command", command="git push; true"), step_reply("s1", "pushed"))
    ended = user.agent(*resume[1].split(), "--model", model, *ways_out(denied.stderr)[0])
    assert (ended.exit_code, ended.stdout) == (0, "pushed\n"), ended


def test_a_partial_run_is_finished_by_resuming(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="exit 3"), step_reply("s1", "It broke.")))
    partial = user.agent("run", "make it", "--model", model)
    resume = re.search(r"resume with: agent (.*)", partial.stderr)
    assert partial.exit_code == 1 and resume
    better = user.script(step_call("s1", "run_command", command="echo made"), step_reply("s1", "Made."))
    ended = user.agent(*resume[1].split(), "--model", better)
    assert (ended.exit_code, ended.stdout) == (0, "Made.\n"), ended


def test_a_question_is_answered_by_resuming_in_a_terminal(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    question = lead_call("ask_user", question="Which color?")
    asked = user.agent("run", "paint it", "--model", user.script(question, lead_reply("I took red.")))
    resume = re.search(r"resume with: agent (.*)", asked.stderr)
    assert asked.exit_code == 1 and ASK_IN_TERMINAL in asked.stderr and resume
    again = user.script(question, lead_reply("Painted blue."))
    terminal = PtyTerminal(user, *resume[1].split(), "--model", again)
    terminal.wait_for(ANSWER_PROMPT)
    terminal.send_line("blue")
    code, shown = terminal.wait_exit()
    assert (code, "Painted blue." in shown) == (0, True), shown


def test_a_refusal_is_told_to_the_user_and_not_to_the_model(user: User) -> None:
    (user.home / "old.txt").write_text("old")
    model = user.script(lead_call("delete_file", path="old.txt"), lead_reply("Not deleted."))
    ended = user.agent("run", "--planning", "never", "-C", ".", "--model", model, "-q", "delete it")
    assert ended.stderr.startswith("error: delete_file old.txt: Denied by policy: it deletes old.txt.")
    model = user.script(lead_call("run_command", command="rm -rf /"), lead_reply("Not done."))
    ended = user.agent("run", "--planning", "never", "-C", ".", "--model", model, "-q", "remove it")
    reason = "it would delete the system. This is permanent: nobody can approve it."
    assert ended.stderr == f"error: rm -rf /: BLOCKED: {reason}\n"


@pytest.mark.parametrize("reason", ["a blocked command", "a circular plan"])
def test_resuming_is_not_proposed_where_it_cannot_help(user: User, reason: str) -> None:
    model = user.script(
        *(
            one_step(step_call("s1", "run_command", command="rm -rf /"), step_reply("s1", "would not"))
            if reason == "a blocked command"
            else (plan(step("a", "b"), step("b", "a")),)
        )
    )
    ended = user.agent("run", "x", "--model", model)
    assert ended.exit_code != 0
    assert "hint" not in ended.stderr and "agent resume" not in ended.stderr
    assert user.agent("run", "x", "--model", model, "--output-format", "json").document.get("resume") is None
