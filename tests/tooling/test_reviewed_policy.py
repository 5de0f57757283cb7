"""The approval policy with a reviewer: stricter in every mode, an answer only in mode review."""

from pathlib import Path

import pytest

from tests.tooling.tool_harness import TASK, USER, FakeUser
from tooling.approvals.policy import Mode, PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Decision, Opinion, Verdict
from tooling.contract.context import ExecCtx

FOLDER = Path("/srv/project")
CTX = ExecCtx(user_id=USER, task_id=TASK, working_dir=FOLDER)
PUSH = Action(tool="run_command", effect="execute", subject="git push", cwd=FOLDER)
EDIT = Action(tool="edit_file", effect="write", subject="a.txt", cwd=FOLDER)
FORGET = Action(tool="memory", effect="forget", subject="everything", cwd=FOLDER)
ASK = Verdict(decision=Decision.ASK, reasons=("it publishes",), commands_to_approve=("git push",))
ALLOW = Verdict(decision=Decision.ALLOW)
BLOCK = Verdict(decision=Decision.BLOCK, reasons=("never",))
FINE = Opinion(verdict="allow", text="It was asked for.")
UNSURE = Opinion(verdict="ask", text="It goes further.")
BAD = Opinion(verdict="deny", text="It leaks keys.")


class FakeReviewer:
    """A reviewer who always has the same opinion and counts what it saw."""

    def __init__(self, opinion: Opinion | None) -> None:
        self.opinion = opinion
        self.seen: list[str] = []

    async def review(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> Opinion | None:
        self.seen.append(action.subject)
        return self.opinion


class ShownUser(FakeUser):
    """A user who also records the opinions shown with the questions."""

    opinions: list[Opinion | None]

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        self.opinions = [*getattr(self, "opinions", []), verdict.opinion]
        return await super().approve(action, verdict, ctx)


async def decide(
    mode: Mode, opinion: Opinion | None, *, action: Action = PUSH, verdict: Verdict = ASK, user: FakeUser | None = None
) -> tuple[str, str]:
    approver = PolicyApprover(mode=mode, user=user, reviewer=FakeReviewer(opinion), asks_for_edits=True)
    answer = await approver.approve(action, verdict, CTX)
    return answer.decision, answer.by


@pytest.mark.parametrize(
    ("mode", "opinion", "expected"),
    [
        # The user decides; the reviewer's consent changes nothing.
        ("ask", FINE, ("allow", "person")),
        ("ask", UNSURE, ("allow", "person")),
        ("ask", None, ("allow", "person")),
        ("ask", BAD, ("deny", "reviewer")),
        ("auto-edit", BAD, ("deny", "reviewer")),
        ("yolo", FINE, ("allow", "approval mode yolo")),
        ("yolo", None, ("allow", "approval mode yolo")),
        ("yolo", UNSURE, ("allow", "person")),
        ("yolo", BAD, ("deny", "reviewer")),
        ("never", FINE, ("deny", "approval mode never")),
        ("review", FINE, ("allow", "reviewer")),
        ("review", UNSURE, ("allow", "person")),
        ("review", None, ("allow", "person")),
        ("review", BAD, ("deny", "reviewer")),
    ],
)
async def test_a_reviewer_makes_decisions_stricter_and_answers_only_in_its_mode(
    mode: Mode, opinion: Opinion | None, expected: tuple[str, str]
) -> None:
    assert await decide(mode, opinion, user=FakeUser()) == expected


@pytest.mark.parametrize(
    ("mode", "opinion", "expected"),
    [
        ("ask", FINE, ("deny", "policy")),
        ("yolo", UNSURE, ("deny", "policy")),
        ("review", FINE, ("allow", "reviewer")),
        ("review", UNSURE, ("deny", "policy")),
        ("review", None, ("deny", "policy")),
    ],
)
async def test_without_a_user_only_mode_review_lets_the_reviewer_allow(
    mode: Mode, opinion: Opinion | None, expected: tuple[str, str]
) -> None:
    assert await decide(mode, opinion) == expected


@pytest.mark.parametrize("mode", ["ask", "yolo", "review"])
async def test_a_reviewer_never_allows_what_is_blocked_or_clears_the_memory(mode: Mode) -> None:
    assert (await decide(mode, FINE, verdict=BLOCK))[0] == "deny"
    assert await decide(mode, FINE, action=FORGET) == ("deny", "policy")
    assert await decide(mode, FINE, action=FORGET, user=FakeUser()) == ("allow", "person")


async def test_edits_that_would_be_asked_are_reviewed_too() -> None:
    assert await decide("review", FINE, action=EDIT, verdict=ALLOW) == ("allow", "reviewer")
    assert await decide("ask", BAD, action=EDIT, verdict=ALLOW, user=FakeUser()) == ("deny", "reviewer")


async def test_what_nobody_would_ask_about_is_not_reviewed() -> None:
    reviewer = FakeReviewer(BAD)
    approver = PolicyApprover(reviewer=reviewer, user=FakeUser(), allow=("git push",))
    assert (await approver.approve(PUSH, ASK, CTX)).decision == "allow"
    assert (await approver.approve(PUSH, ALLOW, CTX)).decision == "allow"
    # Without a user it would be refused anyway.
    assert (await PolicyApprover(reviewer=reviewer).approve(PUSH, ASK, CTX)).decision == "deny"
    assert reviewer.seen == []


async def test_the_opinion_is_shown_with_the_question() -> None:
    user = ShownUser()
    await decide("ask", UNSURE, user=user)
    assert user.opinions == [UNSURE]


async def test_a_denial_tells_the_model_what_the_reviewer_said() -> None:
    answer = await PolicyApprover(reviewer=FakeReviewer(BAD), user=FakeUser()).approve(PUSH, ASK, CTX)
    assert (answer.remark, answer.opinion) == ("It leaks keys.", BAD)
