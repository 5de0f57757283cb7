"""Composing the answer: the request to the model, and the answer without one."""

from collections.abc import AsyncIterator

import pytest

from agent.execution.result.compose import Composer
from agent.model.budget import Budget
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.port import ModelReply, ModelRequest, StreamItem
from agent.protocol.channel import Channel
from agent.vocabulary.message import Message
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage


class Model:
    """A model that gives one reply or fails, and records its requests."""

    def __init__(self, reply_text: str | ModelFault) -> None:
        self._reply = reply_text
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        self.asked.append(request)
        if isinstance(self._reply, ModelFault):
            raise self._reply
        yield ModelReply(message=Message(role="assistant", content=self._reply), usage=Usage(), model="m")

    async def close(self) -> None:
        pass


def result(name: str, status: StepStatus, text: str) -> tuple[PlanStep, ExecutorResponse]:
    outputs = (StepOutput(type="text", content=text),) if status == "ok" else ()
    response = ExecutorResponse(task_id=name, status=status, summary=text, outputs=outputs)
    return PlanStep(id=name, title=f"Title {name}", instruction=name), response


RESULTS = [
    result("s1", "ok", "one"),
    result("s2", "error", "it broke"),
    result("s3", "needs_input", "Which?"),
    result("s4", "skipped", "Not run: needs s2, which did not succeed."),
    result("s5", "error", "first try"),
]


async def compose(model: Model, constraints: str = "") -> tuple[str, object]:
    channel = Channel(session_id="s", run_id="r", log=None)
    client = MeteredModel(client=model, budget=Budget(), channel=channel, price=lambda model, usage: 0.0)
    composer = Composer(client=client, channel=channel, model="m", max_output_tokens=100)
    return await composer.compose("do it", RESULTS, constraints, replaced={"s3", "s5"})


async def test_the_model_gets_the_status_of_every_step_and_is_asked_for_citations() -> None:
    model = Model("The answer [s1].")
    assert await compose(model) == ("The answer [s1].", None)
    system, user = (message.content for message in model.asked[0].messages)
    assert "Do not describe steps, tools or logs." in system
    assert "Name briefly what failed or was not done, and mark assumptions as such." in system
    assert "such as [s1]" in system
    marks = ("ok", "error", "assumed, because nobody could be asked", "skipped", "error, done another way")
    for number, mark in enumerate(marks, 1):
        assert f'<result step="s{number}" title="Title s{number}" status="{mark}">' in user
    assert user.startswith("Request: do it\n\n")


async def test_a_structured_answer_has_no_citations_and_is_not_changed() -> None:
    model = Model('{"ids": ["[s9]"]}')
    assert await compose(model, "one JSON document") == ('{"ids": ["[s9]"]}', None)
    assert "square brackets" not in model.asked[0].messages[0].content


@pytest.mark.parametrize("reply_text", ["", "  \n", ModelFault("refused", "no")])
async def test_without_a_reply_the_answer_is_joined_from_the_results(reply_text: str | ModelFault) -> None:
    answer, problem = await compose(Model(reply_text))
    assert answer == (
        "one\n\nTitle s2: it broke\n\nTitle s3: Which? (assumed, because nobody could be asked)\n\n"
        "Title s4: Not run: needs s2, which did not succeed.\n\nTitle s5: first try (error, done another way)"
    )
    assert (problem is None) == isinstance(reply_text, str)
