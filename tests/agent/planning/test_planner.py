"""The planner: any reply becomes a plan with steps or an answer."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest, StreamItem, StreamRestarted, TextDelta
from agent.planning.capabilities import Capabilities
from agent.planning.planner import CONTEXT_CHARS, PROGRESS_CHARS, Planner, PlanStream
from agent.prompts.load import load_prompt
from agent.vocabulary.message import Message
from agent.vocabulary.plan import Plan, PlanStep
from agent.vocabulary.usage import Usage
from tooling.tool_catalog import load_catalog

REQUEST = "Make it better"
CAPABILITIES = Capabilities(tools={spec.name: spec for spec in load_catalog().specs})


class FakeModel:
    """A model that streams the same reply to every request and records its requests."""

    def __init__(self, *pieces: str | StreamRestarted) -> None:
        self._pieces = pieces
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.asked.append(request)
        text = ""
        for piece in self._pieces:
            yield TextDelta(text=piece) if isinstance(piece, str) else piece
            text = text + piece if isinstance(piece, str) else ""
        if not text.strip():
            # No client returns an empty reply.
            raise ModelFault("empty")
        yield ModelReply(message=Message(role="assistant", content=text), usage=Usage(), model="m")


def planner(client: FakeModel) -> Planner:
    return Planner(
        client=client, model="m", max_output_tokens=1000, capabilities=CAPABILITIES, estimate=lambda step: 0.5
    )  # type: ignore[arg-type]


def planned(*pieces: str | StreamRestarted, context: str = "") -> tuple[Plan, list[PlanStep], FakeModel]:
    model = FakeModel(*pieces)
    *steps, plan = asyncio.run(_collect(planner(model).plan(REQUEST, context)))
    assert isinstance(plan, Plan)
    return plan, [step for step in steps if isinstance(step, PlanStep)], model


async def _collect(stream: PlanStream) -> list[PlanStep | Plan]:
    return [item async for item in stream]


def replanned(reply: str) -> Plan | None:
    return asyncio.run(planner(FakeModel(reply)).replan(REQUEST, "", "s1 failed", "surprise"))


STEPS = [
    {"id": "a", "title": "A", "instruction": "do a"},
    {"id": "b", "title": "B", "instruction": "do b"},
    {"id": "c", "title": "C", "instruction": "do c", "depends_on": ["a", "b"]},
]


def test_a_plan_keeps_the_ids_titles_and_dependencies_of_the_reply() -> None:
    plan, streamed, _ = planned(json.dumps({"steps": STEPS}))
    assert [(step.id, step.title, step.depends_on) for step in plan.steps] == [
        ("a", "A", ()),
        ("b", "B", ()),
        ("c", "C", ("a", "b")),
    ]
    assert (tuple(streamed), {step.est_usd for step in streamed}) == (plan.steps, {0.5})


@pytest.mark.parametrize(
    "reply", ["", " \n", "{}", "I cannot plan this.", "{", '{"steps": []}', '{"steps": [1, "x"]}', "[1]"]
)
def test_a_reply_without_a_plan_makes_the_request_the_only_step(reply: str) -> None:
    plan, streamed, _ = planned(reply)
    (step,) = plan.steps
    assert (step.id, step.instruction, step.type, streamed) == ("step1", REQUEST, "task", [step])


def test_values_that_are_no_objects_are_skipped() -> None:
    plan, _, _ = planned(json.dumps({"steps": [1, "x", None, STEPS[0]]}))
    assert [step.id for step in plan.steps] == ["a"]


def test_a_duplicate_id_is_made_unique_and_dependencies_refer_to_the_first() -> None:
    steps = [{"id": "x", "title": "1"}, {"id": "x", "title": "2"}, {"id": "y", "depends_on": ["x"]}]
    plan, _, _ = planned(json.dumps({"steps": steps}))
    assert [(step.id, step.depends_on) for step in plan.steps] == [("x", ()), ("x-2", ()), ("y", ("x",))]


def test_a_restarted_reply_repeats_no_step() -> None:
    text = json.dumps({"steps": STEPS})
    plan, streamed, _ = planned(text[:60], StreamRestarted(reason="broke off"), text)
    assert [step.id for step in streamed] == ["a", "b", "c"] == [step.id for step in plan.steps]


def test_a_step_that_only_answers_is_left_out() -> None:
    last = {"id": "z", "title": "Write the final answer", "instruction": "Say it all.", "depends_on": ["a"]}
    plan, streamed, _ = planned(json.dumps({"steps": [STEPS[0], last]}))
    assert [step.id for step in plan.steps] == ["a"] == [step.id for step in streamed]


def test_the_prompt_asks_for_no_answering_steps_and_names_no_tools() -> None:
    prompt = load_prompt("planner")
    assert "Leave out steps that report or answer: that is done for you. Do not name tools." in prompt
    assert "Assume what is usual instead of asking." in prompt
    # <memory> is a tag, not the tool of that name.
    text = prompt.replace("<memory>", "")
    assert [name for name in CAPABILITIES.tools if name in text and name != "ask_user"] == []


def test_the_prompt_is_short() -> None:
    assert len(load_prompt("planner")) < 1600


@pytest.mark.parametrize("size", [CONTEXT_CHARS, CONTEXT_CHARS * 50])
def test_a_large_context_is_truncated_for_the_planner(size: int) -> None:
    context = f"<stdin>\n{'x' * size}\n</stdin>"
    _, _, model = planned('{"answer": "x"}', context=context)
    asked = model.asked[0].messages[1].content
    assert len(asked) < CONTEXT_CHARS + 500
    assert asked.startswith("<stdin>") and "</stdin>\n\nRequest: Make it better" in asked
    assert "characters left out; steps see them all" in asked


def test_the_progress_for_replanning_is_bounded() -> None:
    model = FakeModel('{"steps": []}')
    asyncio.run(planner(model).replan(REQUEST, "ctx", "p" * PROGRESS_CHARS * 3, "surprise: no such file"))
    asked = model.asked[0].messages[1].content
    assert len(asked) < PROGRESS_CHARS + 1500
    assert "because: surprise: no such file" in asked and '{"steps": []}' in asked


def test_a_new_plan_may_be_empty() -> None:
    assert replanned('{"steps": []}') == Plan()


@pytest.mark.parametrize("reply", ["", "Sorry.", '{"steps": [1]}'])
def test_an_unreadable_new_plan_is_none(reply: str) -> None:
    assert replanned(reply) is None


def test_a_new_plan_keeps_its_ids() -> None:
    plan = replanned(json.dumps({"steps": STEPS}))
    assert plan and [step.id for step in plan.steps] == ["a", "b", "c"]


def test_estimates_can_be_added_to_a_given_plan() -> None:
    plan = planner(FakeModel()).with_estimates(Plan(steps=(PlanStep(id="a", title="a", instruction="a"),)))
    assert [step.est_usd for step in plan.steps] == [0.5]
