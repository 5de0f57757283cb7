"""The HTTP client: connections, timeouts, cancellation, start-up."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest
from agent.model.wire.http_client import HttpModelClient
from agent.vocabulary.message import Message
from tests.provider import openai_frames
from tests.provider.client_harness import MODELS, REQUEST, ask, no_price, settings_for
from tests.provider.replies import Calls, Hang, HttpResponse, Pace, Reply, Reset, ResponsePart, Text
from tests.provider.server import Fault, Provider, ReceivedRequest
from tests.provider.threaded import ThreadedProvider


async def final_reply(client: HttpModelClient, request: ModelRequest = REQUEST) -> ModelReply:
    items = [item async for item in client.stream(request)]
    assert isinstance(items[-1], ModelReply)
    return items[-1]


@pytest.mark.parametrize("model", MODELS)
async def test_consecutive_turns_share_one_connection(model: str) -> None:
    async with Provider(otherwise=Text("yes")) as provider:
        client = HttpModelClient(settings_for(provider), no_price)
        for _ in range(5):
            await final_reply(client, replace(REQUEST, model=model))
        await client.close()
    assert (len(provider.requests), provider.connections) == (5, 1)


async def test_a_server_slow_to_close_a_finished_reply_does_not_delay_the_turn() -> None:
    async with Provider(Reply(text="yes", pace=Pace(end_s=30))) as provider:
        result = await asyncio.wait_for(ask(provider), timeout=120)
    assert result.reply.message.content == "yes"


@pytest.mark.parametrize("ending", [Hang(), Reset()])
async def test_a_server_that_fails_after_the_reply_finished_is_no_fault(ending: ResponsePart) -> None:
    finished = [part for part in openai_frames.frames(Text("yes"), "m") if part != openai_frames.DONE]
    async with Provider(HttpResponse(parts=(*finished, ending))) as provider:
        result = await ask(provider, chunk_timeout_s=0.3)
    assert (result.reply.message.content, result.reply.usage.input_tokens, result.waits) == ("yes", 100, [])


async def test_a_proxy_is_used_for_external_hosts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Provider(Text("inside")) as provider, Provider(Text("outside")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "")
        inside = settings_for(provider)
        clients = [HttpModelClient(inside, no_price)]
        clients += [HttpModelClient(replace(inside, api_base="http://provider.invalid/v1"), no_price)]
        answers = [(await final_reply(client)).message.content for client in clients]
        for client in clients:
            await client.close()
    assert answers == ["inside", "outside"]
    assert proxy.requests[0].path == "http://provider.invalid/v1/chat/completions"


async def test_concurrent_requests_use_their_own_connections() -> None:
    together = asyncio.Barrier(8)
    async with Provider(otherwise=Text("yes", pace=Pace(head_s=0.2))) as provider:
        client = HttpModelClient(settings_for(provider), no_price)

        async def one() -> ModelReply:
            await together.wait()
            return await final_reply(client)

        replies = await asyncio.gather(*(one() for _ in range(8)))
        await client.close()
    assert (len(replies), provider.connections) == (8, 8)


async def test_a_slow_reply_within_the_timeouts_is_no_fault() -> None:
    pace = Pace(head_s=0.1, first_s=0.1, between_s=0.05)
    async with Provider(Text("slow but steady, all along", pace=pace)) as provider:
        result = await ask(provider, chunk_timeout_s=2.0, first_byte_timeout_s=2.0)
    assert result.text == "slow but steady, all along"


async def test_the_client_is_usable_after_a_cancelled_request() -> None:
    is_asked = asyncio.Event()

    def stay_silent(request: ReceivedRequest) -> Fault:
        is_asked.set()
        return Fault(name="silence")

    async with Provider() as provider:
        provider.reply(stay_silent, Text("yes"))
        client = HttpModelClient(settings_for(provider), no_price)
        asking = asyncio.create_task(final_reply(client))
        await is_asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await final_reply(client)).message.content == "yes"
        await client.close()


async def test_the_client_is_usable_after_a_stream_is_closed_early() -> None:
    async with Provider(Text("word " * 50, pace=Pace(between_s=0.01)), Text("yes")) as provider:
        client = HttpModelClient(settings_for(provider), no_price)
        stream = client.stream(REQUEST)
        await anext(stream)
        await stream.aclose()
        assert (await final_reply(client)).message.content == "yes"
        await client.close()


@pytest.mark.parametrize("model", MODELS)
async def test_a_reply_that_is_not_streamed_is_parsed(model: str) -> None:
    async with Provider(Reply(text="so", calls=(("look", {"x": 1}),), ignores_stream=True)) as provider:
        result = await ask(provider, replace(REQUEST, model=model))
    (call,) = result.reply.message.tool_calls
    assert (result.text, call.name, call.arguments) == ("so", "look", {"x": 1})


async def test_a_lone_surrogate_in_a_message_is_replaced() -> None:
    async with Provider(Text("yes")) as provider:
        await ask(provider, replace(REQUEST, messages=(Message(role="user", content="a\udce4b"),)))
    assert provider.requests[0].body["messages"] == [{"role": "user", "content": "a?b"}]


async def test_a_provider_that_needs_litellm_is_rejected() -> None:
    async with Provider() as provider:
        client = HttpModelClient(replace(settings_for(provider), api_base=""), no_price)
        with pytest.raises(ModelFault) as caught:
            await final_reply(client, replace(REQUEST, model="bedrock/x"))
    assert caught.value.kind == "unknown_model"


async def test_plain_http_does_not_load_the_certificate_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(environ: Mapping[str, str]) -> None:
        raise AssertionError("the certificate store was loaded")

    monkeypatch.setattr("agent.model.http.stream_transport.create_tls_context", refuse)
    async with Provider(Text("yes")) as provider:
        assert (await ask(provider)).reply.message.content == "yes"


def test_importing_the_client_imports_no_http_library() -> None:
    program = (
        "import sys, agent.model.wire.http_client;"
        "assert not {'httpx', 'anyio', 'h11', 'email', 'http', 'litellm', 'pydantic'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_the_threaded_provider_serves_the_same_script() -> None:
    def by_question(request: ReceivedRequest) -> Reply:
        return Calls(("look", {})) if "look" in str(request.body["messages"]) else Text("no need")

    with ThreadedProvider(otherwise=by_question) as threaded:
        client = HttpModelClient(settings_for(threaded), no_price)
        plain = await final_reply(client)
        looking = await final_reply(client, replace(REQUEST, messages=(Message(role="user", content="look"),)))
        await client.close()
    assert plain.message.content == "no need"
    assert [call.name for call in looking.message.tool_calls] == ["look"]
    assert [request.connection for request in threaded.requests] == [1, 1]
    assert all(request.answered_at and request.answered_at >= request.received_at for request in threaded.requests)
