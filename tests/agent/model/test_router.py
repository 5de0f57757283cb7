"""Each request goes to the client that serves its model; cassettes stand in front of all of them."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.config.settings import Settings
from agent.model import litellm_client
from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest, StreamItem
from agent.model.router import ModelRouter
from agent.vocabulary.errors import InputError, UsageError
from agent.vocabulary.message import Message
from tests.provider.client_harness import KEY, settings_for
from tests.provider.replies import Text
from tests.provider.server import Provider


def make_request(model: str, said: str = "hi") -> ModelRequest:
    return ModelRequest(model=model, messages=(Message(role="user", content=said),))


async def collect(switch: ModelRouter, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in switch.stream(request)]


async def reply(switch: ModelRouter, request: ModelRequest) -> ModelReply:
    last = (await collect(switch, request))[-1]
    assert isinstance(last, ModelReply)
    return last


def script(folder: Path, *lines: object) -> str:
    path = folder / "script.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return f"script:{path}"


async def test_models_of_all_kinds_share_one_run_and_one_connection(tmp_path: Path) -> None:
    async with Provider(Text("one"), Text("two"), Text("three")) as provider:
        switch = ModelRouter(settings_for(provider))
        scripted = script(tmp_path, {"text": "from the script"})
        said = [
            (await reply(switch, make_request(model))).message.content
            for model in ("openai/m", scripted, "some-name", "anthropic/m")
        ]
        await switch.close()
        await switch.close()
        assert said == ["one", "from the script", "two", "three"]
        assert provider.connections == 1


async def test_a_server_on_this_machine_costs_nothing() -> None:
    async with Provider(Text("one")) as provider:
        switch = ModelRouter(settings_for(provider))
        assert (await reply(switch, make_request("openai/gpt-4o"))).usage.cost_usd == 0.0
        await switch.close()


async def test_faults_that_may_pass_are_asked_again(tmp_path: Path) -> None:
    told: list[str] = []
    model = script(tmp_path, {"fault": "reset"}, {"text": "at last"})
    switch = ModelRouter(Settings(), on_retry=lambda fault, wait: told.append(fault.kind))
    assert (await reply(switch, make_request(model))).message.content == "at last"
    assert told == ["reset"]


async def test_a_missing_key_is_a_fault_and_no_crash() -> None:
    switch = ModelRouter(Settings(model="openai/gpt-4o"))
    switch.warm_up()
    with pytest.raises(ModelFault, match="OPENAI_API_KEY") as caught:
        await collect(switch, make_request("openai/gpt-4o"))
    assert caught.value.kind == "missing"
    await switch.close()


def test_a_broken_script_is_known_before_anything_is_asked(tmp_path: Path) -> None:
    model = script(tmp_path, {"txt": "x"})
    with pytest.raises(InputError, match="did you mean text"):
        ModelRouter(Settings(model=model))
    with pytest.raises(InputError, match="cannot read the script"):
        ModelRouter(Settings(planner_model="script:/nowhere.jsonl"))


async def test_other_providers_go_through_litellm_which_warms_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def load() -> litellm_client.Library:
        begun.set()
        raise ImportError("not today")

    monkeypatch.setattr(litellm_client, "import_litellm", load)
    ModelRouter(Settings(model="ollama/x", planner_model="script:/dev/null")).warm_up()
    assert not begun.is_set()
    switch = ModelRouter(Settings(model="gemini/flash"))
    switch.warm_up()
    assert begun.wait(5)
    with pytest.raises(ModelFault, match="not today"):
        await collect(switch, make_request("gemini/flash"))
    await switch.close()


async def test_a_recorded_run_is_replayed_without_server_or_key(tmp_path: Path) -> None:
    cassette = tmp_path / "run.jsonl"
    async with Provider(Text("one"), Text("two")) as provider:
        switch = ModelRouter(settings_for(provider), record=cassette, volatile={"/here": "<workspace>"})
        await collect(switch, make_request("openai/m", f"look at /here with {KEY}"))
        await collect(switch, make_request("openai/m", "and now?"))
        await switch.close()
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


def test_only_what_serves_is_imported(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "hi"})
    code = (
        "import asyncio, sys\n"
        "from agent.config.settings import Settings\n"
        "from agent.model.port import ModelRequest\n"
        "from agent.model.router import ModelRouter\n"
        "async def main():\n"
        f"    switch = ModelRouter(Settings(model={model!r}))\n"
        f"    async for _ in switch.stream(ModelRequest(model={model!r}, messages=())): pass\n"
        "    await switch.close()\n"
        "asyncio.run(main())\n"
        "heavy = {'httpx', 'litellm', 'pydantic', 'rich'}\n"
        "heavy |= {'agent.model.recorded.replaying', 'agent.model.litellm_client'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
