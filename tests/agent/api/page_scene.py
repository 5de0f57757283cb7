"""A day in the life of a server: tasks in every state, a run in the middle of its plan, and somebody to ask."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from agent.protocol.events import (
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.service.task import Schedule, ScheduleMode, Task, TaskOutcome, TaskRequest, TaskState, Worker
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.usage import Usage
from tests.agent.api.fake_engine import NOW, result_of
from tests.agent.api.served import Server, WrittenRun
from tooling.contract.result import FileChange

STEPS = (
    ("lead", "Update the dependencies", ()),
    ("deps", "List outdated packages", ()),
    ("python", "Update Python packages", ("deps",)),
    ("web", "Update npm packages", ("deps",)),
    ("tests", "Run the test suite", ("python", "web")),
    ("notes", "Write the changelog", ("tests",)),
)
DIFF = """--- a/pyproject.toml
+++ b/pyproject.toml
@@ -12,4 +12,4 @@
 dependencies = [
-    "httpx>=0.27,<1",
-    "typer>=0.16,<0.28",
+    "httpx>=0.28,<1",
+    "typer>=0.16,<0.29",
 ]
"""
ANSWER = """All dependencies are up to date, and **the tests pass**.

| package | before | now |
|---|---|---|
| httpx | 0.27.2 | 0.28.1 |
| typer | 0.27.0 | 0.28.3 |

- `vite` stays at 7: version 8 needs Node.js 22.
"""


def plan_event() -> PlanUpdated:
    steps = tuple(
        PlanStep(id=name, title=title, instruction=f"{title}.", depends_on=after) for name, title, after in STEPS
    )
    return PlanUpdated(plan_id="p1", revision=1, hash="h", reason="complete", steps=steps)


def write_beginning(run: WrittenRun, task_id: str) -> None:
    """Write a run whose packages are updated and whose tests wait."""
    run.write(
        RunStarted(
            model="anthropic/claude-sonnet-4-5",
            planner_model="anthropic/claude-sonnet-4-5",
            cwd="/home/ada/shop",
            workspace="/home/ada/shop",
            backend="sandbox",
            approval_mode="ask",
            tools=("run_command",),
            task_id=task_id,
        )
    )
    run.write(MessageAdded(role="user", content="Update the dependencies and run the tests"))
    run.write(plan_event())
    run.write(StepStarted(title="Update the dependencies"), "lead")
    _step(run, "deps", "uv pip list --outdated", "httpx  0.27.2  0.28.1\ntyper  0.27.0  0.28.3\n", 0.012)
    run.write(StepStarted(title="Update Python packages"), "python")
    change = FileChange(path="pyproject.toml", status="modified", added_lines=2, deleted_lines=2, diff=DIFF)
    _call(
        run, "python", "c2", "uv lock --upgrade", "Resolved 160 packages in 4.73s\nUpdated httpx v0.27.2 -> v0.28.1\n"
    )
    run.write(FilesChanged(changes=(change,)), "python")
    _end(run, "python", "Updated httpx and typer.", 0.021, 41_300)
    run.write(StepStarted(title="Update npm packages"), "web")
    start = ToolStarted(tool_id="c3", name="run_command", input={"command": "npm update --prefix web"})
    run.write(start, "web")


def write_end(run: WrittenRun) -> None:
    """Write the rest of the run."""
    run.write(
        ToolCompleted(tool_id="c3", name="run_command", status="ok", exit_code=0, output="changed 12 packages"), "web"
    )
    _end(run, "web", "Updated 12 packages; vite stays at 7.", 0.017, 22_800)
    _step(run, "tests", "make test", "142 passed in 38.20s\n", 0.009)
    _step(run, "notes", "git diff --stat", " CHANGELOG.md | 4 ++++\n", 0.006)
    _end(run, "lead", "done", 0.044, 190_000)
    usage = Usage(input_tokens=48_210, output_tokens=3_904, cache_read_tokens=40_100, requests=14, cost_usd=0.109)
    run.write(
        RunCompleted(
            subtype="success",
            is_error=False,
            exit_code=0,
            result=ANSWER,
            verified=True,
            artifacts=("CHANGELOG.md",),
            duration_ms=193_400,
            usage=usage,
        )
    )


@contextmanager
def busy_server(server: Server) -> Iterator[Task]:
    """Fill a server, and hold the lock of its running task while the block runs; yields that task."""
    engine = server.engine
    engine.workers = (
        Worker(
            worker_id="w1",
            host="box",
            pid=4711,
            started_at=NOW,
            is_alive=True,
            concurrency=5,
            modes=tuple(ScheduleMode),
        ),
    )
    nightly = TaskRequest(prompt="Read the new issues, label them, and write a summary")
    schedule = Schedule(name="morning", cron="0 7 * * 1-5", zone="Europe/Berlin", request=nightly)
    result_of(engine.schedules.add(schedule))
    outcome = TaskOutcome(state=TaskState.COMPLETED, exit_code=0, answer="Done.", cost_usd=0.0312)
    server.task("Summarize yesterday's errors in the logs", TaskState.COMPLETED, outcome=outcome, started_at=NOW)
    server.task(
        "Import the customers of the old shop", TaskState.FAILED, error="the model is overloaded", started_at=NOW
    )
    server.task("Check all links of the handbook", TaskState.QUEUED, next_run_at=NOW + timedelta(hours=14))
    task = server.task(
        "Update the dependencies, run the tests, and tell me what broke",
        TaskState.RUNNING,
        started_at=NOW - timedelta(minutes=1),
        attempt=1,
    )
    run = WrittenRun(server.store, task.session_id)
    write_beginning(run, task.task_id)
    server.ask(
        task,
        "a-1",
        "npm install --prefix web vite@7 && rm -rf web/node_modules/.cache",
        cwd="/home/ada/shop",
        reason="it deletes files in bulk; it downloads and runs code of others",
        rule="npm install",
        step_id="web",
        involves=("runs npm, rm", "connects to registry.npmjs.org"),
    )
    with run.running():
        yield engine.tasks.by_id[task.task_id]


def _step(run: WrittenRun, step: str, command: str, output: str, cost: float) -> None:
    run.write(StepStarted(title=step), step)
    _call(run, step, f"c-{step}", command, output)
    _end(run, step, output.strip().splitlines()[-1], cost, 8_200)


def _call(run: WrittenRun, step: str, tool_id: str, command: str, output: str) -> None:
    run.write(ToolStarted(tool_id=tool_id, name="run_command", input={"command": command}), step)
    run.write(ToolCompleted(tool_id=tool_id, name="run_command", status="ok", exit_code=0, output=output), step)


def _end(run: WrittenRun, step: str, summary: str, cost: float, elapsed_ms: int) -> None:
    usage = Usage(input_tokens=6_100, output_tokens=420, cost_usd=cost, requests=2)
    run.write(StepCompleted(status="ok", summary=summary, usage=usage, cost_usd=cost, elapsed_ms=elapsed_ms), step)
