"""Pages about tasks."""

from datetime import UTC, datetime

from agent.service.containers.pool import ContainerRow
from agent.service.rehearsal import RehearsalSheet
from agent.service.task import QueueStats, Task, TaskOutcome, TaskRequest, TaskState
from cli.commands.tasks.rehearsal import sheet_page
from cli.pages.task_pages import stats_page, task_page
from tooling.approvals.manifest import Manifest


def test_stats_name_the_containers_of_executors() -> None:
    stats = QueueStats(tasks=dict.fromkeys(TaskState, 0), open_questions=0, schedules=0, workers=())
    row = ContainerRow(container_id="exec-1", name="windlass-exec-1", status="running", mode="persistent")
    assert stats_page(stats, [row])[-2:] == [
        "(no workers; start one: agent worker)",
        "container exec-1: persistent, running",
    ]


def test_a_rehearsal_is_one_sheet_in_words() -> None:
    grants = Manifest(programs=("git push", "make\x1b[31m"), writes=("report.txt",), max_usd=0.08)
    sheet = RehearsalSheet(manifest=grants, questions=("Which branch? (main, next)",), cost_usd=0.08, rounds=2)
    assert sheet_page(sheet) == [
        "The task needs to:",
        "  run         git push",
        "              make",
        "  write       report.txt",
        "  spend up to $0.0800",
        "It asks:",
        "  Which branch? (main, next)",
        "The rehearsal cost $0.0800 in 2 tries.",
        "Everything else will be denied, without asking.",
    ]


def test_a_task_shows_what_it_was_granted_and_how_it_failed() -> None:
    request = TaskRequest(prompt="push", session_id="s1", grants=Manifest(programs=("git push",)), is_unattended=True)
    outcome = TaskOutcome(state=TaskState.FAILED, exit_code=57, error="not allowed")
    now = datetime(2026, 1, 5, 20, tzinfo=UTC)
    task = Task(task_id="t1", request=request, state=TaskState.FAILED, created_at=now, outcome=outcome)
    page = task_page(task)
    assert "  granted   run git push" in page
    assert "  exit      code 57" in page


def test_a_completed_task_says_that_its_answer_is_partial_and_which_run_has_the_reason() -> None:
    outcome = TaskOutcome(state=TaskState.COMPLETED, exit_code=1, subtype="partial", answer="Half of it.", run_id="r1")
    request = TaskRequest(prompt="count", session_id="s1")
    now = datetime(2026, 1, 5, 20, tzinfo=UTC)
    task = Task(task_id="t1", request=request, state=TaskState.COMPLETED, created_at=now, outcome=outcome)
    assert "  exit      code 1, a partial answer; see agent runs show r1" in task_page(task)
