"""Without a configured model, a running local server is detected, or the error says what to do."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from agent.model.local_server import (
    LOCAL_SERVERS,
    NO_MODEL,
    NO_MODEL_HINT,
    LocalModel,
    LocalServer,
    find_local_server,
    raise_no_model,
)
from agent.vocabulary.errors import ModelSetupError

OLLAMA, LLAMACPP, LM_STUDIO = LOCAL_SERVERS
TAGS = json.dumps({"models": [{"name": "nomic-embed-text"}, {"name": "qwen2.5:7b"}]}).encode()
MODELS = json.dumps({"object": "list", "data": [{"id": "qwen"}]}).encode()


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def chunked(body: bytes) -> bytes:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"


@asynccontextmanager
async def running_server(kind: LocalServer, answer: bytes | None) -> AsyncIterator[LocalServer]:
    """Answer every request at some free port with the same bytes; None never answers."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(f"GET {kind.path} HTTP/1.1\r\n".encode())
        if answer is not None:
            writer.write(answer)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield replace(kind, port=server.sockets[0].getsockname()[1])
    finally:
        for writer in writers:
            writer.close()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def closed_port(kind: LocalServer) -> AsyncIterator[LocalServer]:
    async with running_server(kind, b"") as busy:
        pass
    yield busy


@pytest.mark.parametrize(
    ("kind", "answer", "model"),
    [
        (OLLAMA, ok(TAGS), "ollama/qwen2.5:7b"),
        (OLLAMA, chunked(TAGS), "ollama/qwen2.5:7b"),
        (LLAMACPP, ok(MODELS), "llamacpp/qwen"),
        (LM_STUDIO, b"HTTP/1.0 200 OK\r\n\r\n" + MODELS, "lm-studio/qwen"),
    ],
)
async def test_a_running_server_offers_its_model(kind: LocalServer, answer: bytes, model: str) -> None:
    async with running_server(kind, answer) as here:
        found = await find_local_server([here], limit_s=5)
        assert found == LocalModel(model=model, api_base=f"http://127.0.0.1:{here.port}/v1", provider=kind.provider)


async def test_the_first_server_in_order_wins() -> None:
    async with running_server(OLLAMA, chunked(TAGS)) as ollama, running_server(LLAMACPP, ok(MODELS)) as llama:
        found = await find_local_server([ollama, llama], limit_s=5)
        assert found is not None and found.provider == "ollama"


async def test_a_server_without_models_is_skipped() -> None:
    empty = ok(b'{"models": []}')
    async with (
        running_server(OLLAMA, empty) as ollama,
        closed_port(LLAMACPP) as llama,
        running_server(LM_STUDIO, ok(MODELS)) as studio,
    ):
        found = await find_local_server([ollama, llama, studio], limit_s=5)
        assert found is not None and found.provider == "lm-studio"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n" + MODELS,
        ok(b"<html>"),
        ok(b"[1]"),
        ok(b'{"data": "none"}'),
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
async def test_other_programs_on_the_port_are_ignored(answer: bytes) -> None:
    async with running_server(LLAMACPP, answer) as here:
        assert await find_local_server([here], limit_s=5) is None


async def test_silent_servers_are_given_up_after_the_limit() -> None:
    async with running_server(OLLAMA, None) as one, running_server(LLAMACPP, None) as two, asyncio.timeout(30):
        assert await find_local_server([one, two], limit_s=0.1) is None


def test_without_any_model_the_error_lists_the_ways_to_set_one() -> None:
    with pytest.raises(ModelSetupError) as caught:
        raise_no_model()
    assert (caught.value.exit_code, caught.value.message, caught.value.hint) == (41, NO_MODEL, NO_MODEL_HINT)
