"""A task that changes machines: each has a data folder of its own, they share a PostgreSQL database and a bucket."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands.tasks.worker import DRAINING
from tests.agent.service.workspaces.s3_server import run_s3_server
from tests.cli.commands.tasks.test_task_commands import create, show
from tests.cli.commands.tasks.worker_process import run_worker, until, wait_for_line
from tests.cli.terminal_user import User, composer_reply, plan, step, step_call, step_reply
from tests.crash.queue_campaign import repeated_steps
from tests.postgres_server import run_postgres

pytestmark = pytest.mark.slow


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[User, User]]:
    with run_postgres() as server, run_s3_server("sessions") as bucket:
        shared = {
            "DATABASE_URL": server.new_database(),
            "S3_BUCKET": bucket.bucket,
            "S3_ENDPOINT": bucket.endpoint,
            "S3_ACCESS_KEY": bucket.access_key,
            "S3_SECRET_KEY": bucket.secret_key,
            "TASK_CLAIM_LEASE_SECONDS": "3",
        }
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        yield User(home=tmp_path / "one", environ=shared), User(home=tmp_path / "two", environ=shared)


def test_a_task_goes_on_elsewhere_when_its_machine_is_drained_or_lost(machines: tuple[User, User]) -> None:
    one, two = machines
    task_id = create(
        one,
        plan(step("a"), step("b", "a")),
        step_call("a", "run_command", command="echo once >> effects"),
        step_reply("a", "Written."),
        step_call("b", "ask_user", question="Go on?"),
        step_reply("b", "Gone on."),
        composer_reply("All done."),
        flags=("--set", "planning=always"),
    )
    session = str(show(one, task_id)["session_id"])
    with run_worker(one) as worker:
        until(lambda: show(one, task_id)["waiting"] == 1)
        worker.send_signal(signal.SIGTERM)
        wait_for_line(worker, DRAINING)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(120) == 0
    folders = [user.data / "sessions" / session for user in machines]
    with run_worker(two) as worker:
        # The question of the first attempt is listed all the time: wait for that of the second.
        until(lambda: times_asked(folders[1] / "events.jsonl") == 2)
        assert (folders[1] / "workspace" / "effects").read_text() == "once\n"
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(60)
    assert one.agent("task", "answer", task_id, "yes").exit_code == 0
    with run_worker(one) as worker:
        until(lambda: show(one, task_id)["status"] == "completed")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(120) == 0
    assert (folders[0] / "workspace" / "effects").read_text() == "once\n"
    assert repeated_steps(folders[0] / "events.jsonl") == []
    assert show(two, task_id)["answer"] == "All done."


def times_asked(log: Path) -> int:
    return log.read_bytes().count(b'"question.asked"') if log.exists() else 0
