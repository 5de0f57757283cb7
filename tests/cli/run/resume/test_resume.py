"""Resuming after a kill, a signal or a limit, in the same session or a copy, without repeating finished work."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.execution.step.step_result import MASKED_SECRET
from cli.run.progress import CACHE_NOTES
from cli.run.resume_target import FINISHED, forked_text
from tests.cli.terminal_user import User, answer, composer_reply, plan, step, step_call, step_reply
from tests.docs.grammar import broken_rules
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"
STREAM = ("--output-format", "stream-json")
UNKNOWN = "Unknown: the run was stopped while this call ran"


def run_until(
    user: User, *words: str, at: Callable[[dict[str, object]], bool], by: int = signal.SIGKILL, stdin: str = ""
) -> list[dict[str, object]]:
    """Start a run, send a signal at an event, and return all its events."""
    events: list[dict[str, object]] = []
    with subprocess.Popen(
        user.command(*words, *STREAM),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=user.environment(),
        cwd=user.home,
        text=True,
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(stdin)
        process.stdin.close()
        for line in process.stdout:
            events.append(json.loads(line))
            if at(events[-1]):
                process.send_signal(by)
                break
        events += [json.loads(line) for line in process.stdout if line.endswith("\n")]
        process.wait(30)
    return events


def is_event(kind: str, step_id: str | None = None) -> Callable[[dict[str, object]], bool]:
    return lambda event: event["type"] == kind and event.get("step_id") == step_id


def two_steps(user: User, command: str = "sleep 60") -> str:
    """Script a run whose first step writes a line and whose second step hangs."""
    return user.script(
        plan(step("a"), step("b", "a")),
        step_call("a", "run_command", command="echo a >> out.txt"),
        step_reply("a", "a is done"),
        step_call("b", "run_command", command=command),
    )


def read_output_file(user: User, session: str = "s") -> str:
    return (user.data / "sessions" / session / "workspace/out.txt").read_text()


def step_caches(events: list[dict[str, object]]) -> dict[object, object]:
    return {event["step_id"]: event["cache"] for event in events if event["type"] == "step.started"}


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGKILL, None), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_is_resumed_without_repeating_finished_steps(
    user: User, number: int, exit_code: int | None
) -> None:
    model = two_steps(user)
    stopped = run_until(
        user, "run", "do it", "--model", model, "--session", "s", at=is_event("tool.started", "b"), by=number
    )
    assert stopped[-1].get("exit_code") == exit_code
    user.script(
        step_call("b", "run_command", command="echo b >> out.txt"), step_reply("b", "b"), composer_reply("All is done.")
    )
    ended = user.agent("resume", *STREAM)
    assert (ended.exit_code, ended.events[-1]["result"]) == (0, "All is done."), ended.stderr
    assert (ended.events[0]["resumes"], ended.events[1]["content"]) == (stopped[0]["run_id"], "do it")
    assert step_caches(ended.events) == {"a": "hit", "b": "resumed"}
    assert (read_output_file(user), broken_rules(ended.events)) == ("a\nb\n", [])


def test_the_model_learns_that_the_outcome_of_an_interrupted_call_is_unknown(user: User) -> None:
    run_until(user, "run", "do it", "--model", two_steps(user), "--session", "s", at=is_event("tool.started", "b"))
    match = {"purpose": "step", "step": "b", "contains": UNKNOWN}
    user.script({"match": match, "text": "b may be done"}, composer_reply("Done."))
    assert user.agent("resume").stdout == "Done.\n"


def test_a_finished_run_has_nothing_to_resume(user: User) -> None:
    ended = user.agent("run", "hi", "--model", HELLO, *STREAM, AGENT_PLANNING="auto")
    for words in (("resume", str(ended.events[0]["run_id"])), ("resume",), ("run", "-c")):
        again = user.agent(*words, AGENT_PLANNING="auto")
        assert (again.exit_code, again.stdout) == (2, ""), again
    assert FINISHED in user.agent("resume", str(ended.events[0]["run_id"])).stderr


def test_a_run_is_found_by_prefix_and_the_last_one_by_default(user: User) -> None:
    for name in ("first", "second"):
        run_until(user, "run", name, "--model", two_steps(user), "--session", name, at=is_event("step.started", "a"))
    first = json.loads((user.data / "sessions/first/events.jsonl").read_text().splitlines()[0])["run_id"]
    user.script(
        step_call("a", "run_command", command="echo a > out.txt"),
        step_reply("a", "a"),
        step_reply("b", "b"),
        composer_reply("ok"),
    )
    ended = user.agent("resume", str(first)[:-2], *STREAM)
    assert (ended.exit_code, ended.events[1]["content"], ended.events[0]["session_id"]) == (0, "first", "first")
    user.script(
        step_call("a", "run_command", command="echo a > out.txt"),
        step_reply("a", "a"),
        step_reply("b", "b"),
        composer_reply("ok"),
    )
    ended = user.agent("resume", *STREAM)
    assert (ended.exit_code, ended.events[1]["content"]) == (0, "second")
    assert user.agent("resume", "run-").exit_code == 42
    assert user.agent("resume", "nonsense").exit_code == 42


def test_folder_model_and_context_are_inherited(user: User) -> None:
    folder = user.home / "project"
    folder.mkdir()
    model = two_steps(user)
    flags = ("--model", model, "-C", str(folder), "--session", "s")
    run_until(user, "run", "do it", *flags, at=is_event("tool.started", "b"), stdin="the piped text")
    with (folder / "out.txt").open("w") as file:
        file.write("a\nb\n")
    user.script({**step_reply("b", "b"), "match": {"step": "b"}}, composer_reply("Done."), name="other.jsonl")
    ended = user.agent("resume", "--model", f"script:{user.home}/other.jsonl", *STREAM)
    assert (ended.exit_code, ended.events[0]["cwd"]) == (0, str(folder)), ended.stderr
    assert step_caches(ended.events) == {"a": "hit", "b": "resumed"}, "another model finds the same results"
    events = [json.loads(line) for line in (user.data / "sessions/s/events.jsonl").read_text().splitlines()]
    (context,) = [event["content"] for event in events if event.get("role") == "context"]
    assert context.startswith(f"<environment>\nfolder: {folder}\n")
    assert context.endswith("</environment>\n\n<stdin>\nthe piped text\n</stdin>")


def test_a_run_can_be_stopped_and_resumed_many_times(user: User) -> None:
    names = [f"s{number}" for number in range(4)]
    steps = [step(name, *names[:number][-1:]) for number, name in enumerate(names)]
    work = {
        name: step_call(name, "run_command", command=f"grep -qx {name} out.txt || echo {name} >> out.txt")
        for name in names
    }
    user.script(plan(*steps), *work.values(), step_reply("s0", "s0"))
    run_until(user, "run", "go", "--model", f"script:{user.home}/script.jsonl", "--session", "s",
            at=is_event("step.started", "s1"))  # fmt: skip
    for number in (1, 2, 3):
        rest = names[number:]
        user.script(*(work[name] for name in rest), *(step_reply(name, name) for name in rest), composer_reply("Done."))
        if number < 3:
            run_until(user, "resume", at=is_event("step.completed", names[number]))
    assert user.agent("resume").exit_code == 0
    assert read_output_file(user).split() == names
    runs = json.loads((user.data / "sessions/s/SESSION.json").read_text())["runs"]
    assert [run["resumes"] for run in runs] == [None, *(run["run_id"] for run in runs[:-1])]


def test_a_run_stopped_while_planning_is_planned_again(user: User) -> None:
    model = user.script({**answer("late"), "delay_ms": 60_000})
    run_until(user, "run", "do it", "--model", model, at=is_event("message"))
    user.script(answer("forty-two"))
    ended = user.agent("resume")
    assert (ended.exit_code, ended.stdout) == (0, "forty-two\n")


def test_the_output_schema_is_inherited(user: User) -> None:
    schema = user.home / "schema.json"
    schema.write_text('{"type": "object", "required": ["n"]}')
    flags = ("--output-schema", str(schema))
    run_until(user, "run", "do it", "--model", two_steps(user), *flags, at=is_event("tool.started", "b"))
    schema.unlink()
    user.script(step_reply("b", "b"), composer_reply('{"n": 3}'))
    ended = user.agent("resume", "--output-format", "json")
    assert (ended.exit_code, ended.document["structured_output"]) == (0, {"n": 3})


def test_a_new_task_continues_the_last_session_with_its_history_and_folder(user: User) -> None:
    folder = user.home / "project"
    folder.mkdir()
    planned = user.script(answer("Hello."))
    user.agent("run", "first", "--model", planned, "--session", "old")
    user.agent("run", "second", "--model", planned, "--session", "new", "-C", str(folder))
    ended = user.agent("run", "-c", "and then", "--model", HELLO, *STREAM)
    assert (ended.events[0]["session_id"], ended.events[0]["cwd"]) == ("new", str(folder))
    assert "asked: second" in str(ended.events[1]["content"])
    assert "resumes" not in ended.events[0]
    again = user.agent("run", "-r", "old", "once more", "--model", HELLO, *STREAM)
    assert again.events[0]["session_id"] == "old"
    by_run = user.agent("run", "-r", str(again.events[0]["run_id"]), "more", "--model", HELLO, *STREAM)
    assert by_run.events[0]["session_id"] == "old"


@pytest.mark.parametrize("words", [("run", "-c"), ("run", "-r", "s"), ("resume", "s")])
def test_without_a_task_the_unfinished_run_is_resumed(user: User, words: tuple[str, ...]) -> None:
    run_until(user, "run", "do it", "--model", two_steps(user), "--session", "s", at=is_event("tool.started", "b"))
    user.script(step_reply("b", "b"), composer_reply("Done."))
    ended = user.agent(*words, *STREAM)
    assert (ended.exit_code, ended.events[1]["content"], step_caches(ended.events)["a"]) == (0, "do it", "hit")


@pytest.mark.parametrize("words", [("resume", "--fork"), ("run", "-c", "--fork"), ("run", "-r", "s", "--fork")])
def test_a_fork_continues_in_a_copy_and_leaves_the_original_unchanged(user: User, words: tuple[str, ...]) -> None:
    run_until(user, "run", "do it", "--model", two_steps(user), "--session", "s", at=is_event("tool.started", "b"))
    before = {path: path.read_bytes() for path in (user.data / "sessions/s").rglob("*") if path.is_file()}
    user.script(
        step_call("b", "run_command", command="echo fork >> out.txt"), step_reply("b", "b"), composer_reply("Done.")
    )
    ended = user.agent(*words, *STREAM)
    fork = str(ended.events[0]["session_id"])
    assert (ended.exit_code, fork != "s", step_caches(ended.events)["a"]) == (0, True, "hit")
    assert read_output_file(user, fork).endswith("fork\n")
    after = {path: path.read_bytes() for path in (user.data / "sessions/s").rglob("*") if path.is_file()}
    # Reading a session locks it and may refresh its summary.
    traces = {user.data / "sessions/s" / name for name in ("lock", "SESSION.json")}
    assert {path for path in after if after[path] != before.get(path)} <= traces
    assert forked_text("s", fork) in ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "x", "--fork"),
        ("run", "-c", "-r", "s", "x"),
        ("run", "-c", "--session", "s", "x"),
        ("run", "-c", "--ephemeral", "x"),
        ("resume",),
        ("run", "-c"),
        ("run", "-c", "x"),
    ],
)
def test_contradictory_session_flags_are_usage_errors(user: User, words: tuple[str, ...]) -> None:
    ended = user.agent(*words, "--model", HELLO)
    assert (ended.exit_code, ended.stdout) == (2, ""), ended


def test_a_running_run_is_not_resumed(user: User) -> None:
    run_until(user, "run", "cut off", "--model", two_steps(user), "--session", "s", at=is_event("tool.started", "b"))
    model = user.script({**answer("late"), "delay_ms": 60_000}, name="late.jsonl")
    with subprocess.Popen(
        user.command("run", "busy", "--model", model, "--session", "busy", *STREAM),
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=user.environment(), cwd=user.home,
    ) as process:  # fmt: skip
        assert process.stdout
        process.stdout.readline()
        user.script(step_reply("b", "b"), composer_reply("Done."))
        ended = user.agent("resume", *STREAM)
        os.kill(process.pid, signal.SIGKILL)
    assert (ended.exit_code, ended.events[1]["content"]) == (0, "cut off")


def test_progress_shows_which_steps_were_done_before(user: User) -> None:
    stopped = run_until(
        user, "run", "x", "--model", two_steps(user), "--session", "s", at=is_event("tool.started", "b")
    )
    user.script(step_reply("b", "b"), composer_reply("Done."))
    lines = user.agent("resume").stderr.splitlines()
    assert f"resuming {stopped[0]['run_id']}" in lines
    assert f"a: Title of a{CACHE_NOTES['hit']}" in lines and f"b: Title of b{CACHE_NOTES['resumed']}" in lines


def test_a_missing_folder_is_reported(user: User, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    run_until(user, "run", "x", "--model", two_steps(user), "-C", str(folder), at=is_event("tool.started", "b"))
    (folder / "out.txt").unlink(missing_ok=True)
    folder.rmdir()
    ended = user.agent("resume")
    assert (ended.exit_code, "is not an existing folder" in ended.stderr) == (42, True)


def test_a_secret_in_the_task_does_not_invalidate_finished_steps(user: User) -> None:
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    first = step("a", instruction=f"Use {secret}")
    model = user.script(
        plan(first, step("b", "a")), step_reply("a", "used"), step_call("b", "run_command", command="sleep 60")
    )
    run_until(user, "run", f"use {secret}", "--model", model, "--session", "s", at=is_event("tool.started", "b"))
    user.script(step_reply("b", "b"), composer_reply("Done."))
    ended = user.agent("resume", *STREAM)
    assert (ended.exit_code, step_caches(ended.events)) == (0, {"a": "hit", "b": "resumed"}), ended.stderr
    stored = [path.read_bytes() for path in user.data.rglob("*") if path.is_file()]
    assert not [data for data in stored if secret.encode() in data]


def test_a_plan_only_run_cannot_be_resumed(user: User) -> None:
    model = user.script({**answer("late"), "delay_ms": 60_000})
    stopped = run_until(user, "plan", "do it", "--model", model, "--session", "s", at=is_event("message"))
    assert stopped[0]["plan_only"] is True
    for words in (("resume",), ("resume", "s"), ("resume", str(stopped[0]["run_id"]))):
        assert user.agent(*words).exit_code == 2


def test_a_refused_call_is_retried_once_it_is_allowed(user: User) -> None:
    curl = step_call("a", "run_command", command="curl -V")
    model = user.script(
        plan(step("a"), step("b", "a")),
        curl,
        step_reply("a", "not allowed"),
        step_reply("b", "b1"),
        composer_reply("x"),
    )
    refused = user.agent("run", "go", "--model", model, "--deny", "curl", *STREAM)
    assert (refused.exit_code, refused.events[-1]["permission_denials"]) == (57, ["curl -V"])
    user.script(curl, step_reply("a", "it is curl 8"), step_reply("b", "b2"), composer_reply("It is curl 8."))
    ended = user.agent("resume", "--allow", "curl", *STREAM)
    assert (ended.exit_code, ended.events[-1]["permission_denials"]) == (0, []), ended.stderr
    # A step that depends on the refused one runs again with the new result.
    assert step_caches(ended.events) == {"a": "resumed", "b": "miss"}
    assert broken_rules(ended.events) == []


def test_a_step_that_ran_out_of_turns_is_resumed(user: User) -> None:
    model = user.script(
        plan(step("a")), *[step_call("a", "run_command", command=f"echo {n} >> out.txt") for n in range(2)]
    )
    ran_out = user.agent("run", "go", "--model", model, "--session", "s", "--max-turns", "2", *STREAM)
    assert (ran_out.exit_code, ran_out.events[-1]["subtype"]) == (53, "error_limit")
    user.script(step_reply("a", "done"))
    ended = user.agent("resume", "--max-turns", "2", *STREAM)
    assert (ended.exit_code, ended.events[-1]["result"], step_caches(ended.events)) == (0, "done", {"a": "resumed"})
    assert read_output_file(user) == "0\n1\n"


def test_steps_beyond_the_limit_run_when_it_is_raised(user: User) -> None:
    steps = [step("a"), step("b"), step("c", "b")]
    model = user.script(plan(*steps), step_reply("a", "A"), step_reply("b", "B"), composer_reply("Not all."))
    assert user.agent("run", "go", "--model", model, "--max-steps", "2").exit_code == 53
    user.script(composer_reply("Still not all."))
    assert user.agent("resume", "--max-steps", "2").exit_code == 53
    user.script(step_reply("c", "C"), composer_reply("All."))
    ended = user.agent("resume", *STREAM)
    assert (ended.exit_code, ended.events[-1]["result"]) == (0, "All."), ended.stderr
    assert step_caches(ended.events) == {"a": "hit", "b": "hit", "c": "miss"}


def test_a_call_with_a_redacted_secret_is_not_repeated(user: User) -> None:
    steps = """
        [[steps]]
        id = "a"
        tool = "run_command"
        args = { command = "test -f go" }
        [[steps]]
        id = "b"
        depends_on = ["a"]
        tool = "run_command"
        args = { command = "echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 >> out.txt" }
    """
    (user.home / "plan.toml").write_text(steps)
    assert user.agent("run", "--plan", "plan.toml", "--session", "s").exit_code == 54
    workspace = user.data / "sessions/s/workspace"
    (workspace / "go").touch()
    ended = user.agent("resume", *STREAM)
    assert (ended.exit_code, ended.events[-1]["steps"]) == (1, {"ok": 1, "failed": 1, "skipped": 0})
    assert MASKED_SECRET in str(ended.events[-1]["error"])
    assert (list(workspace.iterdir()), broken_rules(ended.events)) == ([workspace / "go"], [])


def test_a_resumed_run_honors_require_verified(user: User) -> None:
    model = two_steps(user)
    run_until(user, "run", "do it", "--model", model, "--session", "s", at=is_event("tool.started", "b"))
    user.script(step_reply("b", "b"), composer_reply("Done."))
    assert user.agent("resume", "--require-verified", "--replan", "never").exit_code == 58
