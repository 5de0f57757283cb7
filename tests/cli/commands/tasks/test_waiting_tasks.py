"""A task that waits for its user: what the worker says, what is shown, and which answers it takes."""

from pathlib import Path

import pytest

from tests.cli.commands.tasks.test_task_commands import create, show
from tests.cli.commands.tasks.worker_process import run_worker, until, wait_for_line
from tests.cli.terminal_user import User, lead_call, lead_reply

pytestmark = pytest.mark.slow


@pytest.fixture
def user(tmp_path: Path) -> User:
    (tmp_path / "project").mkdir()
    return User(home=tmp_path, environ={"AGENT_PLANNING": "auto", "RETRY_DELAY_SECONDS": "0"})


def test_a_worker_says_that_a_task_waits_for_an_answer_and_a_number_chooses_an_option(user: User) -> None:
    task_id = create(
        user, lead_call("ask_user", question="Which branch?", options=["main", "next"]), lead_reply("Fine.")
    )
    with run_worker(user, "--once") as worker:
        wait_for_line(worker, f"{task_id} waits for an answer: `agent task show {task_id}` shows what it asks")
        assert f"{task_id}  running, needs an answer" in user.agent("task", "list").stdout
        answered = user.agent("task", "answer", task_id, "2")
        assert "is answered with 'next'" in answered.stderr
        assert worker.wait(120) == 0
    log = user.data / "sessions" / str(show(user, task_id)["session_id"]) / "events.jsonl"
    assert '"answer": "next"' in log.read_text()


def test_an_approval_is_shown_as_in_the_terminal_and_a_file_change_cannot_be_edited(user: User) -> None:
    project = user.home / "project"
    task_id = create(
        user,
        lead_call("write_file", path="notes.txt", content="one\n"),
        lead_reply("Written."),
        flags=("-C", str(project)),
    )
    with run_worker(user, "--once") as worker:
        until(lambda: show(user, task_id)["waiting"] == 1)
        page = user.agent("questions", "list").stdout
        assert "  allow this?  write_file notes.txt\n" in page
        assert "because it changes a file in your folder" in page
        assert "1 + one" in page
        refused = user.agent("task", "approve", task_id, "--edit", "other.txt")
        assert refused.exit_code == 42
        assert "only a command can be edited" in refused.stderr
        assert user.agent("task", "approve", task_id).exit_code == 0
        assert worker.wait(120) == 0
    assert (project / "notes.txt").read_text() == "one\n"


def test_a_worker_that_gives_a_task_back_says_so_in_words(user: User) -> None:
    task_id = create(user, lead_call("ask_user", question="Which color?"), lead_reply("Fine."))
    with run_worker(user) as worker:
        wait_for_line(worker, "waits for an answer")
        worker.terminate()
        wait_for_line(worker, "no new tasks are started")
        worker.terminate()
        wait_for_line(worker, f"{task_id} returned to the queue: the worker ends")
        assert worker.wait(120) == 0
    assert "functools" not in user.agent("task", "logs", task_id).stdout
