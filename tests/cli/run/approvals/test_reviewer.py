"""A reviewer model looks at what needs approval: shown on the card, stricter, or answering in mode review."""

import json

import pytest

from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import User, lead_call, lead_reply
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow

# Needs approval, and succeeds without a repository.
PUSH = "git push --dry-run || true"
LEAD = (lead_call("run_command", command=PUSH), lead_reply("that was it"))


def opinion(verdict: str, reason: str = "It pushes to origin.") -> dict[str, object]:
    return {"match": {"purpose": "reviewer"}, "text": json.dumps({"verdict": verdict, "reason": reason})}


def flags(user: User, *replies: dict[str, object]) -> list[str]:
    model, reviewer = user.script(*LEAD), user.script(*replies, name="reviewer.jsonl")
    return ["--model", model, "--set", f"reviewer_model={reviewer}", "--planning", "never"]


def approvals(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return [event for event in events if str(event["type"]).startswith("approval.")]


def test_the_opinion_is_on_the_card_and_the_user_decides(user: User) -> None:
    terminal = PtyTerminal(user, "run", "push it", *flags(user, opinion("ask")))
    card = terminal.wait_for("[y] once")
    assert "reviewer: needs a closer look. It pushes to origin." in card
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 0


def test_a_denial_of_the_reviewer_is_shown_with_its_reason_and_nobody_is_asked(user: User) -> None:
    terminal = PtyTerminal(user, "run", "push it", *flags(user, opinion("deny", "Nobody asked for a push.")))
    code, screen = terminal.wait_exit()
    assert code == 57
    assert "denied by reviewer: Nobody asked for a push." in screen
    assert "[y] once" not in screen


def test_in_mode_review_the_reviewer_answers_and_the_events_say_so(user: User) -> None:
    ended = user.agent(
        "run", "push it", "--output-format", "stream-json", "--approval-mode", "review", *flags(user, opinion("allow"))
    )
    assert ended.exit_code == 0, ended.stderr
    asked, resolved = approvals(ended.events)
    shown = {"verdict": "allow", "text": "It pushes to origin."}
    assert (asked["command"], asked["decided"], asked["opinion"]) == (PUSH, True, shown)
    assert (resolved["decision"], resolved["by"], resolved["opinion"]) == ("allow", "reviewer", shown)
    assert broken_rules(ended.events) == []
    # Its request is counted with those of the lead.
    assert ended.events[-1]["usage"]["requests"] == 3  # type: ignore[index]


@pytest.mark.parametrize("reply", [opinion("ask"), {"text": "I am not sure."}, {"fault": "auth"}])
def test_in_mode_review_doubt_and_failure_stay_with_the_user(user: User, reply: dict[str, object]) -> None:
    ended = user.agent(
        "run", "push it", "--output-format", "stream-json", "--approval-mode", "review", *flags(user, reply)
    )
    assert ended.exit_code == 57
    assert [event.get("by") for event in approvals(ended.events)] == [None, "policy"]


def test_mode_review_cannot_lift_a_block(user: User) -> None:
    model = user.script(lead_call("run_command", command="rm -rf /"), lead_reply("hm"))
    reviewer = user.script(opinion("allow"), name="reviewer.jsonl")
    ended = user.agent(
        "run", "x", "--model", model, "--set", f"reviewer_model={reviewer}", "--approval-mode", "review",
        "--planning", "never", "--output-format", "stream-json",
    )  # fmt: skip
    assert [event["status"] for event in ended.events if event["type"] == "tool.completed"] == ["blocked"]


def test_mode_review_without_a_reviewer_is_a_configuration_error(user: User) -> None:
    ended = user.agent("run", "x", "--model", user.script(*LEAD), "--approval-mode", "review")
    assert ended.exit_code == 52
    assert "approval mode review needs a reviewer model" in ended.stderr and "reviewer_model" in ended.stderr


def test_the_reviewer_knows_what_was_said_before(user: User) -> None:
    model = user.script({"match": {"contains": "prepare"}, "text": "Ready. Shall I push it?"}, *LEAD)
    understood = opinion("allow")
    understood["match"] = {"purpose": "reviewer", "contains": r"(?s)prepare it.*Shall I push it\?.*\"yes, do it\""}
    reviewer = user.script(understood, name="reviewer.jsonl")
    flags = ("--model", model, "--planning", "never")
    assert user.agent("run", "prepare it", *flags).exit_code == 0
    more = ("--approval-mode", "review", "--set", f"reviewer_model={reviewer}")
    ended = user.agent("run", "-c", "yes, do it", *flags, *more)
    assert ended.exit_code == 0, ended.stderr
