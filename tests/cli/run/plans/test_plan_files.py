"""`agent run --plan`, `agent plan --save` and `--edit`."""

import json
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.planning.plan_file import HINT
from cli.run.flag_checks import PLAN_SUFFIX_ERROR, PLANNER_UNUSED
from cli.run.plan_editor import EDIT_SAVED, EMPTY_PLAN, RETRY_PROMPT, too_many_steps
from cli.run.result_output import NO_PLAN
from cli.run.run_task import EDIT_NEEDS_TERMINAL
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import LIMIT_S, ProgramResult, User, answer, composer_reply, plan, step, step_reply

pytestmark = pytest.mark.slow
CALL = '[[steps]]\nid = "{id}"\ntool = "run_command"\nargs = {{ command = "{command}" }}\n'


def write(user: User, text: str, name: str = "plan.toml") -> str:
    (user.home / name).write_text(text)
    return name


def call(id: str, command: str, *after: str) -> str:
    return CALL.format(id=id, command=command) + f"depends_on = {json.dumps(after)}\n"


def types(ended: ProgramResult) -> list[object]:
    return [event["type"] for event in ended.events]


def test_a_plan_of_tool_calls_needs_no_model_key_or_task(user: User) -> None:
    file = write(user, call("hello", "echo hello > a.txt; echo made") + call("look", "cat a.txt", "hello"))
    ended = user.agent("run", "--plan", file, "--output-format", "stream-json")
    assert ended.exit_code == 0, ended.stderr
    init, result = ended.events[0], ended.events[-1]
    assert (init["model"], init["planner_model"]) == ("", "")
    assert result["result"] == "## echo hello > a.txt; echo made\n\nmade\n\n## cat a.txt\n\nhello"
    assert (result["num_turns"], result["model_usage"], result["steps"]) == (
        0,
        {},
        {"ok": 2, "failed": 0, "skipped": 0},
    )


def test_a_configured_model_is_not_called_for_a_plan_of_tool_calls(user: User) -> None:
    file = write(user, call("a", "echo a") + call("b", "echo b"))
    for model in ("openai/gpt-5", "script:/no/such/file"):
        ended = user.agent("run", "--plan", file, AGENT_MODEL=model, AGENT_PLANNER_MODEL=model)
        assert (ended.exit_code, ended.stdout) == (0, "## echo a\n\na\n\n## echo b\n\nb\n")


def test_the_answer_of_a_single_step_is_its_output(user: User) -> None:
    assert user.agent("run", "--plan", write(user, call("a", "printf one"))).stdout == "one\n"


def test_a_failed_step_reports_its_output_and_its_dependents_are_skipped(user: User) -> None:
    file = write(user, call("a", "echo broken; exit 3") + call("b", "echo b", "a") + call("c", "echo c"))
    ended = user.agent("run", "--plan", file, "--output-format", "json")
    assert (ended.exit_code, ended.document["steps"] and ended.document["subtype"]) == (54, "error_tool")
    assert "Exit 3: broken" in str(ended.document["result"]) and "needs a, which did not" in str(
        ended.document["result"]
    )
    assert [one["status"] for one in ended.document["step_results"]] == ["error", "skipped", "ok"]  # type: ignore[attr-defined]


def test_output_is_not_trimmed_without_a_model(user: User) -> None:
    ended = user.agent("run", "--plan", write(user, call("a", "seq 1 9000")))
    assert ended.stdout.split() == [str(number) for number in range(1, 9001)]


def test_a_plan_file_cannot_run_a_refused_command(user: User) -> None:
    ended = user.agent("run", "--plan", write(user, call("a", "git push")))
    assert (ended.exit_code, "--allow 'git push' would allow it" in ended.stdout) == (57, True)


def test_a_plan_without_a_model_does_not_wait_for_stdin(user: User) -> None:
    file = write(user, call("a", "echo a"))
    with subprocess.Popen(
        user.command("run", "--plan", file, "-q"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=user.home, env=user.environment(),
    ) as process:  # fmt: skip
        assert process.wait(LIMIT_S) == 0
        assert process.stdout and process.stdout.read() == b"a\n"


def test_tasks_and_calls_may_be_mixed(user: User) -> None:
    file = write(
        user, call("list", "echo 42") + '[[steps]]\nid = "think"\ninstruction = "Why?"\ndepends_on = ["list"]\n'
    )
    model = user.script(step_reply("think", "because"), composer_reply("It is 42, because."))
    ended = user.agent("run", "--plan", file, "--model", model, "--record", "tape.jsonl", stdin="from the pipe")
    assert (ended.exit_code, ended.stdout) == (0, "It is 42, because.\n")
    tape = (user.home / "tape.jsonl").read_text()
    assert "Your step: Why?" in tape and "from the pipe" in tape and '"purpose": "planner"' not in tape


def test_a_task_in_a_plan_file_needs_a_model(user: User) -> None:
    ended = user.agent("run", "--plan", write(user, '[[steps]]\ninstruction = "x"\n'))
    assert (ended.exit_code, "no model is set" in ended.stderr) == (41, True)


def test_a_model_named_by_every_step_is_enough(user: User) -> None:
    model = user.script(step_reply("a", "by its own model"))
    file = write(user, f'[[steps]]\nid = "a"\ninstruction = "x"\nmodel = "{model}"\n')
    assert user.agent("run", "--plan", file).stdout == "by its own model\n"


def test_a_plan_of_tool_calls_is_replanned_only_on_request(user: User) -> None:
    file = write(user, call("a", "exit 3"))
    model = user.script(
        plan(step("b", title="Another way")), step_reply("b", "done in another way"), composer_reply("done")
    )
    ended = user.agent("run", "--plan", file, "--model", model, "--replan", "surprise")
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (0, "done")
    for flags in ((), ("--replan", "never")):
        assert user.agent("run", "--plan", file, "--model", model, *flags).exit_code == 54
    ended = user.agent("run", "--plan", file, "--replan", "surprise")
    assert (ended.exit_code, "no model is set" in ended.stderr) == (41, True)


def test_a_run_without_a_model_is_resumed_without_one(user: User) -> None:
    file = write(user, call("a", "echo a >> log; cat log") + call("b", "test -e go && echo b >> log", "a"))
    (user.home / "work").mkdir()
    assert user.agent("run", "--plan", file, "-C", "work").exit_code == 54
    (user.home / "work" / "go").touch()
    ended = user.agent("resume")
    assert (ended.exit_code, (user.home / "work" / "log").read_text()) == (0, "a\nb\n"), ended.stderr
    assert ended.stdout.startswith("## echo a >> log; cat log\n\na\n\n##")


def test_the_argument_overrides_the_request_of_the_plan_file(user: User) -> None:
    file = write(user, 'request = "of the file"\n' + call("a", "true"), "nightly.toml")
    bare = write(user, call("a", "true"), "bare.toml")
    for words, path, request in ((("mine",), file, "mine"), ((), file, "of the file"), ((), bare, "bare")):
        ended = user.agent("run", *words, "--plan", path, "--output-format", "stream-json")
        assert [event["content"] for event in ended.events if event.get("role") == "user"] == [request]


def test_an_invalid_plan_file_runs_nothing(user: User) -> None:
    file = write(user, call("a", "touch ran") + call("b", "touch ran", "aa") + "[[steps]]\nx = 1\n")
    ended = user.agent("run", "--plan", file, "-C", ".")
    assert (ended.exit_code, ended.stdout, (user.home / "ran").exists()) == (42, "", False)
    assert f"error: plan.toml: line 11, step 3: unknown field x\nhint: {HINT}" in ended.stderr
    assert not list(user.data.glob("sessions/*"))


def test_an_invalid_plan_file_is_reported_as_json(user: User) -> None:
    for form in ("json", "stream-json"):
        ended = user.agent("run", "--plan", "none.toml", "--output-format", form)
        last = json.loads(ended.stdout) if form == "json" else ended.events[-1]
        assert (ended.exit_code, last["exit_code"], last["subtype"]) == (42, 42, "error_input")


def test_a_plan_longer_than_the_limit_runs_nothing(user: User) -> None:
    file = write(user, call("a", "touch ran") + call("b", "touch ran"))
    ended = user.agent("run", "--plan", file, "-C", ".", "--max-steps", "1")
    assert (ended.exit_code, (user.home / "ran").exists()) == (53, False)
    assert too_many_steps(2, 1) in ended.stderr and "--max-steps 2" in ended.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "x", "--plan", "plan.toml", "--planner-model", "m"), PLANNER_UNUSED),
        (("plan", "x", "--save", "plan.yaml"), PLAN_SUFFIX_ERROR),
        (("run", "x", "--edit"), EDIT_NEEDS_TERMINAL),
        (("plan", "--plan", "plan.toml", "--edit"), EDIT_NEEDS_TERMINAL),
    ],
)
def test_contradictory_flags_are_refused(user: User, words: tuple[str, ...], message: str) -> None:
    write(user, call("a", "true"))
    ended = user.agent(*words)
    assert (ended.exit_code, message in ended.stderr) == (2, True), ended.stderr


def test_a_plan_file_is_shown_without_a_model(user: User) -> None:
    file = write(user, call("a", "true") + '[[steps]]\nid = "b"\ninstruction = "Think."\ndepends_on = ["a"]\n')
    for words in (("plan", "--plan", file), ("run", "--plan", file, "--plan-only")):
        ended = user.agent(*words)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert ended.stdout.splitlines()[:2] == ["1 ─ ● a  true (call)", "2 ─ ● b  Think.  ← a"]


def test_the_json_document_has_the_graph_of_the_plan(user: User) -> None:
    model = user.script(plan(step("a"), step("b"), step("c", "b")))
    document = user.agent("plan", "x", "--model", model, "--output-format", "json").document
    assert document["graph"] == {"levels": [["a", "b"], ["c"]], "critical_path": ["b", "c"], "est_usd": 0.0}
    assert [one["est_usd"] for one in document["steps"]] == [0.0, 0.0, 0.0]  # type: ignore[attr-defined]
    assert document["result"] == "a  Title of a\nb  Title of b\nc  Title of c  (after b)"


@pytest.mark.parametrize("name", ["made.toml", "made.json"])
def test_a_saved_plan_can_be_run(user: User, name: str) -> None:
    model = user.script(plan(step("a", writes=["x"], expect="good"), step("b", "a", "gone")))
    ended = user.agent("plan", "do it", "--model", model, "--save", name)
    assert (ended.exit_code, "1 ─ ● a  Title of a" in ended.stdout) == (0, True)
    text = (user.home / name).read_text()
    saved: Mapping[str, object] = json.loads(text) if name.endswith("json") else tomllib.loads(text)
    assert saved == {
        "request": "do it",
        "steps": [
            {"id": "a", "title": "Title of a", "instruction": "Do a", "expect": "good", "writes": ["x"]},
            {"id": "b", "title": "Title of b", "instruction": "Do b", "depends_on": ["a"]},
        ],
    }
    model = user.script(step_reply("a", "A"), step_reply("b", "B"), composer_reply("done"))
    assert user.agent("run", "--plan", name, "--model", model).stdout == "done\n"


def test_no_plan_file_is_written_for_a_task_without_a_plan(user: User) -> None:
    ended = user.agent("plan", "2+2", "--model", user.script(answer("4")), "--save", "made.toml")
    assert (ended.exit_code, ended.stdout, (user.home / "made.toml").exists()) == (1, "4\n", False)
    assert f"made.toml was not written: {NO_PLAN}" in ended.stderr


def test_an_unwritable_plan_file_is_refused_before_planning(user: User) -> None:
    ended = user.agent("plan", "x", "--model", user.script(answer("4")), "--save", "no/such/folder/made.toml")
    assert ended.exit_code == 42


def test_a_final_step_that_only_answers_is_dropped(user: User) -> None:
    last = step("z", "a", title="Write the final answer", instruction="Say what was found.")
    ended = user.agent("run", "x", "--model", user.script(plan(step("a"), last), step_reply("a", "found")))
    assert (ended.exit_code, ended.stdout) == (0, "found\n")


def test_a_question_mark_in_the_task_does_not_ask_the_user(user: User) -> None:
    model = user.script(plan(step("s1")), step_reply("s1", "A readme."))
    ended = user.agent("run", "What is in README?", "--model", model, "--output-format", "stream-json")
    assert (ended.exit_code, "question.asked" in types(ended)) == (0, False)


def test_a_tool_call_planned_by_the_model_is_judged_like_any_other(user: User) -> None:
    planned = {"id": "a", "type": "tool", "tool": "run_command", "args": {"command": "git push"}}
    ended = user.agent("run", "x", "--model", user.script(plan(planned)), "--output-format", "json")
    assert (ended.exit_code, ended.document["permission_denials"]) == (57, ["git push"])


def editor(user: User, command: str) -> User:
    script = user.home / "editor.sh"
    script.write_text(f"#!/bin/sh\n{command}\n")
    script.chmod(0o755)
    return User(home=user.home, environ={"EDITOR": str(script)})


def test_a_plan_is_edited_before_it_runs(user: User) -> None:
    user = editor(user, """sed -i 's/Do a/Do it well/' "$1" """)
    model = user.script(plan(step("a"), step("b")), step_reply("a", "A"), step_reply("b", "B"), composer_reply("both"))
    terminal = PtyTerminal(user, "run", "x", "--model", model, "--edit", "--record", "tape.jsonl")
    code, shown = terminal.wait_exit()
    assert (code, "both" in shown) == (0, True)
    assert "Your step: Do it well" in (user.home / "tape.jsonl").read_text()


def test_an_invalid_edit_is_reopened_and_can_be_cancelled(user: User, tmp_path_factory: pytest.TempPathFactory) -> None:
    user = editor(user, 'echo "x = 1" >> "$1"')
    user.environ["TMPDIR"] = str(tmp_path_factory.mktemp("tmp"))
    terminal = PtyTerminal(user, "run", "--plan", write(user, call("a", "touch ran")), "-C", ".", "--edit")
    terminal.wait_for(RETRY_PROMPT)
    terminal.send_line("y")
    terminal.wait_for(RETRY_PROMPT)
    terminal.send_line("n")
    code, shown = terminal.wait_exit()
    assert (code, EDIT_SAVED in shown, (user.home / "ran").exists()) == (1, True, False)


def test_the_edited_plan_is_shown_and_saved(user: User) -> None:
    user = editor(user, """sed -i 's/Title of a/Another title/' "$1" """)
    model = user.script(plan(step("a")))
    code, shown = PtyTerminal(user, "plan", "x", "--model", model, "--edit", "--save", "made.toml").wait_exit()
    assert (code, "Another title" in shown) == (0, True)
    assert "Another title" in (user.home / "made.toml").read_text()


def test_ctrl_c_in_the_editor_is_for_the_editor(user: User) -> None:
    # The editor reports that it is open, waits for a line, and ignores Ctrl-C as editors do.
    user = editor(user, "trap '' INT; echo is-open >&2; read key; echo \"key $key\" >&2")
    model = user.script(plan(step("a")), step_reply("a", "it ran"))
    terminal = PtyTerminal(user, "run", "x", "--model", model, "--edit")
    terminal.wait_for("is-open")
    terminal.send_bytes(b"\x03")
    terminal.send_line("q")
    terminal.wait_for("key q")
    code, shown = terminal.wait_exit()
    assert (code, "it ran" in shown) == (0, True)


def test_an_empty_plan_runs_nothing(user: User, tmp_path: Path) -> None:
    user = editor(user, ': > "$1"')
    code, shown = PtyTerminal(user, "run", "x", "--model", user.script(plan(step("a"))), "--edit").wait_exit()
    assert (code, EMPTY_PLAN in shown) == (1, True)
