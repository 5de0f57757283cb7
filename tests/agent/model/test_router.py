"""Each request is routed to the client that serves its model; cassettes wrap all clients."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.config.settings import ModelSettings, Settings
from agent.model import litellm_client
from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest, StreamItem
from agent.model.router import UNPRICED, ModelRouter
from agent.vocabulary.errors import InputError, UsageError
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tests.provider.client_harness import KEY, settings_for
from tests.provider.replies import Text
from tests.provider.server import Provider


def make_request(model: str, text: str = "hi") -> ModelRequest:
    return ModelRequest(model=model, messages=(Message(role="user", content=text),))


async def collect(router: ModelRouter, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in router.stream(request)]


async def reply(router: ModelRouter, request: ModelRequest) -> ModelReply:
    last = (await collect(router, request))[-1]
    assert isinstance(last, ModelReply)
    return last


def script(folder: Path, *lines: object) -> str:
    path = folder / "script.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return f"script:{path}"


async def test_models_of_all_kinds_share_one_router_and_one_connection(tmp_path: Path) -> None:
    async with Provider(Text("one"), Text("two"), Text("three")) as provider:
        router = ModelRouter(settings_for(provider))
        scripted = script(tmp_path, {"text": "from the script"})
        answers = [
            (await reply(router, make_request(model))).message.content
            for model in ("openai/m", scripted, "some-name", "anthropic/m")
        ]
        await router.close()
        await router.close()
        assert answers == ["one", "from the script", "two", "three"]
        assert provider.connections == 1


USAGE = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


async def test_a_known_model_has_its_price_on_this_machine_too() -> None:
    async with Provider(Text("one")) as provider:
        router = ModelRouter(settings_for(provider))
        assert (await reply(router, make_request("openai/gpt-4o"))).usage.cost_usd == pytest.approx(0.00035)
        assert router.cost("gpt-4o", USAGE) == router.cost("openai/gpt-4o", USAGE) == 12.5
        await router.close()


def test_an_unknown_model_is_free_on_this_machine_and_a_cost_limit_warns_once() -> None:
    warnings: list[str] = []
    settings = Settings(api_base="http://127.0.0.1:9/v1", max_budget_usd=1)
    router = ModelRouter(settings, warn=warnings.append)
    assert [router.cost(model, USAGE) for model in ("my-model", "openai/my-model", "my-model")] == [0, 0, 0]
    assert warnings == [UNPRICED.format(model="my-model"), UNPRICED.format(model="openai/my-model")]
    assert ModelRouter(Settings(api_base="https://example.org/v1")).cost("my-model", USAGE) is None


def test_local_servers_are_free_without_a_warning() -> None:
    warnings: list[str] = []
    router = ModelRouter(Settings(max_budget_usd=1), warn=warnings.append)
    assert (router.cost("ollama/llama3", USAGE), router.cost("vllm/gpt-4o", USAGE), warnings) == (0, 0, [])


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (ModelSettings(input_price=1, output_price=2), 3),
        (ModelSettings(input_price=0, output_price=0), 0),
        (ModelSettings(output_price=1), 3.5),
        (ModelSettings(reasoning="low"), 12.5),
    ],
)
def test_prices_of_the_settings_come_before_those_of_the_table(prices: ModelSettings, cost: float) -> None:
    router = ModelRouter(Settings(models={"openai/gpt-4o": prices, "ollama/x": prices}))
    assert router.cost("openai/gpt-4o", USAGE) == pytest.approx(cost)


async def test_transient_faults_are_retried(tmp_path: Path) -> None:
    faults: list[str] = []
    model = script(tmp_path, {"fault": "reset"}, {"text": "at last"})
    router = ModelRouter(Settings(), on_retry=lambda fault, wait: faults.append(fault.kind))
    assert (await reply(router, make_request(model))).message.content == "at last"
    assert faults == ["reset"]


async def test_a_missing_key_is_a_fault() -> None:
    router = ModelRouter(Settings(model="openai/gpt-4o"))
    router.warm_up()
    with pytest.raises(ModelFault, match="OPENAI_API_KEY") as caught:
        await collect(router, make_request("openai/gpt-4o"))
    assert caught.value.kind == "missing"
    await router.close()


def test_a_broken_script_fails_before_the_first_request(tmp_path: Path) -> None:
    model = script(tmp_path, {"txt": "x"})
    with pytest.raises(InputError, match="did you mean text"):
        ModelRouter(Settings(model=model))
    with pytest.raises(InputError, match="cannot read the script"):
        ModelRouter(Settings(planner_model="script:/nowhere.jsonl"))


async def test_other_providers_use_litellm_which_is_imported_early(monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()

    def load() -> litellm_client.Library:
        started.set()
        raise ImportError("not today")

    monkeypatch.setattr(litellm_client, "import_litellm", load)
    ModelRouter(Settings(model="ollama/x", planner_model="script:/dev/null")).warm_up()
    assert not started.is_set()
    router = ModelRouter(Settings(model="gemini/flash"))
    router.warm_up()
    assert started.wait(5)
    with pytest.raises(ModelFault, match="not today"):
        await collect(router, make_request("gemini/flash"))
    await router.close()


async def test_a_recorded_run_is_replayed_without_server_or_key(tmp_path: Path) -> None:
    cassette = tmp_path / "run.jsonl"
    async with Provider(Text("one"), Text("two")) as provider:
        router = ModelRouter(settings_for(provider), record=cassette, volatile={"/here": "<workspace>"})
        await collect(router, make_request("openai/m", f"look at /here with {KEY}"))
        await collect(router, make_request("openai/m", "and now?"))
        await router.close()
    assert KEY not in cassette.read_text()
    replayed = ModelRouter(Settings(), replay=cassette, volatile={"/there": "<workspace>"})
    replayed.warm_up()
    first = await reply(replayed, make_request("openai/m", "look at /there with [key]"))
    second = await reply(replayed, make_request("openai/m", "and now?"))
    assert (first.message.content, second.message.content) == ("one", "two")
    await replayed.close()


def test_a_run_cannot_be_recorded_and_replayed_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        ModelRouter(Settings(), record=tmp_path / "a", replay=tmp_path / "b")


def test_unused_clients_are_not_imported(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "hi"})
    code = (
        "import asyncio, sys\n"
        "from agent.config.settings import Settings\n"
        "from agent.model.port import ModelRequest\n"
        "from agent.model.router import ModelRouter\n"
        "async def main():\n"
        f"    router = ModelRouter(Settings(model={model!r}))\n"
        f"    async for _ in router.stream(ModelRequest(model={model!r}, messages=())): pass\n"
        "    await router.close()\n"
        "asyncio.run(main())\n"
        "heavy = {'httpx', 'litellm', 'pydantic', 'rich'}\n"
        "heavy |= {'agent.model.recorded.replaying', 'agent.model.litellm_client'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
