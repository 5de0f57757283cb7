"""Resolving a model name to an endpoint."""

import pytest

from agent.config.settings import Settings
from agent.model.faults import ModelFault
from agent.model.providers import Endpoint, resolve

KEYS = {"openai": "ko", "anthropic": "ka", "openrouter": "kr", "together": "kt", "gemini": "kg"}
LOCAL = Settings(api_base="http://127.0.0.1:9/v1/", api_key="kb", keys={"openai": "ko", "groq": "kq"})


def resolved_fields(settings: Settings, model: str) -> tuple[str, str, str, str, str]:
    found = resolve(model, settings)
    return found.provider, found.wire, found.base_url, found.key, found.model


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/gpt-4o", ("openai", "openai", "https://api.openai.com/v1", "ko", "gpt-4o")),
        ("gpt-5-mini", ("openai", "openai", "https://api.openai.com/v1", "ko", "gpt-5-mini")),
        ("o3", ("openai", "openai", "https://api.openai.com/v1", "ko", "o3")),
        ("claude-x", ("anthropic", "anthropic", "https://api.anthropic.com/v1", "ka", "claude-x")),
        ("openrouter/a/b:free", ("openrouter", "openai", "https://openrouter.ai/api/v1", "kr", "a/b:free")),
        ("together_ai/meta/l", ("together", "openai", "https://api.together.xyz/v1", "kt", "meta/l")),
        ("ollama/qwen3:8b", ("ollama", "openai", "http://127.0.0.1:11434/v1", "", "qwen3:8b")),
        ("llama.cpp/any", ("llamacpp", "openai", "http://127.0.0.1:8080/v1", "", "any")),
        ("lm_studio/any", ("lm-studio", "openai", "http://127.0.0.1:1234/v1", "", "any")),
        ("hosted_vllm/org/m", ("vllm", "openai", "http://127.0.0.1:8000/v1", "", "org/m")),
        ("gemini/pro", ("gemini", "litellm", "", "kg", "gemini/pro")),
        ("strange", ("", "litellm", "", "", "strange")),
    ],
)
def test_a_model_name_is_resolved_to_its_provider(model: str, expected: tuple[str, ...]) -> None:
    assert resolved_fields(Settings(keys=KEYS), model) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("openai/x", ("openai", "openai", "http://127.0.0.1:9/v1", "kb", "x")),
        ("anthropic/x", ("anthropic", "anthropic", "http://127.0.0.1:9/v1", "kb", "x")),
        ("Qwen/Qwen3-8B", ("api_base", "openai", "http://127.0.0.1:9/v1", "kb", "Qwen/Qwen3-8B")),
        ("qwen", ("api_base", "openai", "http://127.0.0.1:9/v1", "kb", "qwen")),
        ("claude-x", ("api_base", "openai", "http://127.0.0.1:9/v1", "kb", "claude-x")),
        ("vllm/org/m", ("vllm", "openai", "http://127.0.0.1:9/v1", "kb", "org/m")),
        ("groq/m", ("groq", "openai", "https://api.groq.com/openai/v1", "kq", "m")),
    ],
)
def test_api_base_is_used_for_models_it_may_serve(model: str, expected: tuple[str, ...]) -> None:
    assert resolved_fields(LOCAL, model) == expected


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("gpt-4o-mini", "ko"),
        ("qwen", "ko"),
        ("Qwen/Qwen3-8B", "ko"),
        ("openai/x", "ko"),
        ("vllm/x", ""),
        ("anthropic/x", "ka"),
    ],
)
def test_a_server_without_a_key_of_its_own_gets_that_of_openai_but_of_no_other_provider(model: str, key: str) -> None:
    assert resolve(model, Settings(api_base="http://127.0.0.1:9/v1", keys=KEYS)).key == key


BASES = {"anthropic": "https://proxy.example/claude", "openai": "http://127.0.0.1:9", "together": "http://t/v2/"}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/x", ("anthropic", "anthropic", "https://proxy.example/claude/v1", "ka", "x")),
        ("claude-x", ("anthropic", "anthropic", "https://proxy.example/claude/v1", "ka", "claude-x")),
        ("gpt-5", ("openai", "openai", "http://127.0.0.1:9/v1", "ko", "gpt-5")),
        ("qwen", ("openai", "openai", "http://127.0.0.1:9/v1", "ko", "qwen")),
        ("together_ai/m", ("together", "openai", "http://t/v2", "kt", "m")),
        ("groq/m", ("groq", "openai", "https://api.groq.com/openai/v1", "kq", "m")),
    ],
)
def test_a_provider_may_have_a_base_url_of_its_own(model: str, expected: tuple[str, ...]) -> None:
    assert resolved_fields(Settings(keys={**KEYS, "groq": "kq"}, api_bases=BASES), model) == expected


def test_the_base_url_of_a_provider_comes_before_api_base_and_needs_no_key() -> None:
    settings = Settings(api_base="http://127.0.0.1:1/v1", api_bases={"anthropic": "http://127.0.0.1:2"})
    assert resolve("claude-x", settings).base_url == "http://127.0.0.1:2/v1"
    assert resolve("gpt-5", settings).base_url == "http://127.0.0.1:1/v1"


def test_a_provider_behind_litellm_may_have_a_base_url() -> None:
    settings = Settings(api_bases={"gemini": "http://127.0.0.1:2"}, keys=KEYS)
    assert resolved_fields(settings, "gemini/pro") == ("gemini", "litellm", "http://127.0.0.1:2", "kg", "gemini/pro")


def test_an_api_base_without_a_path_gets_v1() -> None:
    assert resolve("m", Settings(api_base="http://host:8080")).base_url == "http://host:8080/v1"


@pytest.mark.parametrize("address", ["host:8080/v1", "http://", "ftp://host/v1", "http://host:99999999/v1"])
def test_an_invalid_api_base_is_reported(address: str) -> None:
    with pytest.raises(ModelFault, match="api_base") as caught:
        resolve("m", Settings(api_base=address))
    assert caught.value.kind == "connect"


@pytest.mark.parametrize(("model", "variable"), [("gpt-4o", "OPENAI_API_KEY"), ("groq/x", "GROQ_API_KEY")])
def test_a_missing_key_is_reported_with_its_variable(model: str, variable: str) -> None:
    with pytest.raises(ModelFault, match=variable) as caught:
        resolve(model, Settings())
    assert (caught.value.kind, caught.value.policy.exit_code) == ("missing", 41)


def test_a_key_is_stripped_and_an_invalid_one_is_rejected_without_showing_it() -> None:
    assert resolve("gpt-4o", Settings(api_key=" ko\n")).key == "ko"
    with pytest.raises(ModelFault) as caught:
        resolve("gpt-4o", Settings(api_key="secret\nsecret"))
    assert (caught.value.kind, "secret" in str(caught.value)) == ("auth", False)


def test_an_endpoint_never_shows_its_key() -> None:
    assert "kb" not in repr(Endpoint(provider="p", wire="openai", base_url="u", key="kb", model="m"))
