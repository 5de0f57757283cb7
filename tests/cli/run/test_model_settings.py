"""Which model is asked, where, with which key and at which price, as settings and the environment say."""

import json

import pytest

from tests.cli.terminal_user import User
from tests.provider.replies import Text
from tests.provider.server import ReceivedRequest
from tests.provider.threaded import ThreadedProvider

pytestmark = pytest.mark.slow

KEY = "sk-SENTINEL-0123456789abcdef"
ANSWER = Text('{"answer": "42"}')
# Cheaper than one request to gpt-4o.
TINY = ("--max-budget-usd", "0.0001")


@pytest.mark.parametrize("model", ["gpt-4o-mini", "my-model", "openai/gpt-4o-mini"])
def test_the_three_variables_of_openai_are_enough(user: User, model: str) -> None:
    with ThreadedProvider(ANSWER) as provider:
        ended = user.agent(
            "run", "what is it?", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=provider.base_url, OPENAI_MODEL=model
        )
    assert (ended.exit_code, ended.stdout) == (0, "42\n"), ended.stderr
    (request,) = provider.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert request.body["model"] == model.removeprefix("openai/")


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "my-model"])
def test_the_three_variables_of_anthropic_are_enough(user: User, model: str) -> None:
    with ThreadedProvider(ANSWER) as provider:
        base = provider.base_url.removesuffix("/v1")
        ended = user.agent("run", "what is it?", ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=base, ANTHROPIC_MODEL=model)
    assert (ended.exit_code, ended.stdout) == (0, "42\n"), ended.stderr
    (request,) = provider.requests
    assert (request.path, request.headers["x-api-key"], request.body["model"]) == ("/v1/messages", KEY, model)


def test_the_key_of_one_provider_is_never_sent_to_the_server_of_another(user: User) -> None:
    with ThreadedProvider(otherwise=ANSWER) as openai, ThreadedProvider(otherwise=ANSWER) as anthropic:
        urls = {"OPENAI_BASE_URL": openai.base_url, "ANTHROPIC_BASE_URL": anthropic.base_url}
        keys = {"OPENAI_API_KEY": "sk-openai-0123456789", "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
        for model in ("gpt-4o-mini", "anthropic/claude-sonnet-4-5"):
            assert user.agent("run", "what is it?", "--model", model, **urls, **keys).stdout == "42\n"
    assert [request.headers["authorization"] for request in openai.requests] == ["Bearer sk-openai-0123456789"]
    assert [request.headers["x-api-key"] for request in anthropic.requests] == ["sk-ant-0123456789"]


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_a_cost_limit_stops_a_paid_model_behind_a_proxy_on_this_machine(user: User, model: str) -> None:
    with ThreadedProvider(otherwise=ANSWER) as provider:
        address = ("--set", f"api_base={provider.base_url}", "--set", f"api_key={KEY}")
        ended = user.agent("run", "what is it?", "--model", model, *address, *TINY)
    assert (ended.exit_code, len(provider.requests)) == (56, 0)
    assert "the limit of $0.0001" in ended.stderr


def test_a_model_without_a_known_price_counts_as_free_with_a_warning(user: User) -> None:
    with ThreadedProvider(ANSWER) as provider:
        address = ("--set", f"api_base={provider.base_url}")
        ended = user.agent("run", "what is it?", "--model", "my-model", *address, *TINY)
    assert (ended.exit_code, ended.stdout) == (0, "42\n")
    assert "warning: the price of my-model is unknown" in ended.stderr


def test_a_price_in_the_settings_file_makes_the_limit_work(user: User) -> None:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[models."my-model"]\ninput_price = 500\noutput_price = 1000\n')
    with ThreadedProvider(otherwise=ANSWER) as provider:
        address = ("--set", f"api_base={provider.base_url}")
        ended = user.agent("run", "what is it?", "--model", "my-model", *address, *TINY)
    assert (ended.exit_code, len(provider.requests)) == (56, 0)


def test_the_answer_of_a_plan_is_composed_by_its_own_model(user: User) -> None:
    steps = [{"id": name, "title": name, "instruction": f"do {name}"} for name in ("a", "b")]

    def reply(request: ReceivedRequest) -> Text:
        return {
            "planner": Text(json.dumps({"steps": steps})),
            "composer": Text("All is done [a] [b]."),
        }.get(str(request.body["model"]), Text("I did my part."))

    with ThreadedProvider(otherwise=reply) as provider:
        settings = (f"api_base={provider.base_url}", "planner_model=planner", "composer_model=composer")
        words = [word for setting in settings for word in ("--set", setting)]
        ended = user.agent("run", "do both", "--model", "worker", *words)
    assert (ended.exit_code, ended.stdout.startswith("All is done")) == (0, True), ended.stderr
    models = [request.body["model"] for request in provider.requests]
    assert (models[0], sorted(models[1:3]), models[3]) == ("planner", ["worker", "worker"], "composer")


def test_a_key_in_the_env_file_beside_the_settings_is_used_and_never_shown(user: User) -> None:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('model = "${MY_MODEL}"\napi_base = "${MY_SERVER}"\n')
    (folder / ".env").write_text(f"MY_MODEL=some-model\nOPENAI_API_KEY={KEY}\n")
    (folder / ".env").chmod(0o600)
    # What a cloned repository contains is not read.
    (user.home / ".env").write_text("MY_MODEL=evil\nOPENAI_API_KEY=evil\n")
    with ThreadedProvider(Text(f'{{"answer": "your key is {KEY}"}}')) as provider:
        ended = user.agent("run", "what is it?", "--output-format", "stream-json", MY_SERVER=provider.base_url)
    (request,) = provider.requests
    assert (request.body["model"], request.headers["authorization"]) == ("some-model", f"Bearer {KEY}")
    stored = [path.read_bytes() for path in user.data.rglob("*") if path.is_file()]
    assert ended.exit_code == 0 and stored
    assert KEY not in ended.stdout + ended.stderr and not any(KEY.encode() in content for content in stored)


def test_a_variable_that_is_not_set_is_a_configuration_error(user: User) -> None:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('model = "${MY_MODEL}"\n')
    ended = user.agent("run", "what is it?")
    assert ended.exit_code == 52
    assert "config.toml:1: model: the variable MY_MODEL is not set" in ended.stderr
