"""Whether a name is a model, without and with asking its server."""

from pathlib import Path

import pytest

from agent.config.settings import Settings
from agent.model.name_check import NameCheck, check_name, find_problem
from tests.provider.responses import json_response
from tests.provider.server import Provider, ReceivedRequest

KEYS = Settings(keys={"openai": "ko", "anthropic": "ka", "gemini": "kg", "openrouter": "kr"})


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-4o",
        "gpt-4o",
        "claude-sonnet-4-5",
        "gemini/gemini-2.5-flash",
        "openrouter/anthropic/claude-sonnet-4.5",
        "ollama/anything",
        "vllm/org/name",
    ],
)
def test_known_models_and_those_of_local_servers_are_beyond_doubt(name: str) -> None:
    assert check_name(name, KEYS, Path("/")) == NameCheck()


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("what is this?", NameCheck(problem="'what is this?' is not a model")),
        ("gpt-4o please", NameCheck(problem="'gpt-4o please' is not a model")),
        ("nonsense", NameCheck(problem="'nonsense' is not a model")),
        ("opena", NameCheck(problem="'opena' is not a model, did you mean openai?")),
        ("mistral", NameCheck(problem="'mistral' is a provider, not a model; write mistral/NAME")),
        ("", NameCheck(problem="'' is not a model")),
        ("openai/gpt-99", NameCheck(doubt="gpt-99 is not a known model of openai")),
        ("opnai/x", NameCheck(doubt="unknown provider 'opnai', did you mean openai?")),
        ("groq/x", NameCheck(doubt="no key is set for this provider: set GROQ_API_KEY to use groq/x")),
        ("script:none", NameCheck(problem="script not found: none")),
    ],
)
def test_other_names_are_a_problem_or_a_doubt(name: str, check: NameCheck) -> None:
    assert check_name(name, KEYS, Path("/nowhere")) == check


@pytest.mark.parametrize("name", ["openai/test-model", "anthropic/test-model", "test-model", "vllm/test-model"])
async def test_a_server_is_asked_whether_it_has_a_model(name: str) -> None:
    async with Provider() as provider:
        settings = Settings(api_base=provider.base_url, api_key="k")
        assert await find_problem(name, settings, Path("/")) == ""
        other = await find_problem(name.replace("test", "other"), settings, Path("/"))
        assert other == f"{provider.base_url} has no model other-model; it has test-model"
        assert {request.path for request in provider.requests} == {"/v1/models"}


@pytest.mark.parametrize(("status", "problem"), [(401, "the provider rejected the API key"), (404, ""), (500, "")])
async def test_a_server_that_lists_nothing_is_only_asked_for_its_key(
    monkeypatch: pytest.MonkeyPatch, status: int, problem: str
) -> None:
    def refuse(self: Provider, request: ReceivedRequest) -> object:
        return json_response(status, {"error": "no"})

    monkeypatch.setattr(Provider, "_choose_response", refuse)
    async with Provider() as provider:
        assert await find_problem("x", Settings(api_base=provider.base_url), Path("/")) == problem


async def test_a_known_model_of_a_provider_with_a_key_is_not_asked_for() -> None:
    assert await find_problem("openai/gpt-4o", KEYS, Path("/")) == ""
    assert await find_problem("gemini/gemini-2.5-flash", KEYS, Path("/")) == ""


def test_a_server_may_have_a_model_named_like_a_provider() -> None:
    settings = Settings(api_base="http://127.0.0.1:9/v1")
    assert check_name("mistral", settings, Path("/")) == NameCheck()
