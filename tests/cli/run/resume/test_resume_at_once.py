"""Resuming from the first moment on, and several times at once: nothing is lost, and nothing is done twice."""

import json

import pytest

from agent.sessions.store import SessionLock, SessionStore
from tests.cli.run.resume.test_resume import is_event, run_until
from tests.cli.run.test_busy_session import read_wait_message
from tests.cli.run.test_interruptions import start_run, wait_result, wait_until
from tests.cli.terminal_user import User, answer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("planning", ["auto", "always"])
def test_a_run_killed_as_soon_as_it_is_heard_of_can_be_resumed(user: User, planning: str) -> None:
    model = user.script(answer("42"), {"match": {"purpose": "lead"}, "text": "42"}, name="answer.jsonl")
    words = ("run", "what is it?", "--model", model, "--planning", planning, "--session", "s")
    run_until(user, *words, at=is_event("init"))
    log = [json.loads(line) for line in (user.data / "sessions/s/events.jsonl").read_bytes().splitlines()]
    assert [event["content"] for event in log if event.get("role") == "user"] == ["what is it?"]
    resumed = user.agent("resume", "s", "--set", f"planning={planning}")
    assert (resumed.exit_code, resumed.stdout) == (0, "42\n")


def test_a_log_that_ends_before_the_task_is_told_apart_from_finished_runs(user: User) -> None:
    model = user.script(answer("42"))
    assert user.agent("run", "x", "--model", model, "--session", "s").exit_code == 0
    log = user.data / "sessions/s/events.jsonl"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    (user.data / "sessions/s/SESSION.json").unlink()
    ended = user.agent("resume", "s")
    assert ended.exit_code == 2
    assert "was interrupted before its task was saved; there is nothing to resume" in ended.stderr


def test_a_resume_that_waited_does_not_repeat_the_call_that_another_one_reported(user: User) -> None:
    plan = user.home / "plan.toml"
    command = "echo once >> out.txt; sleep 60"
    plan.write_text(f'request = "x"\n[[steps]]\nid = "a"\ntool = "run_command"\nargs = {{ command = "{command}" }}\n')
    work = user.home / "work"
    work.mkdir()
    out = work / "out.txt"
    flags = ("--session", "s", "-C", str(work))
    killed = start_run(user, "run", "--plan", str(plan), *flags)
    wait_until(out.exists)
    killed.kill()
    wait_result(killed)
    held = SessionLock(SessionStore(user.data).folder_for("s"))
    resumes = [start_run(user, "resume", "s") for _ in range(4)]
    assert all("waiting for it to finish" in read_wait_message(process) for process in resumes)
    held.release()
    ended = [wait_result(process) for process in resumes]
    assert out.read_text() == "once\n"
    assert sorted(result.exit_code for result in ended) == [2, 2, 2, 54]
    told = [result.stderr for result in ended if result.exit_code == 2]
    assert all("was resumed meanwhile" in text for text in told)
