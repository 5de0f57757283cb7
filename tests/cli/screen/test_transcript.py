"""The transcript of a run, line by line."""

from dataclasses import replace

from agent.protocol.events import (
    ApprovalResolved,
    CallMade,
    ErrorRaised,
    Event,
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    StepCompleted,
    StepCounts,
    StepStarted,
    ToolCompleted,
    ToolOutput,
    ToolStarted,
    WarningRaised,
)
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.usage import Usage
from cli.screen.colors import Paint
from cli.screen.format import replan_text, resume_hint
from cli.screen.transcript import Transcript
from tests.cli.screen.hostile import HOSTILE, find_foreign
from tests.cli.screen.test_live_area import STARTED, envelope
from tooling.contract.action import Opinion
from tooling.contract.result import FileChange

LONG = "\n".join(f"line {number}" for number in range(10))


def render(*events: tuple[Event, str | None], width: int = 60, has_answer: bool = True) -> str:
    lines: list[str] = []
    transcript = Transcript(
        write=lines.append,
        width=lambda: width,
        paint=Paint(has_color=False),
        markdown=(lambda text: text.strip() + "\n") if has_answer else None,
        expand_hint=" (Ctrl-O)" if has_answer else "",
    )
    for event, step in ((STARTED, None), *events):
        transcript.on_event(envelope(event, step))
    return "".join(lines)


def plan(*names: str, diff: str | None = None, revision: int = 1) -> PlanUpdated:
    steps = tuple(PlanStep(id=name, title=f"Title {name}", instruction="x") for name in names)
    return PlanUpdated(plan_id="p", revision=revision, hash="h", reason="surprise: b failed", steps=steps, diff=diff)


def assistant_message(text: str, *, delta: bool = False) -> MessageAdded:
    return MessageAdded(role="assistant", content=text, delta=delta)


def run_completed(result: str, **more: object) -> RunCompleted:
    return RunCompleted(subtype="success", is_error=False, exit_code=0, result=result, **more)  # type: ignore[arg-type]


def test_a_plan_is_drawn_once_it_is_complete() -> None:
    streaming = replace(plan("a"), reason="streaming")
    text = render((streaming, None), (replace(plan("a", "b", revision=2), reason="complete"), None))
    assert text.splitlines() == ["", "1 ┌ ● a  Title a", "  └ ○ b  Title b"]


def test_a_revised_plan_is_drawn_with_its_changes() -> None:
    end = StepCompleted(status="ok", summary="", elapsed_ms=10)
    text = render((plan("a"), None), (end, "a"), (plan("a", "c", diff="- b Old\n+ c New", revision=2), None))
    assert f"{replan_text('b failed')}\n  - b Old\n  + c New\n" in text
    assert "✓ a" in text.partition("+ c New")[2]


def test_a_command_is_followed_by_the_end_of_its_output() -> None:
    call = ToolStarted(tool_id="1", name="run_command", input={"command": "make  test"})
    end = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output=LONG)
    assert render((call, "a"), (end, "a")) == (
        "\n• a $ make test\n    … 7 lines above (Ctrl-O)\n    line 7\n    line 8\n    line 9\n"
    )


def test_a_failed_call_shows_its_status_and_output() -> None:
    call = ToolStarted(tool_id="1", name="read_file", input={"path": "x"})
    end = ToolCompleted(tool_id="1", name="read_file", status="error", exit_code=1, output="no such file")
    assert render((call, "a"), (end, "a")) == "\n• a read_file x  [error, exit 1]\n    no such file\n"


def file_change(path: str, diff: str = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n") -> FileChange:
    return FileChange(path=path, status="modified", added_lines=1, deleted_lines=1, diff=diff)


def edit(name: str, *changes: FileChange, path: str = "a.py") -> tuple[tuple[Event, str], ...]:
    """Return the events of a call that changes files, in log order: changes are recorded before the call ends."""
    return (
        (ToolStarted(tool_id="1", name="edit_file", input={"path": path}), name),
        (FilesChanged(changes=changes), name),
        (ToolCompleted(tool_id="1", name="edit_file", status="ok", exit_code=0, output="changed"), name),
    )


def test_a_diff_is_shown_below_its_call() -> None:
    assert render(*edit("a", file_change("a.py"))).splitlines() == [
        "",
        "• a edit_file a.py  +1 -1",
        "    1 - x",
        "    1 + y",
    ]


def test_a_call_that_changed_several_files_names_each() -> None:
    one = "@@ -0,0 +1 @@\n+y\n"
    assert render(*edit("a", file_change("a.py", one), file_change("b.py", one))).splitlines() == [
        "",
        "• a edit_file a.py",
        "    a.py  +1 -1",
        "    1 + y",
        "    b.py  +1 -1",
        "    1 + y",
    ]


def test_a_diff_is_not_shown_below_the_call_of_another_step() -> None:
    (started, files, done), (other, _, other_done) = edit("a", file_change("a.py")), edit("b", path="b.py")
    text = render(started, other, files, other_done, done)
    assert text.index("• b edit_file b.py\n") < text.index("• a edit_file a.py  +1 -1\n") < text.index("    1 + y\n")


def test_changes_without_a_call_are_shown_above_the_end_of_the_step() -> None:
    end = StepCompleted(status="ok", summary="", elapsed_ms=10)
    text = render((plan("a", "b"), None), (FilesChanged(changes=(file_change("a.py"),)), "a"), (end, "a"))
    assert text.splitlines()[3:] == [
        "",
        "    a.py  +1 -1",
        "    1 - x",
        "    1 + y",
        "✓ a Title a (0.0s)",
    ]


def test_output_and_diffs_preserve_their_columns() -> None:
    end = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output="id  name\n1   Ada\n\tend")
    text = render((end, "a"), *edit("a", file_change("a.py", "@@ -1 +1 @@\n+    x = 1")))
    assert "    id  name\n    1   Ada\n            end\n" in text and "    1 +     x = 1\n" in text


def test_a_single_remaining_line_is_not_folded() -> None:
    end = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output="1\n2\n3\n4")
    assert render((end, "a")).splitlines()[2:] == ["    1", "    2", "    3", "    4"]


def test_a_finished_step_shows_its_numbers_and_a_failed_one_the_reason() -> None:
    good = StepCompleted(
        status="ok", summary="", usage=Usage(input_tokens=1200), cost_usd=0.03, elapsed_ms=1500, verified=True
    )
    bad = StepCompleted(status="error", summary="no such host", elapsed_ms=10)
    assert render((plan("a", "b"), None), (good, "a"), (bad, "b")).splitlines()[3:] == [
        "",
        "✓ a Title a (1.5s, verified, 1.2k tokens, $0.03)",
        "",
        "✗ b Title b (error, 0.0s)",
        "    no such host",
    ]


def test_a_long_line_is_wrapped_with_an_indent() -> None:
    bad = StepCompleted(status="error", summary="no such host was found", elapsed_ms=10)
    assert render((plan("a"), None), (bad, "a"), width=24).splitlines()[3:] == [
        "✗ a Title a (error)",
        "    no such host was",
        "        found",
    ]


def test_the_answer_is_streamed_block_by_block_and_written_once() -> None:
    text = render(
        (plan("a", "b"), None),
        (assistant_message("not the answer", delta=True), "a"),
        (assistant_message("First.\n\nSec", delta=True), None),
        (assistant_message("ond.", delta=True), None),
        (run_completed("First.\n\nSecond."), None),
    )
    assert "not the answer" not in text
    assert [line for line in text.splitlines() if line in ("First.", "Second.")] == ["First.", "Second."]


def test_an_answer_that_was_not_streamed_is_written_at_the_end() -> None:
    assert "Here it is.\n" in render((run_completed("Here it is."), None))


def test_an_answer_that_differs_from_its_fragments_is_written_again() -> None:
    text = render(
        (assistant_message("Wrong.\n\nbegin", delta=True), None), (run_completed("Right.\n\nAll of it."), None)
    )
    assert "Right.\n\nAll of it.\n" in text


def test_an_error_is_written_after_the_answer() -> None:
    error = ErrorRaised(message="not allowed: x")
    text = render(
        (assistant_message("First.\n\nSec", delta=True), None),
        (error, None),
        (run_completed("First.\n\nSecond."), None),
    )
    assert text.splitlines()[:6] == ["", "First.", "", "Second.", "", "error: not allowed: x"]


def test_without_a_markdown_renderer_the_answer_is_left_out() -> None:
    text = render(
        (assistant_message("Words.\n\n", delta=True), None), (run_completed("Words."), None), has_answer=False
    )
    assert "Words." not in text


def test_a_run_ends_with_a_summary() -> None:
    end = run_completed(
        "x",
        steps=StepCounts(ok=2, failed=1),
        duration_ms=65_000,
        usage=Usage(input_tokens=20_000, cache_read_tokens=9800),
        total_cost_usd=0.5,
        artifacts=("report.md",),
        resume="agent resume run-1",
    )
    assert render((end, None)).splitlines()[-3:] == [
        "  wrote report.md",
        "· 1m05s · 2 ok, 1 failed · 20k tokens (9.8k cached) · $0.50",
        f"  {resume_hint('agent resume run-1', in_repl=True)}",
    ]


def test_the_summary_tells_partial_steps_apart_from_good_ones() -> None:
    partial = StepCompleted(status="partial", summary="half", elapsed_ms=10)
    text = render((partial, "s1"), (run_completed("x", steps=StepCounts(ok=3, failed=0)), None))
    assert " · 2 ok, 1 partial" in text


def test_the_summary_counts_cancelled_steps_as_stopped() -> None:
    stopped = StepCompleted(status="cancelled", summary="", elapsed_ms=10)
    end = run_completed("", steps=StepCounts(failed=2), duration_ms=1000)
    text = render((plan("a", "b"), None), (stopped, "a"), (stopped, "b"), (end, None))
    assert text.splitlines()[-1] == "· 1.0s · 2 stopped"


def test_a_decision_is_attributed_to_the_user_or_to_its_rule() -> None:
    decided = [ApprovalResolved(approval_id="1", decision=decision, by="person") for decision in ("allow", "deny")]
    by_rule = ApprovalResolved(approval_id="1", decision="deny", by="a rule")
    text = render(*((event, "a") for event in (*decided, by_rule)))
    assert text.splitlines() == ["", "  a: you allowed it", "  a: you declined", "  a: denied by a rule"]


def test_warnings_and_errors_are_wrapped_not_cut() -> None:
    message = "a rather long explanation of what went wrong, which must be read to its very end"
    events: list[tuple[Event, str | None]] = [
        (WarningRaised(message=message), None),
        (ErrorRaised(message=message, hint="do this"), None),
        (run_completed(""), None),
    ]
    text = render(*events, width=40)
    assert text.replace("\n", " ").count("its very end") == 2
    assert max(map(len, text.splitlines())) <= 40
    assert "\n  do this\n" in text


def test_text_from_tools_and_models_cannot_move_the_cursor() -> None:
    end = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output="a\x1b[2Jb\rc\x07")
    call = ToolStarted(tool_id="1", name="run_command", input={"command": "x\x1b[31m\u202e"})
    text = render((call, "a\x1b"), (end, "a\x1b"), (plan("\x1b]0;x\x07"), None))
    assert not [mark for mark in text if mark != "\n" and not mark.isprintable() and mark != "�"]


def test_folded_output_is_sanitized() -> None:
    transcript = Transcript(write=lambda text: None, width=lambda: 60, paint=Paint(has_color=False))
    call = ToolStarted(tool_id="1", name="run_command", input={"command": f"make {HOSTILE}"})
    end = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output=f"{HOSTILE}\n" * 9)
    change = FileChange(path=HOSTILE, status="added", diff=f"+{HOSTILE}\n" * 20, added_lines=20, deleted_lines=0)
    for event in (STARTED, call, end, call, FilesChanged(changes=(change,)), end):
        transcript.on_event(envelope(event, "a"))
    assert len(transcript.folded) > 1
    assert find_foreign("".join(f"{one.title}\n{one.text}" for one in transcript.folded).encode()) == []


LEAD_PLAN = replace(plan(LEAD), reason="request")
LEAD_STARTED = (StepStarted(title="count"), LEAD)
LEAD_ENDED = (StepCompleted(status="ok", summary="x", elapsed_ms=10), LEAD)


def test_the_lead_streams_the_answer_and_is_not_drawn_as_a_step() -> None:
    text = render(
        (LEAD_PLAN, None),
        LEAD_STARTED,
        (assistant_message("There are\n\nfour", delta=True), LEAD),
        (assistant_message(" orders.", delta=True), LEAD),
        (assistant_message("There are\n\nfour orders."), LEAD),
        LEAD_ENDED,
        (run_completed("There are\n\nfour orders.", steps=StepCounts(ok=1), duration_ms=400), None),
    )
    assert text == "\nThere are\n\nfour orders.\n\n· 0.4s\n"


def test_the_answer_of_the_lead_is_not_repeated_before_the_memory_is_updated() -> None:
    text = render(
        (LEAD_PLAN, None),
        LEAD_STARTED,
        (assistant_message("Four."), LEAD),
        LEAD_ENDED,
        (assistant_message("Four."), None),
        (run_completed("Four."), None),
    )
    assert text.count("Four.") == 1


def test_the_calls_of_the_lead_have_no_step_and_no_indent() -> None:
    call = ToolStarted(tool_id="1", name="run_command", input={"command": "ls"})
    end = ToolCompleted(tool_id="1", name="run_command", status="ok", exit_code=0, output="a.txt")
    said = MessageAdded(
        role="assistant", content="Let me look.", tool_calls=(CallMade(id="1", name="run_command", input={}),)
    )
    allowed = ApprovalResolved(approval_id="1", decision="allow", by="person")
    text = render((LEAD_PLAN, None), LEAD_STARTED, (said, LEAD), (call, LEAD), (allowed, LEAD), (end, LEAD))
    assert text == "\nLet me look.\n\n  you allowed it\n\n• $ ls\n    a.txt\n"


def test_steps_that_the_lead_hands_out_are_drawn_and_counted_without_it() -> None:
    handed_out = plan(LEAD, "a", "b", diff="+ a Title a\n+ b Title b", revision=2)
    ended = StepCompleted(status="ok", summary="", elapsed_ms=10)
    reported = ToolCompleted(tool_id="1", name="plan", status="ok", exit_code=0, output="a and b are done")
    text = render(
        (LEAD_PLAN, None),
        LEAD_STARTED,
        (handed_out, None),
        (ended, "a"),
        (ended, "b"),
        (reported, LEAD),
        LEAD_ENDED,
        (run_completed("Done.", steps=StepCounts(ok=3), duration_ms=400), None),
    )
    assert text == (
        "\n1 ┌ ● a  Title a\n  └ ○ b  Title b\n\n✓ a Title a (0.0s)\n✓ b Title b (0.0s)\n\nDone.\n\n· 0.4s · 2 ok\n"
    )


def test_a_stopped_run_keeps_what_was_said() -> None:
    cancelled = StepCompleted(status="cancelled", summary="")
    stopped = RunCompleted(
        subtype="error_interrupted", is_error=True, exit_code=130, result="", steps=StepCounts(failed=1)
    )
    said = assistant_message("First.\n\nSecond, in the mid", delta=True)
    for step in (LEAD, None):
        first = [(LEAD_PLAN, None), LEAD_STARTED] if step else [(plan("a", "b"), None)]
        text = render(*first, (said, step), *([(cancelled, LEAD)] if step else []), (stopped, None))
        assert "First.\n" in text and "Second, in the mid\n" in text


def test_a_command_that_the_user_stopped_keeps_its_last_output_and_is_no_error() -> None:
    call = ToolStarted(tool_id="1", name="run_command", input={"command": "make test"})
    live = ToolOutput(tool_id="1", text="one\ntwo\nthree\n7 passed\n1 failed")
    unknown = "Unknown: the run was stopped while this call ran."
    end = ToolCompleted(tool_id="1", name="run_command", status="cancelled", exit_code=130, output=unknown)
    stopped = RunCompleted(subtype="error_interrupted", is_error=True, exit_code=130, result="")
    error = ErrorRaised(exit_code=130, message="interrupted")
    text = render((LEAD_PLAN, None), (call, LEAD), (live, LEAD), (end, LEAD), (error, None), (stopped, None))
    assert text == "\n• $ make test  stopped\n    three\n    7 passed\n    1 failed\n\n  stopped by you\n· 0.0s\n"


def test_a_question_that_was_open_when_the_run_was_stopped_takes_one_line() -> None:
    asked = ToolStarted(tool_id="1", name="ask_user", input={"question": "Which port?"})
    end = ToolCompleted(tool_id="1", name="ask_user", status="cancelled", exit_code=130, output="Cancelled: the run …")
    assert render((asked, LEAD), (end, LEAD)) == "\n• ask_user Which port?  stopped\n"


def test_the_reason_of_a_reviewer_is_shown_completely() -> None:
    opinion = Opinion(verdict="deny", text="It overwrites the remote branch, although you asked for a commit only.")
    shown = render((ApprovalResolved(approval_id="a", decision="deny", by="reviewer", opinion=opinion), LEAD))
    assert " ".join(shown.split()) == f"denied by reviewer: {opinion.text}"
