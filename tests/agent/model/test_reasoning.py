"""How much a model reasons comes from the settings; one that does not take it is asked without."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent.config.settings import ModelSettings, Reasoning, Settings
from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest
from agent.model.reasoning import reasoning_for
from agent.model.router import ModelRouter
from agent.vocabulary.message import Message
from tests.provider.client_harness import settings_for
from tests.provider.replies import Text
from tests.provider.responses import error_body, json_response
from tests.provider.server import Provider

REJECTED = "Unsupported parameter: 'reasoning_effort' is not supported with this model."


def make_request(model: str = "openai/m") -> ModelRequest:
    return ModelRequest(model=model, messages=(Message(role="user", content="hi"),))


async def ask(router: ModelRouter, model: str = "openai/m") -> str:
    items = [item async for item in router.stream(make_request(model))]
    assert isinstance(items[-1], ModelReply)
    return items[-1].message.content


@pytest.mark.parametrize(
    ("general", "models", "expected"),
    [
        (None, {}, None),
        ("low", {}, "low"),
        ("low", {"m": ModelSettings(reasoning="high")}, "high"),
        ("low", {"m": ModelSettings(), "other": ModelSettings(reasoning="off")}, "low"),
    ],
)
def test_the_setting_of_a_model_comes_before_the_general_one(
    general: Reasoning | None, models: Mapping[str, ModelSettings], expected: str | None
) -> None:
    assert reasoning_for("m", Settings(reasoning=general, models=models)) == expected


async def test_every_request_says_how_much_to_reason() -> None:
    async with Provider(Text("one"), Text("two")) as provider:
        router = ModelRouter(replace(settings_for(provider), reasoning="high"))
        assert [await ask(router), await ask(router, "anthropic/claude-opus-4-6")] == ["one", "two"]
        await router.close()
    assert provider.requests[0].body["reasoning_effort"] == "high"
    assert provider.requests[1].body["output_config"] == {"effort": "high"}


async def test_a_model_that_does_not_take_it_is_asked_without_and_the_user_is_warned_once() -> None:
    warnings: list[str] = []
    rejection = json_response(400, error_body("openai", "invalid_request_error", REJECTED))
    async with Provider(rejection, Text("one"), Text("two")) as provider:
        router = ModelRouter(replace(settings_for(provider), reasoning="high"), warn=warnings.append)
        assert [await ask(router), await ask(router)] == ["one", "two"]
        await router.close()
    assert ["reasoning_effort" in request.body for request in provider.requests] == [True, False, False]
    (warning,) = warnings
    assert warning == f"openai/m does not take reasoning high, so its default applies: 400 {REJECTED}"


async def test_other_rejections_are_faults() -> None:
    rejection = json_response(400, error_body("openai", "invalid_request_error", "invalid tool schema"))
    async with Provider(rejection) as provider:
        router = ModelRouter(replace(settings_for(provider), reasoning="high"))
        with pytest.raises(ModelFault, match="invalid tool schema"):
            await ask(router)
        await router.close()
    assert len(provider.requests) == 1
