"""The evidence for a step is complete, with full outputs, and contains nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.protocol.events import (
    Event,
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolStarted,
)
from agent.sessions.log.log_index import run_events
from agent.sessions.upkeep.export import code_block, load_document, render_markdown
from agent.sessions.views.evidence import collect_evidence
from agent.sessions.views.run_summary import run_view
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import PlanStep
from tests.agent.sessions.past_runs import (
    command_events,
    completed_run,
    plan_updated,
    run_completed,
    run_start,
    write_run,
)
from tooling.contract.result import FileChange

RUN, RESUMED = "run-20250101120000-aaaaaa", "run-20250101130000-bbbbbb"
DONE = StepCompleted(status="ok", summary="short", elapsed_ms=900)


def step_events(*inside: Event) -> list[Event]:
    return [*run_start(), plan_updated("s1"), StepStarted(title="Title of s1"), *inside, DONE, run_completed()]


def test_every_call_has_its_exit_code_and_output(tmp_path: Path) -> None:
    events = step_events(*command_events("false", "", 1, "a"), *command_events("true", "fine", 0, "b"))
    step = collect_evidence(write_run(tmp_path, "s", events), RUN, "s1").step
    assert [(call.input["command"], call.status, call.exit_code, call.output) for call in step.calls] == [
        ("false", "error", 1, ""),
        ("true", "ok", 0, "fine"),
    ]
    assert (step.title, step.instruction, step.status, step.elapsed_ms) == ("Title of s1", "Do s1", "ok", 900)


def test_calls_with_a_reused_id_are_told_apart(tmp_path: Path) -> None:
    events = step_events(*command_events("one", "1", 0, "call_0"), *command_events("two", "2", 0, "call_0"))
    step = collect_evidence(write_run(tmp_path, "s", events), RUN, "s1").step
    assert [(call.input["command"], call.output) for call in step.calls] == [("one", "1"), ("two", "2")]


def test_a_trimmed_output_is_replaced_by_the_full_one(tmp_path: Path) -> None:
    cut = "head\n[... 9 characters cut; full output: /elsewhere/outputs/s1-1-s1.1.1.txt ...]\ntail"
    folder = write_run(tmp_path, "s", step_events(*command_events("make", cut)))
    (call,) = collect_evidence(folder, RUN, "s1").step.calls
    assert (call.output, call.output_file) == (cut, None)
    full = folder.outputs / "s1-1-s1.1.1.txt"
    full.write_text("head and all\nthe rest tail")
    (call,) = collect_evidence(folder, RUN, "s1").step.calls
    assert (call.output, call.output_file) == ("head and all\nthe rest tail", str(full))


@pytest.mark.parametrize("name", ["/etc/passwd", "../SESSION.json", "s2-1-s2.1.1.txt", "link"])
def test_a_forged_trim_notice_reads_no_other_file(tmp_path: Path, name: str) -> None:
    forged = f"[... 9 characters cut; full output: {name} ...]"
    folder = write_run(tmp_path, "s", step_events(*command_events("echo", forged)))
    (folder.outputs / "s2-1-s2.1.1.txt").write_text("of another step")
    (folder.outputs / "passwd").write_text("of no step")
    (folder.outputs / "link").symlink_to("/etc/passwd")
    assert collect_evidence(folder, RUN, "s1").step.calls[0].output == forged


def test_checks_are_distinguished_from_the_models_calls(tmp_path: Path) -> None:
    events = step_events(*command_events("make", "ok"), *command_events("make test", "1 failed", 1, "s1.check.1"))
    calls = collect_evidence(write_run(tmp_path, "s", events), RUN, "s1").step.calls
    assert [(call.is_check, call.exit_code) for call in calls] == [(False, 0), (True, 1)]


def test_changes_and_the_answer_are_evidence(tmp_path: Path) -> None:
    change = FileChange(path="a.txt", status="added", added_lines=1, diff="+a\n", after="x")
    folder = write_run(tmp_path, "s", step_events(FilesChanged(changes=(change,))))
    found = collect_evidence(folder, RUN, "s1")
    assert (found.step.changes, found.answer) == ((change,), "short")
    outside = MessageAdded(role="assistant", content="all that it said")
    write_run(tmp_path, "s", [outside], run=RUN)
    # A message outside any step does not belong to the step.
    assert collect_evidence(folder, RUN, "s1").answer == "short"


def test_evidence_includes_the_resumed_runs(tmp_path: Path) -> None:
    write_run(
        tmp_path,
        "s",
        [*run_start(), plan_updated("s1"), StepStarted(title="Title of s1"), *command_events("make", "made"), DONE],
    )
    started, asked = run_start()
    assert isinstance(started, RunStarted)
    again: list[Event] = [
        replace(started, resumes=RUN),
        asked,
        plan_updated("s1"),
        StepStarted(cache="hit"),
        DONE,
        run_completed(),
    ]
    folder = write_run(tmp_path, "s", again, run=RESUMED)
    found = collect_evidence(folder, RESUMED, "s1")
    assert found.runs == (RUN, RESUMED)
    assert [call.output for call in found.step.calls] == ["made"]
    assert collect_evidence(folder, RUN, "s1").runs == (RUN,)


def test_an_unknown_step_is_refused_with_a_list_of_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no step 's9'") as refused:
        collect_evidence(write_run(tmp_path, "s", completed_run()), RUN, "s9")
    assert refused.value.hint == "its steps: s1"


def test_a_running_run_shows_its_progress(tmp_path: Path) -> None:
    call = ToolStarted(tool_id="c", name="run_command", input={"command": "sleep 9"})
    folder = write_run(tmp_path, "s", [*run_start(), plan_updated("s1", "s2"), StepStarted(), call])
    view = run_view(run_events(folder.events, RUN))
    assert [(step.id, step.status) for step in view.steps] == [("s1", "unfinished"), ("s2", "pending")]
    assert (view.steps[0].calls[0].status, view.subtype, view.exit_code) == ("unfinished", "unfinished", None)


def test_a_step_dropped_from_the_plan_is_shown_only_if_it_ran(tmp_path: Path) -> None:
    again = PlanUpdated(
        plan_id="p",
        revision=2,
        hash="h",
        reason="surprise: no tests",
        steps=(PlanStep(id="s3", title="Title of s3", instruction="Do s3"),),
        diff="- s2 Title of s2\n+ s3 Title of s3",
    )
    folder = write_run(
        tmp_path, "s", [*run_start(), plan_updated("s1", "s2"), StepStarted(), DONE, again, run_completed()]
    )
    view = run_view(run_events(folder.events, RUN))
    assert [step.id for step in view.steps] == ["s1", "s3"]
    assert [(revision.revision, revision.reason) for revision in view.revisions] == [(2, "surprise: no tests")]


def test_an_export_contains_every_run(tmp_path: Path) -> None:
    write_run(tmp_path, "s", completed_run("count\nthe lines", "three `lines`"))
    folder = write_run(tmp_path, "s", completed_run("again", "still\x1b[31m three"), run=RESUMED)
    document = load_document(folder)
    assert [run.request for run in document.runs] == ["count\nthe lines", "again"]
    text = render_markdown(document)
    for part in ("# count the lines", "> count\n> the lines", "$ wc -l < a.txt\n3", "### Answer\n\nstill three", "0.5"):
        assert part in text
    assert "\x1b" not in text


def test_no_text_can_close_its_code_fence() -> None:
    assert code_block("a\n```\nb", "text") == "````text\na\n```\nb\n````"
    assert code_block("a", "diff") == "```diff\na\n```"
