"""The contract of hooks, kept by commands: order, one end, failure, time limit, cancelling; and a clean environment."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.app import App
from agent.hooks.command_config import CommandSpec, parse_commands
from agent.hooks.command_hook import CommandHook, HookPlace
from agent.hooks.hook import GuardedCall, HookFailed
from agent.hooks.runner import HookRunner
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import ConfigError
from tests.agent.orchestrator.lead_runs import AUTO
from tests.agent.orchestrator.run_harness import EventJson, FinishedRun, RunHarness
from tests.cli.terminal_user import lead_call, lead_reply

CALL_AND_ANSWER = (lead_call("run_command", command="echo hi"), lead_reply("Done."))


@dataclass
class Commands:
    """Runs a task with hook commands, each of which appends to one log."""

    home: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    extra_variables: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def hook(self, event: str, command: str, **options: object) -> CommandHook:
        entry = {"type": "command", "command": command, **options}
        text = json.dumps({"hooks": {event: [{"matcher": options.pop("matcher", ""), "hooks": [entry]}]}})
        return CommandHook(parse_commands(text, "hooks.json").specs[0], self.place)

    @property
    def place(self) -> HookPlace:
        return HookPlace(
            session_id="s",
            transcript=self.home / "events.jsonl",
            cwd=lambda: self.home,
            approval_mode="yolo",
            model="m",
            environ=self.environ,
            extra_variables=self.extra_variables,
            warn=self.warnings.append,
            stop_run=self.stopped.append,
        )

    def note(self, event: str, word: str) -> CommandHook:
        return self.hook(event, f"cat >/dev/null; echo {word} >> log")

    @property
    def log(self) -> list[str]:
        return (self.home / "log").read_text().split()

    def run(self, *hooks: CommandHook, on_event: Callable[[App, EventJson], None] | None = None) -> FinishedRun:
        harness = RunHarness(home=self.home, hooks=hooks, on_event=on_event or (lambda app, event: None))
        return harness.run(*CALL_AND_ANSWER, **AUTO)


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


def status(run: FinishedRun) -> tuple[object, str]:
    (event,) = run.of_type("tool.completed")
    return event["status"], str(event["output"])


def test_commands_run_in_their_order_and_the_end_in_reverse(commands: Commands) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    hooks = [commands.note(event, f"{event}{label}") for event in events for label in "ab"]
    commands.run(*hooks)
    pairs = [f"{event}{label}" for event in events[:-1] for label in "ab"]
    # The first two are told about the session one hook after the other.
    assert sorted(commands.log[:4]) == sorted(pairs[:4])
    assert commands.log[4:] == [*pairs[4:], "SessionEndb", "SessionEnda"]


@pytest.mark.parametrize("stop_at", ["tool.started", "message"])
def test_the_end_is_told_once_if_the_run_is_cancelled(commands: Commands, stop_at: str) -> None:
    def stop(app: App, event: EventJson) -> None:
        if event["type"] == stop_at:
            app.interrupt(exit_codes.INTERRUPTED, "interrupted")

    hooks = (commands.note("SessionEnd", "end"), commands.hook("PreToolUse", "sleep 600"))
    run = commands.run(*hooks, on_event=stop)
    assert run.outcome.exit_code == exit_codes.INTERRUPTED
    assert commands.log == ["end"]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("exit 1", "ended with exit code 1"),
        ("echo broken >&2; exit 3", "ended with exit code 3: broken"),
        ("no-such-program-anywhere", "ended with exit code 127"),
        ("kill -9 $$", "ended with exit code 137"),
        ("echo '{\"decision\": '", "printed JSON that cannot be read"),
        ('echo \'{"hookSpecificOutput": {"permissionDecision": "perhaps"}}\'', "decided 'perhaps'"),
        ('echo \'{"hookSpecificOutput": {"updatedInput": "x"}}\'', "printed an updatedInput that is not an object"),
        ("sleep 600", "did not end within 0.2 s"),
        ("trap '' TERM; sleep 600", "did not end within 0.2 s"),
        ("yes | head -c 3000000; exit 1", "ended with exit code 1"),
    ],
)
def test_a_guard_that_fails_denies(commands: Commands, command: str, problem: str) -> None:
    run = commands.run(commands.hook("PreToolUse", command, timeout=0.2 if "600" in command else 30))
    state, output = status(run)
    assert state == "denied"
    assert problem in output
    assert any(problem in warning for warning in run.warnings)
    assert run.outcome.answer == "Done."


def test_a_guard_may_be_told_to_fail_open(commands: Commands) -> None:
    run = commands.run(commands.hook("PreToolUse", "exit 1", onFailure="continue"))
    assert status(run) == ("ok", "hi")
    assert commands.warnings == ["the hook exit 1 ended with exit code 1; the call went on (onFailure: continue)"]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"])
def test_another_command_that_fails_is_a_warning(commands: Commands, event: str) -> None:
    run = commands.run(commands.hook(event, "echo broken >&2; exit 1"))
    assert run.outcome.exit_code == 0
    warnings = [*run.warnings, *map(str, run.events[0]["warnings"])]  # type: ignore[call-overload]
    assert len(warnings) == 1 and "ended with exit code 1: broken" in warnings[0]


def test_a_prompt_that_is_refused_is_not_sent(commands: Commands) -> None:
    run = commands.run(commands.hook("UserPromptSubmit", "echo 'no secrets in prompts' >&2; exit 2"))
    assert run.outcome.exit_code == exit_codes.BAD_INPUT
    assert run.outcome.error == "a hook refused the task: no secrets in prompts"
    assert run.outcome.num_turns == 0


def test_a_hook_can_end_the_run(commands: Commands) -> None:
    reply = json.dumps({"continue": False, "stopReason": "the build is red"})
    run = commands.run(commands.hook("PreToolUse", f"echo '{reply}'"))
    assert status(run)[0] == "denied"
    assert len(commands.stopped) == 1 and commands.stopped[0].endswith(" ended the run: the build is red")


def decide(commands: Commands, command: str, call: GuardedCall, **options: object) -> tuple[str, str, object]:
    hook = commands.hook("PreToolUse", command, **options)
    decision = asyncio.run(hook.check_call(call))
    return decision.permission, decision.reason, decision.arguments


def guarded(tool: str, commands: Commands, **arguments: object) -> GuardedCall:
    return GuardedCall(tool=tool, arguments=arguments, cwd=commands.home)


def test_the_forms_of_a_decision(commands: Commands) -> None:
    call = guarded("run_command", commands, command="echo hi", timeout_s=None, background=False)

    def printed(**fields: object) -> str:
        return f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', **fields}})}'"

    assert decide(commands, "true", call) == ("pass", "", None)
    assert decide(commands, "echo no >&2; exit 2", call) == ("deny", "no", None)
    denied = printed(permissionDecision="deny", permissionDecisionReason="no")
    assert decide(commands, denied, call) == ("deny", "no", None)
    assert decide(commands, printed(permissionDecision="ask"), call) == ("ask", "", None)
    assert decide(commands, printed(permissionDecision="allow"), call) == ("allow", "", None)
    assert decide(commands, 'echo \'{"decision": "approve"}\'', call) == ("allow", "", None)
    assert decide(commands, 'echo \'{"decision": "block", "reason": "no"}\'', call) == ("deny", "no", None)
    changed = printed(updatedInput={"command": "echo changed", "timeout": 2000, "description": "x"})
    assert decide(commands, changed, call) == (
        "pass",
        "",
        {"command": "echo changed", "timeout_s": 2.0, "background": False},
    )


def test_a_call_of_several_files_is_denied_if_one_of_them_is(commands: Commands) -> None:
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: .env\n*** End Patch"
    call = guarded("apply_patch", commands, patch=patch)
    protect = "grep -q '/.env\"' && exit 2 || exit 0"
    assert decide(commands, protect, call, matcher="Edit|Write")[0] == "deny"
    assert decide(commands, "grep -q 'rm -- ' && exit 2 || exit 0", call, matcher="Bash")[0] == "deny"
    allow = 'echo \'{"hookSpecificOutput": {"permissionDecision": "allow"}}\''
    assert decide(commands, allow, call)[0] == "allow"
    # Approving a part of a call is not approving the call.
    assert decide(commands, allow, call, matcher="Write")[0] == "pass"
    with pytest.raises(HookFailed, match="several files"):
        decide(commands, 'echo \'{"hookSpecificOutput": {"updatedInput": {}}}\'', call)


def test_hook_commands_see_no_secrets_unless_they_are_named(commands: Commands) -> None:
    commands.environ |= {
        "OPENAI_API_KEY": "sk-1",
        "SLACK_WEBHOOK": "https://hooks",
        "HOME": "/home/me",
        "DISPLAY": ":0",
    }
    commands.extra_variables = ("SLACK_WEBHOOK",)
    commands.run(commands.hook("PreToolUse", "env > seen; pwd >> seen"))
    seen = (commands.home / "seen").read_text()
    assert "sk-1" not in seen
    assert "SLACK_WEBHOOK=https://hooks" in seen and "HOME=/home/me" in seen
    assert f"CLAUDE_PROJECT_DIR={commands.home}\n" in seen and seen.endswith(f"\n{commands.home}\n")


def test_nothing_that_a_hook_command_starts_outlives_it(commands: Commands) -> None:
    commands.run(commands.hook("PreToolUse", "sleep 600 & echo $! > pid"))
    pid = (commands.home / "pid").read_text().strip()
    # It may not have been reaped yet.
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


BASH = ("Bash", "run_command")


@pytest.mark.parametrize(
    ("pattern", "names", "expected"),
    [
        *((pattern, BASH, True) for pattern in ("", "*", "Bash", "Edit|Bash", "run_.*", "B.sh")),
        *((pattern, BASH, False) for pattern in ("bash", "Bas", "Edit|Write", "^Edit")),
        ("mcp__memory__.*", ("mcp__memory__add",), True),
    ],
)
def test_matchers(pattern: str, names: tuple[str, ...], expected: bool) -> None:
    spec = CommandSpec(event="PreToolUse", command="true", source="x", matcher=pattern)
    assert spec.matches(*names) is expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object"),
        ('{"hooks": {"PreToolUs": []}}', "unknown event PreToolUs, did you mean PreToolUse?"),
        ('{"hooks": {"PreToolUse": {}}}', "expected a list"),
        ('{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": []}]}}', "is not a regular expression"),
        ('{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}', "expected an object with a command"),
        (
            '{"hooks": {"PreToolUse": [{"hooks": [{"command": "x", "timeout": "soon"}]}]}}',
            "expected a number of seconds",
        ),
        (
            '{"hooks": {"PreToolUse": [{"hooks": [{"command": "x", "onFailure": "ask"}]}]}}',
            "expected block or continue",
        ),
    ],
)
def test_a_file_that_cannot_be_understood_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem.replace("?", r"\?")):
        parse_commands(text, "hooks.json")


def test_what_has_no_counterpart_is_named() -> None:
    text = '{"permissions": {}, "hooks": {"PreCompact": [], "Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}'
    found = parse_commands(text, "f")
    assert found.specs == ()
    assert found.unused == (
        "f: PreCompact hooks never run: Windlass has no such event",
        "f: Stop: hooks of type prompt are not supported",
    )


def test_a_hook_that_never_lets_the_agent_stop_is_ignored_in_the_end(commands: Commands) -> None:
    runner = HookRunner([commands.hook("Stop", "exit 2")])

    async def ask() -> list[str]:
        return [await runner.check_answer("Done.") for _ in range(9)]

    assert asyncio.run(ask()) == ["no reason given"] * 8 + [""]
