"""Building steps from a planner's raw objects."""

import pytest

from agent.planning.capabilities import Capabilities
from agent.planning.steps import StepBuilder, fallback_step, is_answer_only
from agent.vocabulary.plan import PlanStep
from tooling.tool_catalog import load_catalog

CAPABILITIES = Capabilities(
    tools={spec.name: spec for spec in load_catalog().specs}, profiles=("default", "reviewer"), models=("m/one",)
)


def test_missing_fields_get_defaults() -> None:
    step = StepBuilder("do it").build({})
    assert (step.id, step.title, step.instruction, step.type) == ("step1", "do it", "do it", "task")


def test_malformed_fields_get_defaults() -> None:
    step = StepBuilder("r").build({"id": 3, "depends_on": {"a": 1}, "writes": [1, None, "x"], "type": "weird"})
    assert (step.id, step.depends_on, step.writes, step.type) == ("3", (), ("1", "x"), "task")


def test_a_single_dependency_needs_no_brackets() -> None:
    assert StepBuilder("r").build({"id": "b", "depends_on": "a"}).depends_on == ("a",)


def test_lone_surrogates_are_removed_from_names() -> None:
    step = StepBuilder("r").build({"id": "a\ud800", "title": "t\udfff", "depends_on": ["b\ud800"]})
    assert (step.id, step.title, step.depends_on) == ("a", "t?", ("b",))


def test_ids_are_unique_and_a_step_never_depends_on_itself() -> None:
    builder = StepBuilder("r")
    steps = [builder.build({"id": "a", "depends_on": ["a", "b", "b"]}) for _ in range(3)]
    assert [one.id for one in steps] == ["a", "a-2", "a-3"]
    assert steps[0].depends_on == ("b",)


def test_a_question_without_text_or_options_gets_defaults() -> None:
    step = StepBuilder("Which colour?").build({"type": "ask_user"})
    assert (step.ask_question, step.ask_options) == ("Which colour?", ("Yes", "No"))


def test_a_request_that_cannot_be_planned_is_one_step() -> None:
    assert (fallback_step("line one\nline two").title, fallback_step("x").instruction) == ("line one", "x")


def build(**raw: object) -> PlanStep:
    return StepBuilder("the request", CAPABILITIES).build(raw)


def test_every_field_a_planner_may_set_is_used() -> None:
    assert build(
        id="a",
        title="T",
        instruction="I",
        depends_on=["b"],
        reads=["r"],
        writes=["w"],
        allowed_tools=["read_file"],
        profile="reviewer",
        model="m/one",
        expect="E",
        verify="make test",
        timeout_s=30,
    ) == PlanStep(
        id="a",
        title="T",
        instruction="I",
        depends_on=("b",),
        reads=("r",),
        writes=("w",),
        allowed_tools=("read_file",),
        profile="reviewer",
        model="m/one",
        expect="E",
        verify="make test",
        verify_by="model",
        timeout_s=30.0,
    )


def test_unknown_names_are_left_out() -> None:
    step = build(allowed_tools=["bash", "read_file"], profile="boss", model="evil/most-expensive", timeout_s="soon")
    assert (step.allowed_tools, step.profile, step.model, step.timeout_s) == (("read_file",), "default", "", None)


@pytest.mark.parametrize("named", [["bash"], [], "bash", [None], {"read_file": True}])
def test_a_list_without_a_known_tool_gives_no_tools(named: object) -> None:
    assert build(allowed_tools=named).allowed_tools == ()


@pytest.mark.parametrize("raw", [{}, {"allowed_tools": None}, {"allowed_tools": ["All"]}])
def test_a_step_that_names_no_tools_may_use_all(raw: dict[str, object]) -> None:
    assert build(**raw).allowed_tools is None


@pytest.mark.parametrize("raw", [{"type": "tool"}, {"step_type": "tool"}, {}])
def test_a_valid_call_is_a_tool_step(raw: dict[str, object]) -> None:
    step = build(**raw, tool="write_file", args={"path": "a.txt", "content": "x"})
    assert (step.type, step.tool, step.args) == ("tool", "write_file", {"path": "a.txt", "content": "x"})
    assert step.writes == ("a.txt",)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("bash", {"command": "ls"}),
        ("run_command", {}),
        ("run_command", {"comand": "ls"}),
        ("run_command", {"command": "echo \ud800"}),
        ("read_file", "a.txt"),
    ],
)
def test_an_invalid_call_becomes_a_task(tool: str, args: object) -> None:
    step = build(type="tool", tool=tool, args=args)
    assert (step.type, step.tool, step.args) == ("task", "", {})
    assert tool in step.instruction


def test_a_question_needs_no_type() -> None:
    step = build(ask_question="Which?", ask_options=["a", "b"])
    assert (step.type, step.ask_question, step.ask_options) == ("ask_user", "Which?", ("a", "b"))


def test_an_id_is_shortened_to_one_word() -> None:
    step = build(id="first\nstep " + "x" * 100, depends_on=["other\n one", "?"])
    assert (len(step.id), step.id[:11], step.depends_on) == (64, "first-step-", ("other-one",))


@pytest.mark.parametrize(
    "title", ["Write the final answer", "Answer the user", "Report the findings to the user", "Final response"]
)
def test_a_step_that_only_answers_is_recognized(title: str) -> None:
    assert is_answer_only(build(title=title, instruction="Combine all results.", depends_on=["a"]))


@pytest.mark.parametrize(
    "raw",
    [
        {"title": "Write the final answer"},
        {"title": "Write the final answer", "depends_on": ["a"], "writes": ["answer.md"]},
        {"title": "Write the final answer", "depends_on": ["a"], "instruction": "Write it to answer.md"},
        {"title": "Final answer", "depends_on": ["a"], "verify": "test -s answer"},
        {"title": "Fix the answering machine", "depends_on": ["a"]},
        {"title": "Final answer", "depends_on": ["a"], "type": "ask_user"},
    ],
)
def test_a_step_that_may_do_more_than_answer_is_kept(raw: dict[str, object]) -> None:
    assert not is_answer_only(build(**raw))


def test_no_step_of_a_plan_takes_the_id_of_the_lead() -> None:
    builder = StepBuilder("r")
    assert [builder.build({"id": "lead"}).id, builder.build({}).id] == ["lead-2", "step2"]
