"""How the transcript looks: blank lines, columns, colors, and what the user decided."""

from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ErrorRaised,
    Event,
    RuleSaved,
    RunCompleted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary.plan import LEAD
from cli.screen.colors import Paint
from cli.screen.transcript import Transcript
from tests.cli.screen.test_live_area import STARTED, envelope
from tests.cli.screen.test_transcript import LONG, edit, file_change, plan, render, run_completed
from tooling.contract.result import FileChange

PUSH = ApprovalRequested(
    approval_id="1", command="git push", cwd="/w", reason="it publishes", rule="git push", tool="run_command"
)
PUSH_CALL = ToolStarted(tool_id="1", name="run_command", input={"command": "git push"})


def push_decided(answer: ApprovalResolved, end: ToolCompleted, *more: Event) -> str:
    return render(*((event, "a") for event in (PUSH_CALL, PUSH, answer, *more, end)))


def test_what_the_user_declined_is_said_calmly_and_once() -> None:
    output = "Denied by the user: it publishes. use staging"
    denied = ToolCompleted(tool_id="1", name="run_command", status="denied", exit_code=126, output=output)
    answer = ApprovalResolved(approval_id="1", decision="deny", by="person")
    assert push_decided(answer, denied) == "\n• a $ git push  you declined: use staging\n"
    error = ErrorRaised(message=f"git push: {output}", exit_code=57)
    ended = RunCompleted(subtype="error_approval", is_error=True, exit_code=57, result="")
    text = render((error, None), (ended, None))
    assert text == "\n  not done, because you declined: git push\n· 0.0s\n"


def test_an_edited_command_is_the_one_in_the_transcript() -> None:
    done = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output="")
    answer = ApprovalResolved(
        approval_id="1", decision="allow", by="person", scope="once", edited_command="git push --dry-run"
    )
    assert push_decided(answer, done) == (
        "\n  a: you changed it to: git push --dry-run\n\n• a $ git push --dry-run  (you edited it)\n"
    )


def test_a_saved_rule_is_named_with_its_file() -> None:
    done = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output="")
    answer = ApprovalResolved(approval_id="1", decision="allow", by="person", scope="always", rule="git push")
    saved = RuleSaved(rule="git push", folder="", file="/home/ada/config.toml")
    assert push_decided(answer, done, saved).splitlines()[1:] == [
        "  a: you allowed it, always",
        "  saved the rule 'git push' (everywhere) in",
        "    /home/ada/config.toml",
        "",
        "• a $ git push",
    ]


def test_a_diff_that_was_in_its_card_is_not_shown_again() -> None:
    change = file_change("a.py")
    started, files, done = edit("a", change)
    asked = ApprovalRequested(
        approval_id="1", command="a.py", cwd="/w", reason="", rule="edit_file", tool="edit_file", diff=change.diff
    )
    allowed = ApprovalResolved(approval_id="1", decision="allow", by="person", scope="once")
    text = render(started, (asked, "a"), (allowed, "a"), files, done, *edit("a", change))
    assert text.splitlines()[3:] == ["• a edit_file a.py  +1 -1", "", *render(*edit("a", change)).splitlines()[1:]]


def test_the_scrolled_plan_claims_no_status_that_may_change() -> None:
    handed_out = plan("a", "b", "c", diff="+ c New", revision=2)
    text = render(
        (plan("a", "b"), None),
        (StepStarted(title="x"), "a"),
        (StepStarted(title="x"), "b"),
        (StepCompleted(status="ok", summary=""), "a"),
        (handed_out, None),
    )
    assert "▶" not in text and "1 ┌ ✓ a" in text and "│ ○ b" in text


def test_one_blank_line_separates_plan_steps_card_answer_and_summary() -> None:
    lines: list[str] = []
    transcript = Transcript(
        write=lines.append, width=lambda: 60, paint=Paint(has_color=False), markdown=lambda text: text.strip() + "\n"
    )
    call = ToolStarted(tool_id="1", name="read_file", input={"path": "x"})
    read = ToolCompleted(tool_id="1", name="read_file", status="ok", exit_code=0, output="text")
    ended = StepCompleted(status="ok", summary="")
    shell = ToolStarted(tool_id="2", name="run_command", input={"command": "ls"})
    listed = ToolCompleted(tool_id="2", name="run_command", status="ok", exit_code=0, output="a\nb")
    for event, step in (
        (STARTED, None),
        (plan("a", "bb"), None),
        (call, "a"),
        (read, "a"),
        (ended, "a"),
        (shell, "bb"),
        (listed, "bb"),
        (ended, "bb"),
    ):
        transcript.on_event(envelope(event, step))
    transcript.show_card(["allow this?  git push", "  because it publishes"])
    transcript.on_event(envelope(ApprovalResolved(approval_id="1", decision="allow", by="person"), LEAD))
    transcript.on_event(envelope(run_completed("Done."), None))
    assert "".join(lines).splitlines() == [
        "",
        "1 ┌ ● a   Title a",
        "  └ ○ bb  Title bb",
        "",
        "• a  read_file x",
        "✓ a  Title a (0.0s)",
        "",
        "• bb $ ls",
        "    a",
        "    b",
        "✓ bb Title bb (0.0s)",
        "",
        "allow this?  git push",
        "  because it publishes",
        "  you allowed it",
        "",
        "Done.",
        "",
        "· 0.0s",
    ]


def test_a_folded_diff_keeps_its_end_and_a_failed_call_its_last_lines() -> None:
    added = "".join(f"+line {number}\n" for number in range(1, 41))
    change = FileChange(path="a.py", status="added", added_lines=40, deleted_lines=0, diff=f"@@ -0,0 +1,40 @@\n{added}")
    text = render(*edit("a", change))
    assert "    … 28 more lines (Ctrl-O)\n    38 + line 38\n    39 + line 39\n    40 + line 40\n" in text
    failed = ToolCompleted(tool_id="1", name="fetch_page", status="error", exit_code=1, output=LONG)
    assert render((failed, "a")).splitlines()[2:] == [
        "    line 0",
        "    … 7 more lines (Ctrl-O)",
        "    line 8",
        "    line 9",
    ]


def test_step_tool_and_subject_have_their_own_colors() -> None:
    lines: list[str] = []
    transcript = Transcript(write=lines.append, width=lambda: 60, paint=Paint(has_color=True))
    call = ToolStarted(tool_id="1", name="read_file", input={"path": "x"})
    end = ToolCompleted(tool_id="1", name="read_file", status="ok", exit_code=0, output="text")
    for event in (STARTED, call, end, StepCompleted(status="ok", summary="")):
        transcript.on_event(envelope(event, "a"))
    assert lines[0] == "\x1b[32m• \x1b[0m\x1b[36ma \x1b[0m\x1b[1mread_file\x1b[0m x\n"
    assert lines[1].startswith("\x1b[32m✓ \x1b[0m\x1b[36ma \x1b[0m")
