"""Plan files: what is right becomes steps, what is wrong is told with its place."""

import json
from pathlib import Path

import pytest

from agent.planning.capabilities import Capabilities
from agent.planning.plan_file import PlanFile, PlanFileError, parse_plan, read_plan_file
from agent.vocabulary.exit_codes import BAD_INPUT
from agent.vocabulary.plan import PlanStep
from tooling.tool_catalog import load_catalog

MEANS = Capabilities(tools={spec.name: spec for spec in load_catalog().specs}, profiles=("default", "reviewer"))
TASK = 'instruction = "do it"\n'


def parse(text: str, name: str = "plan.toml") -> PlanFile:
    return parse_plan(text, name=name, default_request="plan", capabilities=MEANS)


def step(fields: str) -> PlanStep:
    return parse(f"[[steps]]\n{fields}").steps[0]


def problem(text: str, name: str = "plan.toml") -> str:
    with pytest.raises(PlanFileError) as caught:
        parse(text, name)
    assert caught.value.exit_code == BAD_INPUT
    return caught.value.message


def problem_of_step(fields: str) -> str:
    told = problem(f"[[steps]]\n{fields}")
    assert told.startswith("plan.toml: line 1, step 1"), told
    return told.partition(": ")[2].partition(": ")[2]


def test_a_plan_by_hand_is_short() -> None:
    plan = parse(
        """
        request = "Is the project in order?"

        [[steps]]
        id = "test"
        tool = "run_command"
        args = { command = "make test" }

        [[steps]]
        id = "which"
        ask_question = "Which part?"

        [[steps]]
        instruction = "Review the part that was chosen."
        depends_on = ["which", "test"]
        """
    )
    assert plan.request == "Is the project in order?"
    assert [(one.id, one.type, one.title, one.depends_on) for one in plan.steps] == [
        ("test", "tool", "make test", ()),
        ("which", "ask_user", "Which part?", ()),
        ("step3", "task", "Review the part that was chosen.", ("which", "test")),
    ]


def test_every_field_of_a_task_is_taken_over() -> None:
    assert step(
        """
        id = "a.b_c-1"
        title = "T"
        type = "task"
        instruction = "I"
        expect = "E"
        verify = "make check"
        reads = ["src"]
        writes = ["out/*"]
        allowed_tools = ["read_file"]
        profile = "reviewer"
        model = "openai/gpt-5"
        timeout_s = 90
        """
    ) == PlanStep(
        id="a.b_c-1",
        title="T",
        instruction="I",
        expect="E",
        verify="make check",
        reads=("src",),
        writes=("out/*",),
        allowed_tools=("read_file",),
        profile="reviewer",
        model="openai/gpt-5",
        timeout_s=90.0,
    )


def test_every_field_of_a_call_is_taken_over() -> None:
    made = step(
        """
        tool = "search_text"
        args = { pattern = "TODO" }
        title = "Find what is to be done"
        verify = "true"
        timeout_s = 0.5
        """
    )
    assert (made.type, made.tool, made.args) == ("tool", "search_text", {"pattern": "TODO"})
    assert (made.title, made.verify, made.timeout_s) == ("Find what is to be done", "true", 0.5)


def test_a_question_may_be_answered_in_free_words() -> None:
    assert step('ask_question = "Which?"').ask_options == ()
    assert step('ask_question = "Which?"\nask_options = ["a", "b"]').ask_options == ("a", "b")


def test_a_file_that_a_call_writes_is_known_to_be_written() -> None:
    call = 'tool = "write_file"\nargs = { path = "a.txt", content = "x" }\n'
    assert step(call).writes == ("a.txt",)
    assert step(call + 'writes = ["b"]').writes == ("b",)
    assert step('tool = "read_file"\nargs = { path = "a.txt" }').writes == ()


def test_json_says_the_same() -> None:
    document = {"request": "r", "steps": [{"id": "a", "tool": "run_command", "args": {"command": "ls"}}]}
    toml = 'request = "r"\n[[steps]]\nid = "a"\ntool = "run_command"\nargs = { command = "ls" }'
    assert parse(json.dumps(document), "plan.json") == parse(toml)
    assert parse(json.dumps(document), "/dev/fd/63") == parse(toml)


def test_steps_may_stand_in_any_order() -> None:
    plan = parse(f'[[steps]]\nid = "b"\ndepends_on = ["a"]\n{TASK}[[steps]]\nid = "a"\n{TASK}').plan
    assert ([one.id for one in plan.steps], plan.reason) == (["a", "b"], "file")


def test_a_file_without_a_request_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "nightly.toml").write_text(f"[[steps]]\n{TASK}")
    assert read_plan_file(tmp_path / "nightly.toml", MEANS).request == "nightly"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('instrution = "x"\n', "unknown field instrution, did you mean instruction?"),
        (TASK + "depends_on = 'a'\n", 'depends_on: expected a list, got "a"'),
        (TASK + "depends_on = ['a', 2]\n", "depends_on[2]: expected text, got 2"),
        (TASK + "timeout_s = '5'\n", 'timeout_s: expected a number, got "5"'),
        (TASK + "timeout_s = 0\n", "timeout_s: expected more than 0 seconds, got 0"),
        (TASK + "timeout_s = inf\n", "timeout_s: expected a number, got Infinity"),
        (TASK + "id = 3\n", "id: expected text, got 3"),
        (TASK + "id = ''\n", "id is empty"),
        (TASK + "id = 'a b'\n", "id: expected at most 64 letters, digits, dots, _ and -, got 'a b'"),
        (TASK + "type = 'tsk'\n", 'type: expected one of task, tool, ask_user, got "tsk", did you mean task?'),
        (TASK + "profile = 'revewer'\n", "profile: there is no profile 'revewer', did you mean reviewer?"),
        (TASK + "profile = 'x'\n", "profile: there is no profile 'x'; there is default, reviewer"),
        (TASK + "allowed_tools = ['read']\n", "allowed_tools: there is no tool 'read', did you mean read_file?"),
        (TASK + "model = ''\n", "model is empty"),
        (TASK + "args = {}\n", "args is for steps of type tool; this one is of type task"),
        ("", "instruction is missing; a step without a model has tool, a question has ask_question"),
        ("instruction = ' '\n", "instruction is empty"),
        ("instruction = 1979-05-27\n", 'instruction: expected text, got "1979-05-27"'),
        ("type = 'tool'\n", "tool is missing"),
        ("type = 'ask_user'\n", "ask_question is missing"),
        ("tool = 'run_comand'\n", "tool: there is no tool 'run_comand', did you mean run_command?"),
        ("tool = 'zzz'\n", "tool: there is no tool 'zzz'; `agent tools list` shows them"),
        ("tool = 'run_command'\n", "args.command is missing (`agent tools show run_command`)"),
        (
            "tool = 'run_command'\nargs = { comand = 'ls' }\n",
            "unknown name args.comand, did you mean command? (`agent tools show run_command`)",
        ),
        (
            "tool = 'run_command'\nargs = { command = ['ls'] }\n",
            'args.command: expected text, got ["ls"] (`agent tools show run_command`)',
        ),
        ("tool = 'run_command'\nargs = 'ls'\n", 'args: expected a table of named values, got "ls"'),
        (
            "tool = 'run_command'\ninstruction = 'x'\n",
            "instruction is for steps of type task; this one is of type tool",
        ),
        ("tool = 'run_command'\nargs = { command = \"a\\u0000\" }\n", "args.command: holds a character that is none"),
        (
            "ask_question = '?'\nask_options = ['a']\n",
            "ask_options: one option is no choice; give at least two, or none for an answer in free words",
        ),
        (
            "ask_question = '?'\nverify = 'x'\n",
            "verify is for steps of type task and tool; this one is of type ask_user",
        ),
    ],
)
def test_a_problem_is_told_with_step_field_and_what_was_expected(fields: str, told: str) -> None:
    assert problem_of_step(fields) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "plan.toml: there are no steps; a step begins with a line [[steps]]"),
        ("steps = []", "plan.toml: there are no steps; a step begins with a line [[steps]]"),
        ("steps = 3", "plan.toml: steps: expected a list of steps, each under a line [[steps]]"),
        (f"[steps]\n{TASK}", "plan.toml: steps: expected a list of steps, each under a line [[steps]]"),
        ("steps = [1]", "plan.toml: step 1: expected a table of fields, got 1"),
        (f"[[step]]\n{TASK}", "plan.toml: unknown key step, did you mean steps?"),
        (f"request = 1\n[[steps]]\n{TASK}", "plan.toml: request: expected text, got 1"),
        ("x = ", "plan.toml: not valid TOML: Invalid value (at end of document)"),
        (
            f'[[steps]]\nid = "build"\n{TASK}[[steps]]\ndepends_on = ["biuld"]\n{TASK}',
            "plan.toml: step step2: depends_on: there is no step 'biuld', did you mean build?",
        ),
        (
            f'[[steps]]\nid = "a"\n{TASK}[[steps]]\nid = "a"\n{TASK}',
            "plan.toml: line 4, step 2 (a): id: 'a' is already the id of step 1",
        ),
        (
            f'[[steps]]\nid = "a"\ndepends_on = ["b"]\n{TASK}[[steps]]\nid = "b"\ndepends_on = ["a"]\n{TASK}',
            "plan.toml: steps wait for each other: a → b → a",
        ),
        (
            f'[[steps]]\nid = "a"\ndepends_on = ["a"]\n{TASK}',
            "plan.toml: steps wait for each other: a → a",
        ),
    ],
)
def test_a_problem_of_the_whole_plan_is_told(text: str, told: str) -> None:
    assert problem(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"steps": [}', "not valid JSON: Expecting value: line 1 column 12 (char 11)"),
        ("[]", 'expected an object {"request": …, "steps": […]}'),
        ('{"steps": []}', "there are no steps"),
        ('{"steps": {}}', "there are no steps"),
        ('{"steps": [{"id": "a", "id": "b"}]}', "not valid JSON: 'id' is given twice"),
        ('{"steps": [{"instruction": null}]}', "step 1: instruction: expected text, got null"),
        ('{"steps": [{"instruction": "\\ud800"}]}', "step 1: instruction: holds a character that is none"),
    ],
)
def test_a_problem_in_json_is_told(text: str, told: str) -> None:
    assert problem(text, "plan.json") == f"plan.json: {told}"


def test_brackets_without_end_are_told() -> None:
    assert "not valid" in problem("x = " + "[" * 5000)
    assert "not valid" in problem("[" * 100_000, "plan.json")


def test_all_problems_are_told_at_once() -> None:
    told = problem('titel = "x"\n\n[[steps]]\nx = 1\n\n[[steps]]\nid = "b"\ntool = "run_command"\n')
    assert told.splitlines() == [
        "plan.toml has 3 problems:",
        "  unknown key titel",
        "  line 3, step 1: unknown field x",
        "  line 6, step 2 (b): args.command is missing (`agent tools show run_command`)",
    ]


def test_many_problems_are_counted() -> None:
    lines = problem("[[steps]]\nx = 1\n" * 20).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (12, "plan.toml has 20 problems:", "  and 10 more")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path, told in (
        (tmp_path / "none.toml", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "large.toml", "longer than 1000000 bytes"),
        (tmp_path / "bytes.toml", "not UTF-8"),
    ):
        (tmp_path / "large.toml").write_bytes(b"#" * 1_000_001)
        (tmp_path / "bytes.toml").write_bytes(b"\xff")
        with pytest.raises(PlanFileError, match=told):
            read_plan_file(path, MEANS)
