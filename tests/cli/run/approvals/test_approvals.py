"""Approvals and questions on a real terminal, and the rules they create."""

import json
import time
from dataclasses import replace
from datetime import datetime

import pytest

from cli.run.terminal_approvals import ANSWER_PROMPT, PASTE_NOTICE
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import User, one_step, plan, step, step_call, step_reply
from tests.programs import needs
from tooling.approvals.policy import PLAN_MODE

pytestmark = pytest.mark.slow

PUSH = "git push --dry-run"


def run_push(user: User, *more: str) -> PtyTerminal:
    model = user.script(*one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "that was it")))
    return PtyTerminal(user, "run", "push it", "--model", model, *more)


def first_tool_output(user: User) -> str:
    """Return the output of the first call, as the model saw it."""
    (log,) = user.data.glob("sessions/*/events.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return str(next(event["output"] for event in events if event["type"] == "tool.completed"))


def test_yes_runs_the_command_once_and_returns_its_output_to_the_model(user: User) -> None:
    terminal = run_push(user)
    before = terminal.wait_for("[y] once")
    assert PUSH in before and "because" in before and str(user.data) in before
    terminal.send_line("y")
    code, _ = terminal.wait_exit()
    # The push itself fails: this is no repository.
    assert code == 1
    assert "not a git repository" in first_tool_output(user)


def test_a_reason_denies_the_command_and_reaches_the_model(user: User) -> None:
    terminal = run_push(user)
    terminal.wait_for("[y] once")
    terminal.send_line("use the staging branch")
    code, _ = terminal.wait_exit()
    assert code == 57
    assert "use the staging branch" in first_tool_output(user)


def test_the_command_can_be_edited_before_it_runs(user: User) -> None:
    terminal = run_push(user)
    terminal.wait_for("[e] edit")
    terminal.send_line("e")
    terminal.wait_for("> ")
    terminal.send_line("echo edited > edited.txt; cat edited.txt")
    assert terminal.wait_exit()[0] == 0
    assert "The user changed the command to: echo edited" in first_tool_output(user)


def test_an_edited_command_can_still_be_blocked(user: User) -> None:
    terminal = run_push(user)
    terminal.wait_for("[e] edit")
    terminal.send_line("e")
    terminal.wait_for("> ")
    terminal.send_line("rm -rf /")
    assert terminal.wait_exit()[0] == 57
    assert "BLOCKED" in first_tool_output(user)


@pytest.mark.parametrize(("key", "folder"), [("p", True), ("a", False)])
def test_a_lasting_approval_saves_the_displayed_rule(user: User, key: str, folder: bool) -> None:
    project, other = user.home / "project", user.home / "other"
    project.mkdir()
    other.mkdir()
    terminal = run_push(user, "-C", str(project))
    terminal.wait_for("'git push' in this folder")
    terminal.send_line(key)
    assert terminal.wait_exit()[0] == 1
    rules = json.loads(user.agent("rules", "list", "--json").stdout)
    assert rules == [{"effect": "allow", "words": "git push", "folder": str(project) if folder else ""}]
    model = user.script(*one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "again")))
    for working_dir, code in ((project, 1), (other, 57 if folder else 1)):
        assert user.agent("run", "x", "--model", model, "-C", str(working_dir)).exit_code == code


def test_no_lasting_approval_is_offered_for_sudo(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="sudo ls"), step_reply("s1", "done")))
    terminal = PtyTerminal(user, "run", "x", "--model", model)
    prompt = terminal.wait_for("[n] no")
    assert "[p]" not in prompt and "[a]" not in prompt
    terminal.send_line("n")
    terminal.wait_exit()


def test_keys_typed_before_the_prompt_do_not_answer_it(user: User) -> None:
    slow = {**step_call("s1", "run_command", command=PUSH), "delay_ms": 1500}
    model = user.script(*one_step(slow, step_reply("s1", "done")))
    terminal = PtyTerminal(user, "run", "x", "--model", model)
    terminal.wait_for("s1 Title")
    terminal.send_line("y")
    terminal.wait_for("[y] once")
    terminal.send_line("n")
    assert terminal.wait_exit()[0] == 57


def test_control_characters_in_a_command_are_escaped(user: User) -> None:
    model = user.script(
        *one_step(step_call("s1", "run_command", command="git push\u202e origin"), step_reply("s1", "done"))
    )
    terminal = PtyTerminal(user, "run", "x", "--model", model)
    terminal.wait_for("git push\\u202e origin")
    terminal.wait_for("[n] no")
    terminal.send_line("n")
    terminal.wait_exit()


def test_control_characters_in_a_question_and_its_options_are_escaped(user: User) -> None:
    asking = {"id": "q", "type": "ask_user", "ask_question": "Sure?\x1b[2J", "ask_options": ["yes\x1b[31m", "no"]}
    terminal = PtyTerminal(user, "run", "x", "--model", user.script(plan(asking)))
    shown = terminal.wait_for(ANSWER_PROMPT)
    assert ("Sure?\\x1b[2J" in shown, "yes\\x1b[31m" in shown, "\x1b[2J" in shown) == (True, True, False)
    terminal.send_line("1")
    code, rest = terminal.wait_exit()
    assert (code, "\x1b[31m" in rest) == (0, False)


def test_an_answer_with_invalid_utf8_is_accepted(user: User) -> None:
    user = replace(user, environ={"PYTHONIOENCODING": "utf-8:strict"})
    terminal = run_push(user)
    terminal.wait_for("[n] no")
    terminal.send_bytes(b"\xff\n")
    assert terminal.wait_exit()[0] == 57


def test_other_steps_continue_while_one_waits_for_approval(user: User) -> None:
    model = user.script(
        plan(step("a"), step("b")),
        step_call("a", "run_command", command=PUSH),
        step_reply("a", "a done"),
        step_call("b", "run_command", command="until test -e go; do sleep 0.05; done"),
        step_reply("b", "b done"),
        {"match": {"purpose": "composer"}, "text": "both"},
    )
    folder = user.home / "work"
    folder.mkdir()
    terminal = PtyTerminal(user, "run", "x", "--plain", "--model", model, "-C", str(folder))
    terminal.wait_for("[n] no")
    (folder / "go").touch()
    terminal.wait_for("b: ok")
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 1


def test_a_question_is_answered_by_number_or_text(user: User) -> None:
    asking = {"id": "q", "type": "ask_user", "title": "Ask", "ask_question": "Which?", "ask_options": ["red", "blue"]}
    for typed, answer in (("2", "blue"), ("green please", "green please")):
        model = user.script(plan(asking))
        terminal = PtyTerminal(user, "run", "x", "--model", model)
        terminal.wait_for("Which?")
        terminal.wait_for(ANSWER_PROMPT)
        terminal.send_line(typed)
        code, rest = terminal.wait_exit()
        assert (code, answer in rest) == (0, True)


def test_ctrl_c_at_an_approval_stops_the_run(user: User) -> None:
    terminal = run_push(user)
    terminal.wait_for("[n] no")
    terminal.send_line("\x03")
    assert terminal.wait_exit()[0] == 130


def test_an_unanswered_approval_is_denied(user: User) -> None:
    terminal = run_push(user, "--set", "approval_timeout_s=0.5")
    terminal.wait_for("[n] no")
    assert terminal.wait_exit()[0] == 57
    assert "No answer within" in first_tool_output(user)


def test_rules_test_shows_past_commands_that_would_be_decided_differently(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command=PUSH), step_reply("s1", "x")))
    user.agent("run", "x", "--model", model)
    assert json.loads(user.agent("rules", "test", "--json").stdout) == {"commands": 1, "changes": []}
    user.agent("rules", "add", "git push")
    changes = json.loads(user.agent("rules", "test", "--json").stdout)["changes"]
    assert [(change["command"], change["before"], change["now"]) for change in changes] == [(PUSH, "ask", "allow")]


def test_adding_or_removing_a_rule_twice_is_an_error(user: User) -> None:
    assert user.agent("rules", "add", "--deny", "make", "deploy").exit_code == 0
    assert user.agent("rules", "add", "--deny", "make deploy").exit_code == 42
    assert user.agent("rules", "list").stdout == "deny   make deploy  (everywhere)\n"
    assert user.agent("rules", "rm", "--deny", "make deploy").stderr == "removed: deny make deploy (everywhere)\n"
    assert user.agent("rules", "rm", "--deny", "make deploy").exit_code == 42


def test_waiting_for_approval_does_not_count_towards_the_step_timeout(user: User) -> None:
    terminal = run_push(user, "--set", "step_profiles.default.timeout_s=5")
    terminal.wait_for("[n] no")
    time.sleep(5.5)
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 1


@pytest.mark.needs("bwrap")
def test_a_file_edit_is_shown_as_a_diff_for_approval(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "write_file", path="x.txt", content="hi"), step_reply("s1", "done")))
    terminal = PtyTerminal(user, "run", "x", "--model", model, "-C", ".")
    before = terminal.wait_for("[n] no")
    assert "write_file x.txt" in before and "changes a file" in before and "[e]" not in before
    assert "1 + hi" in before
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 0
    assert (user.home / "x.txt").read_text() == "hi"


@needs("bwrap")
def test_an_edited_command_allows_only_its_own_host(user: User) -> None:
    curl = "curl -sS -m 3 https://evil.example/"
    model = user.script(
        *one_step(
            step_call("s1", "run_command", command=curl),
            step_call("s1", "run_command", command="curl -sS -m 3 http://evil.example/ http://good.example/"),
            step_reply("s1", "done"),
        )
    )
    terminal = PtyTerminal(user, "run", "x", "--model", model, "--session", "s")
    terminal.wait_for("[n] no")
    terminal.send_line("e")
    terminal.wait_for("> ")
    terminal.send_line("curl -sS -m 3 https://good.example/")
    terminal.wait_for("[n] no")
    terminal.send_line("n")
    terminal.wait_exit()
    log = (user.data / "sessions/s/events.jsonl").read_text()
    tried = [json.loads(line) for line in log.splitlines() if '"type": "network"' in line]
    assert {(event["host"], "not an allowed host" in event["reason"]) for event in tried} == {("good.example", False)}


def test_pasted_lines_do_not_answer_an_approval(user: User) -> None:
    terminal = run_push(user)
    terminal.wait_for("[n] no")
    terminal.send_bytes(b"y\nthe rest of what was copied\n")
    terminal.wait_for(PASTE_NOTICE)
    terminal.wait_for("[n] no")
    terminal.send_line("n")
    assert terminal.wait_exit()[0] == 57


def test_plan_mode_looks_around_and_changes_nothing(user: User) -> None:
    project = user.home / "project"
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("old")
    model = user.script(
        *one_step(
            step_call("s1", "write_file", path="a.txt", content="new"),
            step_call("s1", "run_command", command="echo new > a.txt"),
            step_call("s1", "run_command", command="cat a.txt"),
            step_reply("s1", "I would write new into a.txt."),
        )
    )
    flags = ("-C", str(project), "--approval-mode", "plan", "--output-format", "stream-json")
    ended = user.agent("run", "write new", "--model", model, *flags)
    outputs = [str(event["output"]) for event in ended.events if event["type"] == "tool.completed"]
    assert (ended.exit_code, (project / "a.txt").read_text()) == (0, "old")
    assert [PLAN_MODE in output for output in outputs] == [True, True, False]
    assert "old" in outputs[2]


def test_a_command_that_a_rule_denies_shows_no_question(user: User) -> None:
    code, screen = run_push(user, "--deny", "git push").wait_exit()
    assert code == 57
    assert "denied by a rule" in screen and "[y] once" not in screen


def test_a_long_file_can_be_viewed_before_it_is_allowed(user: User) -> None:
    project = user.home / "project"
    project.mkdir()
    content = "".join(f"line {number}\n" for number in range(1, 301))
    model = user.script(
        *one_step(step_call("s1", "write_file", path="big.txt", content=content), step_reply("s1", "written"))
    )
    paging = replace(user, environ={"PAGER": "sh -c 'cat > ../pager.txt'"})
    terminal = PtyTerminal(paging, "run", "x", "--model", model, "-C", str(project))
    card = terminal.wait_for("[v] view all")
    assert "1 + line 1" in card and "300 + line 300" in card and "150 + line 150" not in card
    terminal.wait_for("[n] no")
    terminal.send_line("v")
    terminal.wait_for("[n] no")
    assert "+ line 150\n" in (user.home / "pager.txt").read_text()
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 0
    assert (project / "big.txt").read_text() == content


def test_the_time_that_the_user_takes_is_not_the_steps(user: User) -> None:
    terminal = run_push(user)
    terminal.wait_for("[y] once")
    time.sleep(1)
    terminal.send_line("y")
    terminal.wait_exit()
    (log,) = user.data.glob("sessions/*/events.jsonl")
    events = {event["type"]: event for event in map(json.loads, log.read_text().splitlines())}

    def at(name: str) -> float:
        return datetime.fromisoformat(events[name]["ts"]).timestamp()

    thought = at("approval.resolved") - at("approval.requested")
    worked = at("step.completed") - at("step.started") - thought
    assert thought > 0.9
    assert events["step.completed"]["elapsed_ms"] / 1000 < worked + 0.2
