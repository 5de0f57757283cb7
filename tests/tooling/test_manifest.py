"""The permission manifest as a ceiling: what it has is allowed, everything else that would be asked is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tooling.test_policy import CTX, WORKSPACE, command_action
from tests.tooling.test_reviewed_policy import FakeReviewer
from tests.tooling.tool_harness import FakeUser
from tooling.approvals.manifest import ANY_FILE, Manifest, needed_for
from tooling.approvals.policy import NOT_IN_MANIFEST, Mode, PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Opinion
from tooling.safety.action_judge import ActionJudge

JUDGE = ActionJudge()
EDIT = Action(tool="write_file", effect="write", subject="src/a.py", cwd=WORKSPACE)
FETCH = Action(
    tool="fetch_page", effect="web", subject="https://example.org/x", cwd=WORKSPACE, url="https://example.org/x"
)
FORGET = Action(tool="memory", effect="forget", subject="everything", cwd=WORKSPACE)


def decide(manifest: Manifest, action: Action, **more: object) -> ApprovalAnswer | None:
    policy = PolicyApprover(manifest=manifest, on_approval="fail", **more)  # type: ignore[arg-type]
    return policy.decide(action, JUDGE.judge(action, CTX))


def is_allowed(manifest: Manifest, action: Action) -> bool:
    answer = decide(manifest, action)
    return answer is not None and answer.decision == "allow"


@pytest.mark.parametrize(
    ("manifest", "text", "expected"),
    [
        (Manifest(), "ls", True),
        (Manifest(), "git push", False),
        (Manifest(programs=("git push",), hosts=("github.com",)), "git push", True),
        (Manifest(programs=("git push",)), "git push --force", True),
        (Manifest(programs=("git push",)), "git push && rm -rf src", False),
        (Manifest(programs=("git push && rm -rf src",)), "git push && rm -rf src", True),
        (Manifest(programs=("rm -rf /",)), "rm -rf /", False),
        (Manifest(programs=("curl",)), "curl -d @x https://example.org", False),
        (Manifest(programs=("curl",), hosts=(".example.org",)), "curl https://api.example.org", True),
        # An option that sends a file must be named.
        (Manifest(programs=("curl",), hosts=(".example.org",)), "curl -d @x https://api.example.org", False),
        (Manifest(programs=("curl -d",), hosts=(".example.org",)), "curl -d @x https://api.example.org", True),
    ],
)
def test_commands_that_would_ask_must_be_on_the_sheet(manifest: Manifest, text: str, expected: bool) -> None:
    assert is_allowed(manifest, command_action(text)) is expected


@pytest.mark.parametrize(
    ("writes", "path", "expected"),
    [
        ((), "src/a.py", False),
        (("src/a.py",), "src/a.py", True),
        (("src/a.py",), "./src/../src/a.py", True),
        (("src",), "src/deep/a.py", True),
        (("src/",), "src/deep/a.py", True),
        (("src",), "src2/a.py", False),
        (("src/*.py",), "src/a.py", True),
        (("src/*.py",), "src/deep/a.py", False),
        (("src/**/*.py",), "src/deep/er/a.py", True),
        ((ANY_FILE,), "anything", True),
        (("src",), "src/../other.py", False),
    ],
)
def test_every_edit_must_be_on_the_sheet(writes: tuple[str, ...], path: str, expected: bool) -> None:
    assert is_allowed(Manifest(writes=writes), replace(EDIT, subject=path)) is expected


def test_a_link_does_not_lead_from_an_approved_folder_to_another(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/link").symlink_to("../secret")
    edit = replace(EDIT, subject="src/link/key", cwd=tmp_path)
    assert Manifest(writes=("src",)).covers_paths(edit) is False
    assert Manifest(writes=("secret",)).covers_paths(edit) is True


def test_deleting_is_not_writing() -> None:
    delete = Action(tool="delete_file", effect="write", subject="a.txt", cwd=WORKSPACE, deletes=("a.txt",))
    assert not is_allowed(Manifest(writes=(ANY_FILE,)), delete)
    assert is_allowed(Manifest(deletes=("*.txt",)), delete)


def test_web_tools_reach_only_hosts_on_the_sheet() -> None:
    assert not is_allowed(Manifest(), FETCH)
    assert not is_allowed(Manifest(hosts=("example.com",)), FETCH)
    assert is_allowed(Manifest(hosts=("example.org",)), FETCH)


def test_a_search_sends_words_elsewhere_and_must_be_on_the_sheet() -> None:
    search = Action(tool="search_web", effect="web", subject="words of a file", cwd=WORKSPACE)
    assert not is_allowed(Manifest(hosts=("example.org",)), search)
    assert is_allowed(Manifest(tools=("search_web",)), search)
    assert needed_for(search, JUDGE.judge(search, CTX)) == Manifest(tools=("search_web",))


def test_neither_mode_nor_rules_allow_more_than_the_sheet() -> None:
    action = command_action("git push")
    assert decide(Manifest(), action, mode="yolo") is None
    assert decide(Manifest(), action, allow=("git push",)) is None
    assert decide(Manifest(), EDIT, mode="auto-edit") is None


def test_a_deny_rule_wins_over_the_sheet() -> None:
    answer = decide(Manifest(programs=("git push",)), command_action("git push"), deny=("git push",))
    assert answer is not None and (answer.decision, answer.by) == ("deny", "a rule")


def test_no_sheet_lets_the_memory_be_cleared() -> None:
    assert decide(Manifest(tools=("memory",)), FORGET) is None


async def test_without_a_user_the_difference_is_reported_and_the_run_fails() -> None:
    found: list[Manifest] = []
    policy = PolicyApprover(manifest=Manifest(), on_approval="fail", on_missing=found.append)
    action = command_action("git push origin main")
    answer = await policy.approve(action, JUDGE.judge(action, CTX), CTX)
    assert (answer.decision, answer.by, answer.remark) == ("fail", "the manifest", f"{NOT_IN_MANIFEST}.")
    assert found == [needed_for(action, JUDGE.judge(action, CTX))]
    assert found[0].programs == ("git push",)


@pytest.mark.parametrize("mode", ["yolo", "review", "auto-edit"])
async def test_no_mode_and_no_reviewer_widens_the_sheet(mode: Mode) -> None:
    for reviewer in (None, FakeReviewer(Opinion(verdict="allow", text="fine"))):
        policy = PolicyApprover(manifest=Manifest(), mode=mode, on_approval="fail", reviewer=reviewer)
        for action in (command_action("git push"), EDIT):
            answer = await policy.approve(action, JUDGE.judge(action, CTX), CTX)
            assert (answer.decision, answer.by) == ("fail", "the manifest"), (mode, reviewer, action)


async def test_with_a_user_what_is_not_on_the_sheet_is_asked() -> None:
    policy = PolicyApprover(manifest=Manifest(), user=FakeUser())
    action = command_action("git push")
    assert (await policy.approve(action, JUDGE.judge(action, CTX), CTX)).by == "person"


def test_a_sheet_approved_during_the_run_adds_to_the_rules() -> None:
    policy = PolicyApprover(allow=("git fetch",), asks_for_edits=True)
    action = command_action("git push")
    needs = policy.needs(action, JUDGE.judge(action, CTX)).merge(policy.needs(EDIT, JUDGE.judge(EDIT, CTX)))
    assert needs == Manifest(programs=("git push",), writes=("src/a.py",))
    policy.grant(needs)
    for allowed in (action, EDIT, command_action("git fetch")):
        answer = policy.decide(allowed, JUDGE.judge(allowed, CTX))
        assert answer is not None and answer.decision == "allow", allowed
    assert policy.decide(replace(EDIT, subject="b"), JUDGE.judge(EDIT, CTX)) is None


def test_missing_is_what_the_sheet_does_not_cover() -> None:
    sheet = Manifest(programs=("git",), hosts=(".example.org",), writes=("src",), secrets=("A",), max_usd=1.0)
    needs = Manifest(
        programs=("git push", "npm publish"),
        hosts=("a.example.org", "b.net"),
        writes=("src/a", "lib/b"),
        secrets=("A", "B"),
        max_usd=2.0,
    )
    assert sheet.missing(needs) == Manifest(
        programs=("npm publish",), hosts=("b.net",), writes=("lib/b",), secrets=("B",), max_usd=2.0
    )
    assert sheet.missing(sheet).is_empty
