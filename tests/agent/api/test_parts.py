"""What the endpoints look up in logs."""

from pathlib import Path

from agent.api.parts import TaskRunIds
from agent.protocol.events import RunStarted, WarningRaised
from agent.sessions.store import SessionStore
from tests.agent.api.served import WrittenRun

STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="host", approval_mode="ask", tools=(), task_id="t1"
)


def test_a_running_task_is_shown_without_reading_its_long_log_again(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "data")
    first = WrittenRun(store, "s1", "run-1")
    log = first.folder.events
    runs = TaskRunIds()
    first.write(STARTED)
    first.write(WarningRaised(message="x" * 1000))
    assert runs.latest(log, "t1") == "run-1"
    # What was read once is not needed any more.
    log.write_bytes(b"-" * (log.stat().st_size - 1) + b"\n")
    first.write(WarningRaised(message="y"))
    assert runs.latest(log, "t1") == "run-1"
    WrittenRun(store, "s1", "run-2").write(STARTED)
    assert runs.latest(log, "t1") == "run-2"
    assert runs.latest(log, "t2") == ""
    # A session that was removed and made again has another log.
    log.unlink()
    WrittenRun(store, "s1", "run-3").write(STARTED)
    assert runs.latest(log, "t1") == "run-3"
