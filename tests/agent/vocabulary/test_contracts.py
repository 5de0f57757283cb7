"""The shared data types: defaults, JSON round trips, profiles."""

import json
from typing import TypeVar

import pytest

from agent.config.settings import ProfileSettings, Settings
from agent.dispatcher import Dispatcher
from agent.vocabulary.plan import Plan, PlanStep
from agent.vocabulary.step import CallFact, Check, ExecutorProfile, ExecutorRequest, ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage
from tooling.contract.json_codec import DecodeError, decode, encode
from tooling.registry import TOOLS

T = TypeVar("T")
NAMES = tuple(tool.spec.name for tool in TOOLS)


def round_trip(value: T) -> T:
    return decode(type(value), json.loads(json.dumps(encode(value))))


def test_a_step_has_defaults_for_optional_fields() -> None:
    step = PlanStep(id="a", title="t", instruction="i")
    assert (step.type, step.depends_on, step.allowed_tools, step.ask_question) == ("task", (), None, None)
    assert (step.profile, step.tool, step.args, step.verify, step.timeout_s) == ("default", "", {}, "", None)
    assert step.args is not PlanStep(id="b", title="t", instruction="i").args


def test_a_request_needs_only_an_id_and_a_goal() -> None:
    request = ExecutorRequest(task_id="a", goal="g")
    assert (request.context, request.expected_outputs, request.model) == ("", None, "")


@pytest.mark.parametrize(
    "value",
    [
        PlanStep(id="a", title="t", instruction="i"),
        PlanStep(
            id="a", title="t", instruction="i", type="tool", tool="run_command", args={"command": "ls", "n": [1, None]},
            depends_on=("b",), reads=("r",), writes=("w",), allowed_tools=(), timeout_s=1.5, est_usd=0.25,
        ),
        PlanStep(id="q", title="t", instruction="?", type="ask_user", ask_question="?", ask_options=("a", "b")),
        Plan(steps=(PlanStep(id="a", title="t", instruction="i"),), reason="file"),
        ExecutorRequest(task_id="a", goal="g", expected_outputs="e", model="m"),
        ExecutorResponse(
            task_id="a", status="partial", summary="s", outputs=(StepOutput(type="file", path="p", name="n"),),
            tool_calls=(
                CallFact(tool="t", args={"a": 1}, status="ok", exit_code=0, output_len=1, output_preview="x"),
            ),
            next_questions=("?",), usage=Usage(input_tokens=3, cost_usd=None), verified=False,
            checks=(Check(command="c", exit_code=1),),
        ),
        ExecutorProfile(name="p", allowed_tools=("read_file",), timeout_ms=5, max_retries=0),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_survive_a_round_trip_through_json(value: object) -> None:
    assert round_trip(value) == value


def test_a_response_with_an_unknown_status_is_rejected() -> None:
    with pytest.raises(DecodeError, match="status: expected one of ok, partial"):
        decode(ExecutorResponse, {"task_id": "a", "status": "done", "summary": ""})


def test_the_built_in_profiles_have_their_tools_and_limits() -> None:
    dispatcher = Dispatcher(Settings(), NAMES)

    def profile(name: str) -> ExecutorProfile:
        return dispatcher.profile_of(PlanStep(id="a", title="t", instruction="i", profile=name))

    assert (profile("default").name, profile("default").timeout_ms, profile("default").allowed_tools) == (
        "default",
        600_000,
        None,
    )
    assert profile("reviewer").allowed_tools == (
        "read_file",
        "list_directory",
        "find_files",
        "search_text",
        "run_command",
    )
    assert profile("reviewer").max_retries == 1
    assert (profile("developer").allowed_tools, profile("developer").max_retries) == ((), 0)


def test_a_step_can_narrow_the_tools_of_its_profile_but_not_extend_them() -> None:
    settings = Settings(step_profiles={"reader": ProfileSettings(allowed_tools=("read_file", "find_files"))})
    step = PlanStep(id="a", title="t", instruction="i", profile="reader", allowed_tools=("find_files", "run_command"))
    assert Dispatcher(settings, NAMES).profile_of(step).allowed_tools == ("find_files",)
