"""Approval of fetches by host: rules, modes, host lists, and lasting answers."""

import asyncio
from pathlib import Path

import pytest

from agent.backends.egress.host_rules import EgressRules
from tests.tooling.tool_harness import TASK, USER, FakeUser
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Decision, Verdict
from tooling.contract.context import ExecCtx
from tooling.permission import PermissionInterceptor
from tooling.safety.action_judge import ActionJudge
from tooling.safety.judges import apply_host_rules

CTX = ExecCtx(user_id=USER, task_id=TASK, working_dir=Path("/srv"))
DOCS = "https://docs.example.org/a?b=c"


def fetch_action(url: str) -> Action:
    return Action(tool="fetch_page", effect="web", subject=url, cwd=Path("/srv"), url=url)


def judge_fetch(url: str, **settings: tuple[str, ...]) -> Verdict:
    rules = EgressRules(allow=settings.get("allow_net", ()), deny=settings.get("deny_net", ()))
    adjustment = apply_host_rules(rules.find_deny_rule, rules.find_allow_rule)
    return adjustment(ActionJudge().judge(fetch_action(url), CTX), fetch_action(url))


async def decide_fetch(approver: PolicyApprover, url: str = DOCS) -> ApprovalAnswer:
    return await approver.approve(fetch_action(url), ActionJudge().judge(fetch_action(url), CTX), CTX)


def test_a_fetch_needs_approval_for_its_host() -> None:
    verdict = judge_fetch("Docs.Example.org./a")
    assert (verdict.decision, verdict.hosts) == (Decision.ASK, ("docs.example.org",))
    assert verdict.commands_to_approve == ("fetch_page docs.example.org",)
    assert verdict.involves == ("reaches docs.example.org",)


def test_urls_that_cannot_be_fetched_need_no_approval() -> None:
    for url in ("file:///etc/passwd", "http://169.254.169.254/", "http://user@example.org/", "http://exa mple.org/"):
        assert judge_fetch(url).decision is Decision.ALLOW
    own_service = Action(tool="search_web", effect="web", subject="words", cwd=Path("/srv"))
    assert ActionJudge().judge(own_service, CTX).decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("url", "decision"),
    [
        (DOCS, Decision.ALLOW),
        ("https://example.org/", Decision.ALLOW),
        ("https://secret.example.org/", Decision.BLOCK),
        ("https://example.org.evil.test/", Decision.ASK),
        ("https://badexample.org/", Decision.ASK),
        ("https://8.8.8.8/", Decision.ASK),
    ],
)
def test_the_host_lists_apply_to_fetches(url: str, decision: Decision) -> None:
    assert judge_fetch(url, allow_net=(".example.org",), deny_net=("secret.example.org",)).decision is decision


@pytest.mark.parametrize(
    ("rule", "decision"),
    [
        ("fetch_page", "allow"),
        ("fetch_page docs.example.org", "allow"),
        ("fetch_page .example.org", "allow"),
        ("fetch_page example.org", "deny"),
        ("fetch_page .ample.org", "deny"),
        ("fetch_page docs.example.org other", "deny"),
        ("fetch_page_x docs.example.org", "deny"),
        ("curl docs.example.org", "deny"),
        (DOCS, "deny"),
        ("", "deny"),
    ],
)
async def test_a_rule_names_a_tool_and_a_host(rule: str, decision: str) -> None:
    assert (await decide_fetch(PolicyApprover(allow=(rule,)))).decision == decision
    is_named = decision == "allow"
    assert (await decide_fetch(PolicyApprover(mode="yolo", deny=(rule,)))).decision == ("deny" if is_named else "allow")


@pytest.mark.parametrize(("mode", "decision"), [("ask", "deny"), ("auto-edit", "deny"), ("never", "deny")])
async def test_without_a_user_the_denial_names_the_rule_that_would_allow_it(mode: str, decision: str) -> None:
    answer = await decide_fetch(PolicyApprover(mode=mode))  # type: ignore[arg-type]
    assert answer.decision == decision
    assert "--allow 'fetch_page docs.example.org' would allow it" in answer.remark


async def test_an_answer_covers_one_page_or_the_host_for_the_run() -> None:
    user = FakeUser(decision=ApprovalAnswer(decision="allow", by="person", scope="once"))
    approver = PolicyApprover(user=user)
    for _ in range(2):
        assert (await decide_fetch(approver)).decision == "allow"
    assert len(user.asked) == 2
    user = FakeUser(decision=ApprovalAnswer(decision="allow", by="person", scope="run"))
    approver = PolicyApprover(user=user)
    for url in (DOCS, "https://docs.example.org/other", "https://www.example.org/"):
        assert (await decide_fetch(approver, url)).decision == "allow"
    assert user.asked == [DOCS, "https://www.example.org/"]


async def test_a_lasting_answer_saves_a_rule_for_the_host() -> None:
    saved: list[tuple[str, tuple[str, ...]]] = []
    user = FakeUser(decision=ApprovalAnswer(decision="allow", by="person", scope="project"))
    approver = PolicyApprover(user=user, save_rules=lambda scope, rules: saved.append((scope, rules)))
    for url in (DOCS, "https://docs.example.org/other"):
        await decide_fetch(approver, url)
    assert saved == [("project", ("fetch_page docs.example.org",))]


async def test_concurrent_fetches_from_one_host_ask_once() -> None:
    class Slow(FakeUser):
        async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
            await asyncio.sleep(0)
            return await super().approve(action, verdict, ctx)

    user = Slow(decision=ApprovalAnswer(decision="allow", by="person", scope="run"))
    approver = PolicyApprover(user=user)
    answers = await asyncio.gather(*(decide_fetch(approver, f"https://example.org/{n}") for n in range(5)))
    assert {answer.decision for answer in answers} == {"allow"}
    assert user.asked == ["https://example.org/0"]


async def test_a_further_host_is_checked_against_the_same_rules() -> None:
    permission = PermissionInterceptor(ActionJudge(), PolicyApprover(allow=("fetch_page example.org",)))
    assert await permission.refusal(fetch_action("https://example.org/"), CTX) is None
    refusal = await permission.refusal(fetch_action("https://other.test/"), CTX)
    assert refusal is not None
    assert refusal.startswith("Denied by policy: it sends this address to other.test.")
