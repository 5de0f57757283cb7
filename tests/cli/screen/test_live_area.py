"""The live area shows running steps within the given lines and columns."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    BudgetSpent,
    Event,
    MessageAdded,
    PlanUpdated,
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolOutput,
    ToolStarted,
)
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.usage import Usage
from cli.screen.colors import Paint
from cli.screen.live_area import ANSWERING, THINKING, WAITING_FOR_USER, LiveArea

STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="sandbox", approval_mode="ask", tools=()
)


def envelope(event: Event, step: str | None = None) -> Envelope:
    return Envelope(seq=1, ts="", session_id="s", run_id="r", event=event, step_id=step, attempt=1)


def area(*events: tuple[Event, str | None], now: float = 12.0) -> LiveArea:
    clock = [0.0]
    live = LiveArea(paint=Paint(has_color=False), now=lambda: clock[0])
    for event, step in events:
        live.on_event(envelope(event, step))
    clock[0] = now
    return live


def plan(*names: str) -> PlanUpdated:
    steps = tuple(PlanStep(id=name, title=f"Title {name}", instruction="x") for name in names)
    return PlanUpdated(plan_id="p", revision=1, hash="h", reason="request", steps=steps)


def test_the_footer_names_the_key_that_stops_the_run() -> None:
    live = LiveArea(paint=Paint(has_color=False), stop_key="Esc", now=lambda: 0.0)
    live.on_event(envelope(STARTED))
    assert live.lines(80, 10)[-1].strip() == "planning · 0.0s · Esc stops"
    live.on_event(envelope(QuestionAsked(question_id="1", question="Run this plan?")))
    assert live.lines(80, 10)[-1].strip() == f"0.0s · 1 {WAITING_FOR_USER}"


def test_without_a_run_there_are_no_lines() -> None:
    assert area().lines(80, 10) == []
    ended = RunCompleted(subtype="success", is_error=False, exit_code=0, result="x")
    assert area((STARTED, None), (StepStarted(title="A"), "a"), (ended, None)).lines(80, 10) == []


def test_every_running_step_has_a_line_with_its_activity() -> None:
    lines = area(
        (STARTED, None),
        (plan("a", "b"), None),
        (StepStarted(title="Title a"), "a"),
        (ToolStarted(tool_id="1", name="run_command", input={"command": "make test"}), "a"),
        (StepStarted(title="Title b"), "b"),
        (MessageAdded(role="assistant", content="thinking about\nthe second line", delta=True), "b"),
    ).lines(80, 10)
    assert "a Title a 12s │ $ make test" in lines[0]
    assert "b Title b 12s │ the second line" in lines[1]
    assert lines[2].strip() == "0/2 steps · 12s"


def test_a_step_that_waits_for_the_user_says_so() -> None:
    asked = ApprovalRequested(approval_id="1", command="x", cwd="/", reason="r", rule="")
    lines = area((STARTED, None), (StepStarted(title="A"), "a"), (asked, "a")).lines(80, 10)
    assert lines[0].endswith(f"│ {WAITING_FOR_USER}")
    assert lines[1].endswith(f"1 {WAITING_FOR_USER}")


def test_the_footer_shows_the_budget_as_a_bar() -> None:
    spent = BudgetSpent(usage=Usage(input_tokens=500), cost_usd=0.25, max_tokens=1000, max_budget_usd=0.5)
    (footer,) = area((STARTED, None), (spent, None)).lines(80, 10)
    assert footer.endswith("500 tokens · $0.25 · budget █████░░░░░ 50%")


def test_steps_that_do_not_fit_are_counted() -> None:
    steps = [(StepStarted(title=f"Step {number}"), f"s{number}") for number in range(10)]
    lines = area((STARTED, None), *steps).lines(60, 4)
    assert (len(lines), lines[2].strip()) == (4, "… and 8 more steps")


def test_a_finished_step_has_no_line_and_is_counted() -> None:
    end = StepCompleted(status="ok", summary="", usage=Usage(output_tokens=1500))
    (footer,) = area((STARTED, None), (plan("a"), None), (StepStarted(title="A"), "a"), (end, "a")).lines(80, 10)
    assert footer.strip() == "1/1 steps · 12s · 1.5k tokens"


def test_the_lead_has_one_line_with_its_activity_and_is_not_counted() -> None:
    begun = [(STARTED, None), (plan(LEAD), None), (StepStarted(title="count the orders"), LEAD)]
    call = (ToolStarted(tool_id="1", name="run_command", input={"command": "make"}), LEAD)
    said = (MessageAdded(role="assistant", content="There are", delta=True), LEAD)
    for events, activity in (([], THINKING), ([call], "$ make"), ([said], ANSWERING)):
        live = area(*begun, *events)
        first, footer = live.lines(80, 10)
        assert (first[2:], footer.strip()) == (f"{activity} 12s", "12s")
        assert live.running_steps == ()


def test_the_last_lines_of_a_running_command_are_live() -> None:
    call = ToolStarted(tool_id="1", name="run_command", input={"command": "make"})
    output = ToolOutput(tool_id="1", text="one\ntwo\nthree\nfour")
    lines = area((STARTED, None), (plan(LEAD), None), (call, LEAD), (output, LEAD)).lines(80, 10)
    assert [line.rstrip() for line in lines[1:]] == ["    two", "    three", "    four", "  12s"]
    lines = area((STARTED, None), (plan("a"), None), (StepStarted(title="A"), "a"), (output, "a")).lines(80, 10)
    assert lines[0].endswith("│ four")


def test_the_indentation_of_live_output_is_kept_and_a_long_command_has_the_whole_line() -> None:
    call = ToolStarted(tool_id="1", name="run_command", input={"command": "make " + "x" * 100})
    output = ToolOutput(tool_id="1", text="def f():\n\treturn")
    first, *rest = area((STARTED, None), (plan(LEAD), None), (call, LEAD), (output, LEAD)).lines(80, 10)
    assert len(first) == 80 and first.endswith("x… 12s")
    assert rest[:2] == ["    def f():", "            return"]


def test_the_lead_has_no_line_while_its_steps_run() -> None:
    first, footer = area(
        (STARTED, None),
        (StepStarted(title="do both"), LEAD),
        (plan(LEAD, "a", "b"), None),
        (StepStarted(title="Title a"), "a"),
    ).lines(80, 10)
    assert (first[2:], footer.strip()) == ("a Title a 12s", "0/2 steps · 12s")


@given(st.integers(10, 200), st.integers(0, 12), st.text(max_size=60), st.text(max_size=200))
def test_no_title_or_output_makes_the_area_larger_than_the_window(
    width: int, height: int, title: str, output: str
) -> None:
    said = MessageAdded(role="assistant", content=output, delta=True)
    live = area((STARTED, None), (StepStarted(title=title), "a"), (said, "a"), (StepStarted(title="漢字" * 20), "b"))
    lines = live.lines(width, height)
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert not any(mark in line for line in lines for mark in "\n\r\x1b\t")


def test_the_clock_of_a_step_stops_while_the_user_thinks() -> None:
    clock = [0.0]
    live = LiveArea(paint=Paint(has_color=False), now=lambda: clock[0])

    def at(seconds: float, event: Event, step: str | None) -> str:
        clock[0] = seconds
        live.on_event(envelope(event, step))
        return live.lines(80, 10)[0] if live.lines(80, 10) else ""

    asked = ApprovalRequested(approval_id="1", command="x", cwd="/", reason="", rule="")
    question = QuestionAsked(question_id="q", question="Which?")
    at(0, STARTED, None)
    for step in ("a", LEAD):
        started = clock[0]
        at(started, StepStarted(title="Work"), step)
        assert "Work 2.0s" in at(started + 2, asked, step) or step == LEAD
        clock[0] = started + 1000
        assert " 2.0s │ waiting for you" in live.lines(80, 10)[0]
        # Both must be answered.
        at(started + 1500, question, step)
        assert " 2.0s" in at(started + 2000, ApprovalResolved(approval_id="1", decision="allow", by="person"), step)
        at(started + 3000, QuestionAnswered(question_id="q", answer="this"), step)
        assert " 5.0s" in at(started + 3003, BudgetSpent(usage=Usage(), cost_usd=None), step)
        at(started + 3003, StepCompleted(status="ok", summary=""), step)


def test_many_running_steps_leave_half_of_a_small_window_to_what_was_done() -> None:
    names = [f"s{number}" for number in range(24)]
    running = [(StepStarted(title="Look"), name) for name in names]
    lines = area((STARTED, None), (plan(*names), None), *running).lines(80, 20)
    assert len(lines) <= 11
    assert lines[-2:] == ["… and 16 more steps", "  0/24 steps · 12s"]


def test_ids_and_titles_of_running_steps_are_in_columns() -> None:
    lines = area(
        (STARTED, None),
        (plan("a", "check"), None),
        (StepStarted(title="One"), "a"),
        (StepStarted(title="Two"), "check"),
    ).lines(80, 10)
    assert lines[0].index("One") == lines[1].index("Two")
