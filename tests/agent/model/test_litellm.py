"""Other providers are reached through litellm: imported late, its replies and errors translated."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent.config.settings import Settings
from agent.model.faults import FaultKind, ModelFault
from agent.model.litellm_client import Chunk, Library, LitellmClient
from agent.model.litellm_faults import fault_from_exception
from agent.model.port import CallDelta, ModelReply, ModelRequest, ReasoningDelta, StreamItem, TextDelta
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.usage import Usage

REQUEST = ModelRequest(model="gemini/flash", messages=(Message(role="user", content="hi"),), max_output_tokens=9)
SETTINGS = Settings(keys={"gemini": "key-123456"}, chunk_timeout_s=5, first_byte_timeout_s=5)
ROOT = Path(__file__).parents[3]


class Refusal(Exception):
    pass


@dataclass
class FakeChunk:
    data: dict[str, object]

    def model_dump_json(self) -> str:
        return json.dumps(self.data)


def chunk(finish: str | None = None, **delta: object) -> FakeChunk:
    return FakeChunk({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@dataclass
class FakeLitellm:
    """Stands in for litellm: yields chunks, raises exceptions, waits for events."""

    items: list[FakeChunk | Exception | asyncio.Event]
    at_call: Exception | None = None
    received: dict[str, object] = field(default_factory=dict)
    cleanup_count: int = 0

    def library(self) -> Library:
        return Library(complete=self.complete, errors=(Refusal,), clean_up=self.clean_up)

    async def complete(self, **options: object) -> AsyncIterator[Chunk]:
        self.received = options
        if self.at_call:
            raise self.at_call
        return self.chunks()

    async def chunks(self) -> AsyncIterator[Chunk]:
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, asyncio.Event):
                await item.wait()
            else:
                yield item

    async def clean_up(self) -> None:
        self.cleanup_count += 1


def client(fake: FakeLitellm, settings: Settings = SETTINGS) -> LitellmClient:
    return LitellmClient(settings, lambda model, usage: 0.25, load=fake.library)


async def collect(model: LitellmClient, request: ModelRequest = REQUEST) -> list[StreamItem]:
    return [item async for item in model.stream(request)]


async def test_a_reply_is_streamed_and_priced() -> None:
    usage = FakeChunk({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}})
    fake = FakeLitellm([chunk(reasoning_content="hm"), chunk(content="Hel"), chunk("stop", content="lo"), usage])
    model = client(fake)
    assert await collect(model) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Hel"),
        TextDelta(text="lo"),
        ModelReply(
            message=Message(role="assistant", content="Hello", reasoning="hm"),
            usage=Usage(input_tokens=4, output_tokens=2, requests=1, cost_usd=0.25),
            model="gemini/flash",
        ),
    ]
    assert fake.received["model"] == "gemini/flash"
    assert fake.received["messages"] == [{"role": "user", "content": "hi"}]
    assert (fake.received["api_key"], fake.received["max_tokens"], fake.received["stream"]) == ("key-123456", 9, True)
    assert fake.received["api_base"] is None
    assert fake.received["stream_options"] == {"include_usage": True}
    await model.close()
    await model.close()
    assert fake.cleanup_count == 2


async def test_tool_calls_are_assembled_from_fragments() -> None:
    first = {"index": 0, "id": "c1", "function": {"name": "ls", "arguments": '{"path"'}}
    second = {"index": 0, "function": {"arguments": ': "."}'}}
    fake = FakeLitellm([chunk(tool_calls=[first]), chunk("tool_calls", tool_calls=[second])])
    *fragments, reply = await collect(client(fake))
    assert fragments == [CallDelta(index=0, name="ls", text='{"path"'), CallDelta(index=0, name="ls", text=': "."}')]
    assert isinstance(reply, ModelReply)
    assert reply.message.tool_calls == (ToolCall(id="c1", name="ls", arguments={"path": "."}),)


async def test_the_import_starts_once_and_in_the_background() -> None:
    threads: list[threading.Thread] = []
    may_load = threading.Event()

    def load() -> Library:
        threads.append(threading.current_thread())
        may_load.wait(10)
        return FakeLitellm([chunk("stop", content="ok")]).library()

    model = LitellmClient(SETTINGS, lambda model, usage: None, load=load)
    model.warm_up()
    model.warm_up()
    waiting = asyncio.create_task(collect(model))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    may_load.set()
    assert (await collect(model))[0] == TextDelta(text="ok")
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_closing_does_not_wait_for_the_import() -> None:
    never = threading.Event()
    model = LitellmClient(
        SETTINGS, lambda model, usage: None, load=lambda: (never.wait(20), FakeLitellm([]))[1].library()
    )
    await model.close()
    model.warm_up()
    await asyncio.wait_for(model.close(), 15)
    never.set()


async def test_a_failed_import_is_reported() -> None:
    def load() -> Library:
        raise ImportError("No module named litellm")

    with pytest.raises(ModelFault, match="gemini/flash has no direct client, and litellm cannot be imported") as caught:
        await collect(LitellmClient(SETTINGS, lambda model, usage: None, load=load))
    assert caught.value.kind == "unknown_model"


async def test_errors_before_and_during_the_stream_are_faults_without_the_key() -> None:
    with pytest.raises(ModelFault) as caught:
        await collect(client(FakeLitellm([], at_call=Refusal("key-123456 is bad"))))
    assert (caught.value.kind, caught.value.detail) == ("malformed", "Refusal: [key] is bad")
    with pytest.raises(ModelFault, match="KeyError"):
        await collect(client(FakeLitellm([chunk(content="x"), KeyError("choices")])))
    with pytest.raises(ModelFault) as caught:
        await collect(client(FakeLitellm([chunk(content="half")])))
    assert caught.value.kind == "reset"


@pytest.mark.parametrize(("has_started", "kind"), [(False, "first_byte"), (True, "between_chunks")])
async def test_a_timeout_is_a_fault_of_its_phase(has_started: bool, kind: FaultKind) -> None:
    settings = replace(SETTINGS, chunk_timeout_s=0.02, first_byte_timeout_s=0.02)
    fake = FakeLitellm([*([chunk(content="x")] if has_started else []), asyncio.Event()])
    with pytest.raises(ModelFault) as caught:
        await collect(client(fake, settings))
    assert caught.value.kind == kind


def make_error(name: str, message: str, status: int | None = None, headers: object = None) -> Exception:
    error: Exception = type(name, (Exception,), {})(message)
    response = type("Response", (), {"headers": headers})()
    error.__dict__.update(status_code=status, response=response)
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (make_error("AuthenticationError", "litellm.AuthenticationError: bad key", 401), "auth"),
        (
            make_error("AuthenticationError", "Missing Gemini API key. Traceback (most recent call last): x", 401),
            "missing",
        ),
        (make_error("RateLimitError", "slow down", 429), "rate_limit"),
        (make_error("RateLimitError", "insufficient_quota", 429), "quota"),
        (make_error("ContextWindowExceededError", "too long", 400), "overflow"),
        (make_error("BadRequestError", "LLM Provider NOT provided.", 400), "unknown_model"),
        (make_error("BadRequestError", "no", 400), "refused"),
        (make_error("NotFoundError", "which?", 404), "unknown_model"),
        (make_error("ServiceUnavailableError", "later", 503), "overloaded"),
        (make_error("InternalServerError", "oops", 500), "server"),
        (make_error("InternalServerError", "Cannot connect to host x:443", 500), "connect"),
        (make_error("APIConnectionError", "oops", 500), "connect"),
        (make_error("Timeout", "slow", 408), "first_byte"),
        (make_error("ContentPolicyViolationError", "no", 400), "filtered"),
        (ImportError("No module named 'boto3'"), "unknown_model"),
        (TypeError("'NoneType' object"), "malformed"),
    ],
)
def test_exceptions_are_mapped_by_name_and_status(error: Exception, kind: FaultKind) -> None:
    fault = fault_from_exception(error)
    assert fault.kind == kind
    assert "litellm." not in fault.detail
    assert "Traceback" not in fault.detail


def test_an_unreachable_host_is_named_without_the_noise_of_libraries() -> None:
    noise = "Cannot connect to host api.cohere.com:443 ssl:<ssl.SSLContext object at 0x7f> [Name or service not known]"
    fault = fault_from_exception(make_error("InternalServerError", f"CohereException - {noise}", 500))
    assert str(fault) == (
        "could not connect to the provider: Cannot connect to host api.cohere.com:443 [Name or service not known]"
    )


def test_retry_after_is_preserved() -> None:
    assert fault_from_exception(make_error("RateLimitError", "x", 429, {"retry-after": "7"})).retry_after_s == 7


REAL = """
import asyncio, os, sys
from dataclasses import replace
from agent.config.settings import Settings
from agent.model.faults import ModelFault
from agent.model.litellm_client import LitellmClient, import_litellm
from agent.model.port import ModelReply, ModelRequest
from agent.vocabulary.message import Message

def load(mock):
    library = import_litellm()
    return replace(library, complete=lambda **options: library.complete(**options, mock_response=mock))

async def main():
    assert "litellm" not in sys.modules
    request = ModelRequest(model="gemini/gemini-2.0-flash", messages=(Message(role="user", content="hi"),))
    model = LitellmClient(Settings(), lambda model, usage: 0.5, load=lambda: load("Hello from afar."))
    reply = [item async for item in model.stream(request)][-1]
    assert isinstance(reply, ModelReply), reply
    assert reply.message.content == "Hello from afar.", reply
    assert reply.usage.output_tokens > 0 and reply.usage.cost_usd == 0.5, reply
    await model.close()
    limited = LitellmClient(Settings(), lambda model, usage: None, load=lambda: load("litellm.RateLimitError"))
    try:
        async for _ in limited.stream(request):
            pass
    except ModelFault as fault:
        assert fault.kind == "rate_limit", fault
    else:
        raise AssertionError("no fault")
    await limited.close()
    assert "UNWANTED" not in os.environ
    os.write(1, b"fine")

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_real_library_replies_silently_and_ignores_the_workspace(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("UNWANTED=1\n")
    done = subprocess.run(
        [sys.executable, "-c", REAL],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"fine", b"", 0)
