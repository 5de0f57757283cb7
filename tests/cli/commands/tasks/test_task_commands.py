"""`agent task` and its relatives, with the real program, a real queue and a real worker."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from cli.commands.tasks.worker import DRAINING
from tests.cli.commands.tasks.worker_process import run_worker, until, wait_for_line
from tests.cli.terminal_user import User, composer_reply, lead_call, lead_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
SLOW = ("--set", "command_timeout_s=900")


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(home=tmp_path, environ={"AGENT_PLANNING": "auto", "RETRY_DELAY_SECONDS": "0"})


def create(user: User, *replies: object, flags: tuple[str, ...] = (), prompt: str = "do it") -> str:
    model = user.script(*replies)
    created = user.agent("task", "create", prompt, "--model", model, "--json", *flags)
    assert created.exit_code == 0, created.stderr
    return str(created.document["task_id"])


def show(user: User, task_id: str) -> dict[str, object]:
    return user.agent("task", "show", task_id, "--json").document


def test_a_new_task_says_where_it_will_run_and_outlives_the_process(user: User) -> None:
    created = user.agent("task", "create", "count", "--json")
    document = created.document
    expected = {"status": "scheduled", "executor_url": "local:", "container_id": None}
    assert {key: document[key] for key in expected} == expected
    assert document["session_id"]
    assert show(user, str(document["task_id"]))["status"] == "queued"
    assert str(document["task_id"]) in user.agent("task", "list").stdout
    assert user.agent("task").stdout == user.agent("task", "list").stdout


def test_a_worker_completes_what_is_queued_and_the_answer_stays(user: User) -> None:
    ids = [create(user, lead_reply("Done."), prompt=f"number {number}") for number in range(3)]
    worked = user.agent("worker", "--once")
    assert worked.exit_code == 0
    assert "3 tasks ended here" in worked.stderr
    assert [show(user, task_id)["status"] for task_id in ids] == ["completed"] * 3
    page = user.agent("task", "show", ids[0]).stdout
    assert "Done." in page
    assert json.loads(user.agent("stats", "--json").stdout)["tasks"]["completed"] == 3


def test_all_events_and_log_lines_of_a_task_share_its_trace(user: User) -> None:
    task_id = create(user, lead_reply("Done."))
    user.agent("worker", "--once")
    task = show(user, task_id)
    lines = user.agent("task", "logs", task_id, "--json").events
    assert {line["trace_id"] for line in lines} == {task["trace_id"]}
    assert lines[0]["event"] == "task.created"
    assert user.agent("task", "logs", task_id).stdout.endswith(" task.completed\n")
    assert {"task.started", "init", "result", "task.completed"} <= {str(line["event"]) for line in lines}
    log = user.data / "sessions" / str(task["session_id"]) / "events.jsonl"
    first = json.loads(log.read_text().splitlines()[0])
    assert (first["type"], first["task_id"], first["trace_id"]) == ("init", task_id, task["trace_id"])


def test_a_failed_task_is_tried_three_times_and_can_be_retried(user: User) -> None:
    task_id = create(user)
    assert user.agent("worker", "--once").exit_code == 0
    task = show(user, task_id)
    assert (task["status"], task["attempt"]) == ("failed", 3)
    assert "scripted model" in str(task["error"])
    assert "Exception" not in user.agent("task", "logs", task_id).stdout
    assert user.agent("task", "retry", task_id).exit_code == 0
    assert show(user, task_id)["status"] == "queued"


def test_unknown_tasks_are_errors(user: User) -> None:
    for command in ("show", "cancel", "retry", "logs"):
        result = user.agent("task", command, "nothing")
        assert result.exit_code == 42
        assert "there is no task 'nothing'" in result.stderr
    assert user.agent("task", "create", " ").exit_code == 42
    assert user.agent("task", "create", "x", "--at", "yesterday").exit_code == 2
    assert user.agent("task", "create", "x", "--at", "2020-01-01").exit_code == 2
    assert user.agent("task", "create", "x", "--at", "23:00", "--nightly").exit_code == 2
    assert user.agent("worker", "--modes", "sometimes").exit_code == 2
    assert user.agent("worker", "--once", "--drain").exit_code == 2


WRONG = (
    (("--cron", "nonsense"), "of five fields"),
    (("--cron", "* * * * * *"), "of five fields"),
    (("--cron", "0 2 * * *", "--zone", "Mars/Base"), "there is no time zone"),
    (("--priority", "101"), "--priority"),
    (("--branch", "main"), "--branch needs --repo"),
    (("--repo", "nowhere"), "neither a URL nor an existing folder"),
    (("--callback-url", "example.org"), "--callback-url: expected a URL"),
    (("--set", "max_trns=3"), "unknown setting max_trns, did you mean max_turns?"),
    (("--set", "max_turns=many"), "max_turns: expected a whole number"),
    (("--model", "script:nowhere.jsonl"), "there is no such file"),
    (("--yes",), "--yes needs --rehearse"),
)


def test_what_no_run_could_use_is_refused_before_the_night(user: User) -> None:
    for flags, message in WRONG:
        result = user.agent("task", "create", "x", *flags)
        assert (result.exit_code, message in result.stderr) == (2, True), (flags, result.stderr)
    assert "there is no skill 'x'" in user.agent("task", "create", "x", "--skill", "x").stderr
    assert "see `agent task create --help`" in user.agent("task", "create", "x", "--priority", "x").stderr
    assert user.agent("task", "list").stdout == "(no tasks)\n"


def test_a_second_task_of_a_session_sees_the_first_one(user: User) -> None:
    first = create(user, lead_reply("The word is tulip."))
    user.agent("worker", "--once")
    session = str(show(user, first)["session_id"])
    second = create(user, lead_reply("It was tulip."), flags=("--session", session), prompt="which word was it?")
    user.agent("worker", "--once")
    assert show(user, second)["answer"] == "It was tulip."
    assert "The word is tulip." in user.agent("sessions", "show", session).stdout
    listed = json.loads(user.agent("task", "list", "--session", session, "--json").stdout)
    assert len(listed) == 2


def test_a_task_at_a_time_or_at_night_waits(user: User) -> None:
    later = create(user, flags=("--at", "2099-12-31T23:00Z"))
    night = create(user, flags=("--nightly",))
    window = {"TASK_PULL_NIGHTLY_ENABLED": "false"}
    assert "0 tasks ended here" in user.agent("worker", "--once", **window).stderr
    assert show(user, later)["next_run_time"] == "2099-12-31T23:00:00.000Z"
    assert show(user, night)["status"] == "queued"
    assert "TASK_PULL_NIGHTLY_START_HOUR" in user.agent("worker", TASK_PULL_NIGHTLY_START_HOUR="25").stderr


def test_a_question_waits_for_its_answer(user: User) -> None:
    task_id = create(user, lead_call("ask_user", question="Which color?", options=["red", "blue"]), lead_reply("Fine."))
    with run_worker(user) as worker:
        until(lambda: "Which color?" in user.agent("questions", "list").stdout)
        assert show(user, task_id)["waiting"] == 1
        answered = user.agent("task", "answer", task_id, "blue")
        assert answered.exit_code == 0, answered.stderr
        until(lambda: show(user, task_id)["status"] == "completed")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    log = user.data / "sessions" / str(show(user, task_id)["session_id"]) / "events.jsonl"
    assert '"answer": "blue"' in log.read_text()
    assert user.agent("questions").stdout == "(no questions)\n"


def test_a_question_that_nobody_answers_is_never_a_yes(user: User) -> None:
    task_id = create(
        user,
        lead_call("run_command", command="git push origin main"),
        {"match": {"purpose": "lead", "contains": "nobody has answered in time"}, "text": "Not pushed."},
    )
    worked = user.agent("worker", "--once", QUESTION_TIMEOUT_SECONDS="1")
    assert worked.exit_code == 0
    log = (user.data / "sessions" / str(show(user, task_id)["session_id"]) / "events.jsonl").read_text()
    assert '"decision": "deny"' in log
    assert "Not pushed." in log


def test_an_approval_is_given_with_the_exact_command(user: User) -> None:
    task_id = create(user, lead_call("run_command", command="git push origin main"), lead_reply("Tried."))
    with run_worker(user) as worker:
        until(lambda: "git push origin main" in user.agent("questions", "list").stdout)
        assert user.agent("task", "approve", task_id, "--edit", "echo instead", "--remark", "not now").exit_code == 0
        until(lambda: show(user, task_id)["status"] != "running")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    log = (user.data / "sessions" / str(show(user, task_id)["session_id"]) / "events.jsonl").read_text()
    assert '"edited_command": "echo instead"' in log


def test_canceling_ends_the_processes_of_a_task(user: User) -> None:
    task_id = create(user, lead_call("run_command", command="sleep 987"), lead_reply("Slept."), flags=SLOW)
    with run_worker(user) as worker:
        until(lambda: _sleepers())
        assert user.agent("task", "cancel", task_id).exit_code == 0
        until(lambda: show(user, task_id)["status"] == "canceled")
        until(lambda: not _sleepers())
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0


def _sleepers() -> str:
    return subprocess.run(["pgrep", "-f", "sleep 987"], capture_output=True, text=True).stdout


def test_over_its_time_limit_a_task_has_failed_and_its_work_is_ended(user: User) -> None:
    task_id = create(user, lead_call("run_command", command="sleep 986"), lead_reply("Slept."), flags=SLOW)
    user.agent("worker", "--once", TASK_TIMEOUT_SECONDS="3")
    task = show(user, task_id)
    assert (task["status"], task["exit_code"], task["attempt"]) == ("failed", 124, 1)
    assert "time limit of 3 s" in str(task["error"])


def test_a_second_signal_gives_the_work_back(user: User) -> None:
    task_id = create(user, lead_call("ask_user", question="Which color?"), lead_reply("Fine."))
    with run_worker(user) as worker:
        until(lambda: show(user, task_id)["waiting"] == 1)
        worker.send_signal(signal.SIGTERM)
        wait_for_line(worker, DRAINING)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    assert show(user, task_id)["status"] == "queued"
    # The question is still there, and its answer is for the run that goes on.
    assert "Which color?" in user.agent("questions", "list").stdout
    assert user.agent("task", "answer", task_id, "blue").exit_code == 0
    with run_worker(user, "--once") as other:
        assert other.wait(120) == 0
    assert show(user, task_id)["answer"] == "Fine."


def test_a_killed_worker_leaves_nothing_running_and_another_goes_on(user: User) -> None:
    task_id = create(
        user,
        plan(step("a"), step("b", "a")),
        step_call("a", "run_command", command="echo once >> effects"),
        step_reply("a", "Written."),
        step_call("b", "ask_user", question="Go on?"),
        step_reply("b", "Gone on."),
        composer_reply("All done."),
        flags=("--set", "planning=always"),
    )
    with run_worker(user) as worker:
        until(lambda: show(user, task_id)["waiting"] == 1)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(60)
    # Nobody works on it now, and still the answer is not lost: the resumed run asks the same, and gets it.
    answered = user.agent("task", "answer", task_id, "yes")
    assert answered.exit_code == 0, answered.stderr
    with run_worker(user, "--once") as other:
        assert other.wait(120) == 0
    assert show(user, task_id)["status"] == "completed"
    effects = user.data / "sessions" / str(show(user, task_id)["session_id"]) / "workspace" / "effects"
    assert effects.read_text() == "once\n"


def test_drain_waits_for_the_workers_of_this_machine(user: User) -> None:
    assert "no worker runs" in user.agent("worker", "--drain").stderr
    with run_worker(user) as worker:
        until(lambda: json.loads(user.agent("stats", "--json").stdout)["workers"])
        drained = user.agent("worker", "--drain")
        assert drained.exit_code == 0
        assert "finishes its tasks" in drained.stderr
        assert worker.wait(60) == 0


def test_drain_names_a_task_that_waits_for_an_answer(user: User) -> None:
    task_id = create(user, lead_call("ask_user", question="Which color?"), lead_reply("Fine."))
    with run_worker(user) as worker:
        until(lambda: show(user, task_id)["waiting"] == 1)
        command = user.command("worker", "--drain")
        drain = subprocess.Popen(
            command, env=user.environment(), cwd=user.home, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        with drain:
            wait_for_line(drain, f"{task_id} waits for an answer: see agent questions list")
            assert user.agent("worker", "--drain").exit_code == 0
            assert (worker.wait(120), drain.wait(120)) == (0, 0)
    assert show(user, task_id)["status"] == "queued"


def test_schedules_are_made_paused_run_and_removed(user: User) -> None:
    made = user.agent(
        "task", "create", "tidy up", "--cron", "30 2 * * 1-5", "--zone", "Europe/Berlin", "--name", "tidy"
    )
    assert made.exit_code == 0, made.stderr
    assert "tidy" in user.agent("schedules", "list").stdout
    assert user.agent("schedules", "pause", "tidy").exit_code == 0
    assert "paused" in user.agent("schedules").stdout
    assert user.agent("schedules", "resume", "tidy").exit_code == 0
    task_id = user.agent("schedules", "run-now", "tidy").stdout.strip()
    assert task_id.startswith("tidy@")
    assert json.loads(user.agent("task", "list", "--schedule", "tidy", "--json").stdout)[0]["schedule"] == "tidy"
    [schedule] = json.loads(user.agent("schedules", "list", "--json").stdout)
    assert (schedule["last_task_id"], schedule["last_status"]) == (task_id, "queued")
    assert user.agent("schedules", "rm", "tidy").exit_code == 0
    assert user.agent("schedules", "rm", "tidy").exit_code == 42


def test_a_rehearsal_finds_what_a_task_needs_and_the_run_has_nothing_more(user: User) -> None:
    (user.home / "project").mkdir()
    (user.home / "project" / "kept").write_text("as it was")
    replies = (
        lead_call("run_command", command="rm kept; git push origin main"),
        lead_call("ask_user", question="Which branch?"),
        lead_reply("Pushed."),
    )
    flags = ("--nightly", "--rehearse", "-C", str(user.home / "project"))
    refused = user.agent("task", "create", "push", "--model", user.script(*replies), *flags)
    assert refused.exit_code == 57
    assert "git push" in refused.stderr
    assert "Which branch?" in refused.stderr
    assert (user.home / "project" / "kept").read_text() == "as it was"
    assert user.agent("task", "list").stdout == "(no tasks)\n"
    task_id = create(user, *replies, flags=("--rehearse", "--yes", "-C", str(user.home / "project")))
    assert user.agent("worker", "--once").exit_code == 0
    task = show(user, task_id)
    log = (user.data / "sessions" / str(task["session_id"]) / "events.jsonl").read_text()
    assert '"type": "manifest"' in log
    assert "Nobody has answered in time" in log
    assert "there is no question" not in str(task["error"])
    assert not (user.home / "project" / "kept").exists()


def test_a_rehearsed_plan_is_enough_for_the_night(user: User) -> None:
    project = user.home / "project"
    project.mkdir()
    model = f"script:{Path.cwd() / 'examples' / 'two-steps.jsonl'}"
    flags = ("--model", model, "--rehearse=plan", "--yes", "--json", "-C", str(project))
    created = user.agent("task", "create", "count to three in a file", *flags)
    assert "numbers.txt" in created.stderr
    assert user.agent("worker", "--once").exit_code == 0
    task = show(user, str(created.document["task_id"]))
    assert (task["status"], task["error"]) == ("completed", "")
    assert (project / "numbers.txt").read_text() == "one\ntwo\nthree\n"


def test_without_the_extra_it_says_what_to_install(user: User, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "dbos.py").write_text("raise ModuleNotFoundError('no', name='dbos')")
    environ = {**user.environment(), "PYTHONPATH": f"{tmp_path / 'hidden'}:{user.environment()['PYTHONPATH']}"}
    command = user.command("task", "list")
    done = subprocess.run(command, env=environ, cwd=user.home, capture_output=True, text=True)
    assert done.returncode == 52
    assert "pip install 'windlass[queue]'" in done.stderr
