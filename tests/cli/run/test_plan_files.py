"""`agent run --plan`, `agent plan --save` and `--edit` from the outside."""

import json
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

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


def test_a_plan_of_calls_runs_without_a_key_a_model_or_a_request(user: User) -> None:
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


def test_a_model_that_is_set_is_not_asked_for_a_plan_of_calls(user: User) -> None:
    file = write(user, call("a", "echo a") + call("b", "echo b"))
    for model in ("openai/gpt-5", "script:/no/such/file"):
        ended = user.agent("run", "--plan", file, AGENT_MODEL=model, AGENT_PLANNER_MODEL=model)
        assert (ended.exit_code, ended.stdout) == (0, "## echo a\n\na\n\n## echo b\n\nb\n")


def test_a_single_step_answers_with_its_output_alone(user: User) -> None:
    assert user.agent("run", "--plan", write(user, call("a", "printf one"))).stdout == "one\n"


def test_a_step_that_fails_is_told_with_its_output_and_skips_what_needs_it(user: User) -> None:
    file = write(user, call("a", "echo broken; exit 3") + call("b", "echo b", "a") + call("c", "echo c"))
    ended = user.agent("run", "--plan", file, "--output-format", "json")
    assert (ended.exit_code, ended.document["steps"] and ended.document["subtype"]) == (54, "error_tool")
    assert "Exit 3: broken" in str(ended.document["result"]) and "needs a, which did not" in str(
        ended.document["result"]
    )
    assert [one["status"] for one in ended.document["step_results"]] == ["error", "skipped", "ok"]  # type: ignore[attr-defined]


def test_output_is_not_trimmed_when_no_model_reads_it(user: User) -> None:
    ended = user.agent("run", "--plan", write(user, call("a", "seq 1 9000")))
    assert ended.stdout.split() == [str(number) for number in range(1, 9001)]


def test_a_refused_call_is_refused_in_a_plan_file_too(user: User) -> None:
    ended = user.agent("run", "--plan", write(user, call("a", "git push")))
    assert (ended.exit_code, "--allow 'git push' would allow it" in ended.stdout) == (57, True)


def test_a_plan_without_a_model_waits_for_no_stdin(user: User) -> None:
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


def test_a_model_that_every_task_names_is_enough(user: User) -> None:
    model = user.script(step_reply("a", "by its own model"))
    file = write(user, f'[[steps]]\nid = "a"\ninstruction = "x"\nmodel = "{model}"\n')
    assert user.agent("run", "--plan", file).stdout == "by its own model\n"


def test_a_plan_of_calls_is_made_again_only_when_somebody_asks_for_that(user: User) -> None:
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


def test_a_run_without_a_model_goes_on_without_one(user: User) -> None:
    file = write(user, call("a", "echo a >> log; cat log") + call("b", "test -e go && echo b >> log", "a"))
    assert user.agent("run", "--plan", file, "-C", ".").exit_code == 54
    (user.home / "go").touch()
    ended = user.agent("resume")
    assert (ended.exit_code, (user.home / "log").read_text()) == (0, "a\nb\n"), ended.stderr
    assert ended.stdout.startswith("## echo a >> log; cat log\n\na\n\n##")


def test_the_prompt_is_the_request_and_the_file_has_a_default(user: User) -> None:
    file = write(user, 'request = "of the file"\n' + call("a", "true"), "nightly.toml")
    bare = write(user, call("a", "true"), "bare.toml")
    for words, path, said in ((("mine",), file, "mine"), ((), file, "of the file"), ((), bare, "bare")):
        ended = user.agent("run", *words, "--plan", path, "--output-format", "stream-json")
        assert [event["content"] for event in ended.events if event.get("role") == "user"] == [said]


def test_a_file_with_a_problem_runs_nothing(user: User) -> None:
    file = write(user, call("a", "touch ran") + call("b", "touch ran", "aa") + "[[steps]]\nx = 1\n")
    ended = user.agent("run", "--plan", file, "-C", ".")
    assert (ended.exit_code, ended.stdout, (user.home / "ran").exists()) == (42, "", False)
    assert "error: plan.toml: line 11, step 3: unknown field x\nhint: docs/running-tasks.md#plan-files" in ended.stderr
    assert not list(user.data.glob("sessions/*"))


def test_a_program_is_told_of_a_bad_file_in_its_own_form(user: User) -> None:
    for form in ("json", "stream-json"):
        ended = user.agent("run", "--plan", "none.toml", "--output-format", form)
        last = json.loads(ended.stdout) if form == "json" else ended.events[-1]
        assert (ended.exit_code, last["exit_code"], last["subtype"]) == (42, 42, "error_input")


def test_a_plan_longer_than_the_limit_runs_nothing(user: User) -> None:
    file = write(user, call("a", "touch ran") + call("b", "touch ran"))
    ended = user.agent("run", "--plan", file, "-C", ".", "--max-steps", "1")
    assert (ended.exit_code, (user.home / "ran").exists()) == (53, False)
    assert "the plan has 2 steps and the limit is 1" in ended.stderr and "--max-steps 2" in ended.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "x", "--plan", "plan.toml", "--planner-model", "m"), "--planner-model has nothing to do"),
        (("plan", "x", "--save", "plan.yaml"), "a plan file ends in .toml or .json"),
        (("run", "x", "--edit"), "--edit needs a terminal"),
        (("plan", "--plan", "plan.toml", "--edit"), "--edit needs a terminal"),
    ],
)
def test_flags_that_make_no_sense_are_refused(user: User, words: tuple[str, ...], told: str) -> None:
    write(user, call("a", "true"))
    ended = user.agent(*words)
    assert (ended.exit_code, told in ended.stderr) == (2, True), ended.stderr


def test_the_plan_of_a_file_is_shown_without_a_model(user: User) -> None:
    file = write(user, call("a", "true") + '[[steps]]\nid = "b"\ninstruction = "Think."\ndepends_on = ["a"]\n')
    for words in (("plan", "--plan", file), ("run", "--plan", file, "--plan-only")):
        ended = user.agent(*words)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert ended.stdout.splitlines()[:2] == ["1 ─ ● a  true (call)", "2 ─ ● b  Think.  ← a"]


def test_the_shape_of_a_plan_is_there_for_programs(user: User) -> None:
    model = user.script(plan(step("a"), step("b"), step("c", "b")))
    document = user.agent("plan", "x", "--model", model, "--output-format", "json").document
    assert document["graph"] == {"levels": [["a", "b"], ["c"]], "critical_path": ["b", "c"], "est_usd": 0.0}
    assert [one["est_usd"] for one in document["steps"]] == [0.0, 0.0, 0.0]  # type: ignore[attr-defined]
    assert document["result"] == "a  Title of a\nb  Title of b\nc  Title of c  (after b)"


@pytest.mark.parametrize("name", ["made.toml", "made.json"])
def test_a_plan_that_is_saved_runs(user: User, name: str) -> None:
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


def test_a_task_that_needs_no_plan_leaves_no_file(user: User) -> None:
    ended = user.agent("plan", "2+2", "--model", user.script(answer("4")), "--save", "made.toml")
    assert (ended.exit_code, ended.stdout, (user.home / "made.toml").exists()) == (1, "4\n", False)
    assert "made.toml was not written: the task needs no plan" in ended.stderr


def test_a_place_that_cannot_be_written_is_refused_before_planning(user: User) -> None:
    ended = user.agent("plan", "x", "--model", user.script(answer("4")), "--save", "no/such/folder/made.toml")
    assert ended.exit_code == 42


def test_a_step_that_would_only_answer_does_not_answer_twice(user: User) -> None:
    last = step("z", "a", title="Write the final answer", instruction="Say what was found.")
    ended = user.agent("run", "x", "--model", user.script(plan(step("a"), last), step_reply("a", "found")))
    assert (ended.exit_code, ended.stdout) == (0, "found\n")


def test_a_question_mark_alone_makes_nobody_ask(user: User) -> None:
    model = user.script(plan(step("s1")), step_reply("s1", "A readme."))
    ended = user.agent("run", "What is in README?", "--model", model, "--output-format", "stream-json")
    assert (ended.exit_code, "question.asked" in types(ended)) == (0, False)


def test_a_call_that_a_planner_made_runs_on_the_same_road(user: User) -> None:
    made = {"id": "a", "type": "tool", "tool": "run_command", "args": {"command": "git push"}}
    ended = user.agent("run", "x", "--model", user.script(plan(made)), "--output-format", "json")
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


def test_an_invalid_edit_is_opened_again_at_the_terminal_and_can_be_given_up(
    user: User, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user = editor(user, 'echo "x = 1" >> "$1"')
    user.environ["TMPDIR"] = str(tmp_path_factory.mktemp("tmp"))
    terminal = PtyTerminal(user, "run", "--plan", write(user, call("a", "touch ran")), "-C", ".", "--edit")
    terminal.wait_for("edit it again? [Y/n] ")
    terminal.send_line("y")
    terminal.wait_for("edit it again? [Y/n] ")
    terminal.send_line("n")
    code, shown = terminal.wait_exit()
    assert (code, "your edit is in" in shown, (user.home / "ran").exists()) == (1, True, False)


def test_an_edited_plan_is_what_is_shown_and_saved(user: User) -> None:
    user = editor(user, """sed -i 's/Title of a/Another title/' "$1" """)
    model = user.script(plan(step("a")))
    code, shown = PtyTerminal(user, "plan", "x", "--model", model, "--edit", "--save", "made.toml").wait_exit()
    assert (code, "Another title" in shown) == (0, True)
    assert "Another title" in (user.home / "made.toml").read_text()


def test_ctrl_c_in_the_editor_is_for_the_editor(user: User) -> None:
    # The editor tells that it is open, waits for a key, and ignores Ctrl-C as editors do.
    user = editor(user, "trap '' INT; echo is-open >&2; read key; echo \"key $key\" >&2")
    model = user.script(plan(step("a")), step_reply("a", "it ran"))
    terminal = PtyTerminal(user, "run", "x", "--model", model, "--edit")
    terminal.wait_for("is-open")
    terminal.send_bytes(b"\x03")
    terminal.send_line("q")
    terminal.wait_for("key q")
    code, shown = terminal.wait_exit()
    assert (code, "it ran" in shown) == (0, True)


def test_an_emptied_plan_runs_nothing(user: User, tmp_path: Path) -> None:
    user = editor(user, ': > "$1"')
    code, shown = PtyTerminal(user, "run", "x", "--model", user.script(plan(step("a"))), "--edit").wait_exit()
    assert (code, "the plan was emptied, nothing was run" in shown) == (1, True)
