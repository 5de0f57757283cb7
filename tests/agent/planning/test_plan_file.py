"""Plan files: valid ones become steps, problems are reported with their location."""

import json
from pathlib import Path

import pytest

from agent.planning.capabilities import Capabilities
from agent.planning.plan_file import NO_STEPS, PlanFile, PlanFileError, parse_plan, read_plan_file
from agent.vocabulary.exit_codes import BAD_INPUT
from agent.vocabulary.plan import PlanStep
from tooling.tool_catalog import load_catalog

CAPABILITIES = Capabilities(tools={spec.name: spec for spec in load_catalog().specs}, profiles=("default", "reviewer"))
TASK = 'instruction = "do it"\n'


def parse(text: str, name: str = "plan.toml") -> PlanFile:
    return parse_plan(text, name=name, default_request="plan", capabilities=CAPABILITIES)


def step(fields: str) -> PlanStep:
    return parse(f"[[steps]]\n{fields}").steps[0]


def problem(text: str, name: str = "plan.toml") -> str:
    with pytest.raises(PlanFileError) as caught:
        parse(text, name)
    assert caught.value.exit_code == BAD_INPUT
    return caught.value.message


def problem_of_step(fields: str) -> str:
    message = problem(f"[[steps]]\n{fields}")
    assert message.startswith("plan.toml: line 1, step 1"), message
    return message.partition(": ")[2].partition(": ")[2]


def test_a_minimal_plan_file_is_completed_with_defaults() -> None:
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


def test_every_field_of_a_task_is_parsed() -> None:
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


def test_every_field_of_a_tool_step_is_parsed() -> None:
    parsed = step(
        """
        tool = "search_text"
        args = { pattern = "TODO" }
        title = "Find what is to be done"
        verify = "true"
        timeout_s = 0.5
        """
    )
    assert (parsed.type, parsed.tool, parsed.args) == ("tool", "search_text", {"pattern": "TODO"})
    assert (parsed.title, parsed.verify, parsed.timeout_s) == ("Find what is to be done", "true", 0.5)


def test_a_question_may_have_no_options() -> None:
    assert step('ask_question = "Which?"').ask_options == ()
    assert step('ask_question = "Which?"\nask_options = ["a", "b"]').ask_options == ("a", "b")


def test_the_path_of_a_writing_call_is_added_to_writes() -> None:
    call = 'tool = "write_file"\nargs = { path = "a.txt", content = "x" }\n'
    assert step(call).writes == ("a.txt",)
    assert step(call + 'writes = ["b"]').writes == ("b",)
    assert step('tool = "read_file"\nargs = { path = "a.txt" }').writes == ()


def test_json_and_toml_give_the_same_plan() -> None:
    document = {"request": "r", "steps": [{"id": "a", "tool": "run_command", "args": {"command": "ls"}}]}
    toml = 'request = "r"\n[[steps]]\nid = "a"\ntool = "run_command"\nargs = { command = "ls" }'
    assert parse(json.dumps(document), "plan.json") == parse(toml)
    assert parse(json.dumps(document), "/dev/fd/63") == parse(toml)


def test_steps_may_be_listed_in_any_order() -> None:
    plan = parse(f'[[steps]]\nid = "b"\ndepends_on = ["a"]\n{TASK}[[steps]]\nid = "a"\n{TASK}').plan
    assert ([one.id for one in plan.steps], plan.reason) == (["a", "b"], "file")


def test_without_a_request_the_file_name_is_used(tmp_path: Path) -> None:
    (tmp_path / "nightly.toml").write_text(f"[[steps]]\n{TASK}")
    assert read_plan_file(tmp_path / "nightly.toml", CAPABILITIES).request == "nightly"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ('instrution = "x"\n', "unknown field instrution, did you mean instruction?"),
        (TASK + "depends_on = 'a'\n", 'depends_on: expected a list, got "a"'),
        (TASK + "depends_on = ['a', 2]\n", "depends_on[2]: expected text, got 2"),
        (TASK + "timeout_s = '5'\n", 'timeout_s: expected a number, got "5"'),
        (TASK + "timeout_s = 0\n", "timeout_s: expected more than 0 seconds, got 0"),
        (TASK + "timeout_s = inf\n", "timeout_s: expected a number, got Infinity"),
        (TASK + "id = 3\n", "id: expected text, got 3"),
        (TASK + "id = ''\n", "id is empty"),
        (TASK + "id = 'lead'\n", "id: 'lead' is the id of the step that works on whole requests"),
        (TASK + "id = 'a b'\n", "id: expected at most 64 letters, digits, dots, _ and -, got 'a b'"),
        (TASK + "type = 'tsk'\n", 'type: expected one of task, tool, ask_user, got "tsk", did you mean task?'),
        (TASK + "profile = 'revewer'\n", "profile: unknown profile 'revewer', did you mean reviewer?"),
        (TASK + "profile = 'x'\n", "profile: unknown profile 'x'; known: default, reviewer"),
        (TASK + "allowed_tools = ['read']\n", "allowed_tools: unknown tool 'read', did you mean read_file?"),
        (TASK + "model = ''\n", "model is empty"),
        (TASK + "args = {}\n", "args is for steps of type tool; this one is of type task"),
        ("", "instruction is missing; a step without a model has tool, a question has ask_question"),
        ("instruction = ' '\n", "instruction is empty"),
        ("instruction = 1979-05-27\n", 'instruction: expected text, got "1979-05-27"'),
        ("type = 'tool'\n", "tool is missing"),
        ("type = 'ask_user'\n", "ask_question is missing"),
        ("tool = 'run_comand'\n", "tool: unknown tool 'run_comand', did you mean run_command?"),
        ("tool = 'zzz'\n", "tool: unknown tool 'zzz'; see `agent tools list`"),
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
        ("tool = 'run_command'\nargs = { command = \"a\\u0000\" }\n", "args.command: contains an invalid character"),
        (
            "ask_question = '?'\nask_options = ['a']\n",
            "ask_options: give at least two options, or none for a free-text answer",
        ),
        (
            "ask_question = '?'\nverify = 'x'\n",
            "verify is for steps of type task and tool; this one is of type ask_user",
        ),
    ],
)
def test_a_problem_is_reported_with_step_field_and_expectation(fields: str, expected: str) -> None:
    assert problem_of_step(fields) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", f"plan.toml: {NO_STEPS}; a step starts with a [[steps]] line"),
        ("steps = []", f"plan.toml: {NO_STEPS}; a step starts with a [[steps]] line"),
        ("steps = 3", "plan.toml: steps: expected a list of steps, each under a [[steps]] line"),
        (f"[steps]\n{TASK}", "plan.toml: steps: expected a list of steps, each under a [[steps]] line"),
        ("steps = [1]", "plan.toml: step 1: expected a table of fields, got 1"),
        (f"[[step]]\n{TASK}", "plan.toml: unknown key step, did you mean steps?"),
        (f"request = 1\n[[steps]]\n{TASK}", "plan.toml: request: expected text, got 1"),
        ("x = ", "plan.toml: not valid TOML: Invalid value (at end of document)"),
        (
            f'[[steps]]\nid = "build"\n{TASK}[[steps]]\ndepends_on = ["biuld"]\n{TASK}',
            "plan.toml: step step2: depends_on: unknown step 'biuld', did you mean build?",
        ),
        (
            f'[[steps]]\nid = "a"\n{TASK}[[steps]]\nid = "a"\n{TASK}',
            "plan.toml: line 4, step 2 (a): id: 'a' is already the id of step 1",
        ),
        (
            f'[[steps]]\nid = "a"\ndepends_on = ["b"]\n{TASK}[[steps]]\nid = "b"\ndepends_on = ["a"]\n{TASK}',
            "plan.toml: dependency cycle: a → b → a",
        ),
        (
            f'[[steps]]\nid = "a"\ndepends_on = ["a"]\n{TASK}',
            "plan.toml: dependency cycle: a → a",
        ),
    ],
)
def test_a_problem_of_the_plan_is_reported(text: str, expected: str) -> None:
    assert problem(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"steps": [}', "not valid JSON: Expecting value: line 1 column 12 (char 11)"),
        ("[]", 'expected an object {"request": …, "steps": […]}'),
        ('{"steps": []}', NO_STEPS),
        ('{"steps": {}}', NO_STEPS),
        ('{"steps": [{"id": "a", "id": "b"}]}', "not valid JSON: duplicate key 'id'"),
        ('{"steps": [{"instruction": null}]}', "step 1: instruction: expected text, got null"),
        ('{"steps": [{"instruction": "\\ud800"}]}', "step 1: instruction: contains an invalid character"),
    ],
)
def test_a_problem_in_json_is_reported(text: str, expected: str) -> None:
    assert problem(text, "plan.json") == f"plan.json: {expected}"


def test_deeply_nested_brackets_are_reported() -> None:
    assert "not valid" in problem("x = " + "[" * 5000)
    assert "not valid" in problem("[" * 100_000, "plan.json")


def test_all_problems_are_reported_at_once() -> None:
    message = problem('titel = "x"\n\n[[steps]]\nx = 1\n\n[[steps]]\nid = "b"\ntool = "run_command"\n')
    assert message.splitlines() == [
        "plan.toml has 3 problems:",
        "  unknown key titel",
        "  line 3, step 1: unknown field x",
        "  line 6, step 2 (b): args.command is missing (`agent tools show run_command`)",
    ]


def test_many_problems_are_counted() -> None:
    lines = problem("[[steps]]\nx = 1\n" * 20).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (12, "plan.toml has 20 problems:", "  and 10 more")


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    for path, expected in (
        (tmp_path / "none.toml", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "large.toml", "too large for a plan file"),
        (tmp_path / "bytes.toml", "not UTF-8"),
    ):
        (tmp_path / "large.toml").write_bytes(b"#" * 1_000_001)
        (tmp_path / "bytes.toml").write_bytes(b"\xff")
        with pytest.raises(PlanFileError, match=expected):
            read_plan_file(path, CAPABILITIES)
