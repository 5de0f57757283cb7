"""The model to use if none is set: one served on this machine, or an error with instructions."""

import asyncio
import json
from collections.abc import Sequence
from typing import NoReturn

from agent.model.faults import ModelFault
from agent.model.http.exchange import fetch
from agent.model.json_values import objects_at, text_at
from agent.vocabulary.errors import ModelSetupError
from tooling.contract.fast_dataclass import dataclass

HOST = "127.0.0.1"
PROBE_TIMEOUT_S = 0.4
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A kind of local server: its address and its endpoint for listing models."""

    provider: str
    port: int
    path: str = "/v1/models"
    list_key: str = "data"
    name_key: str = "id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A local server and the model it offers."""

    model: str
    api_base: str
    provider: str


LOCAL_SERVERS = (
    LocalServer(provider="ollama", port=11434, path="/api/tags", list_key="models", name_key="name"),
    LocalServer(provider="llamacpp", port=8080),
    LocalServer(provider="lm-studio", port=1234),
)


async def find_local_server(
    servers: Sequence[LocalServer] = LOCAL_SERVERS, limit_s: float = PROBE_TIMEOUT_S
) -> LocalModel | None:
    """Probe all servers concurrently; return the first one, in the given order, that offers a model."""
    probes = [asyncio.create_task(_probe(server, limit_s)) for server in servers]
    try:
        for probe in probes:
            if found := await probe:
                return found
        return None
    finally:
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)


NO_MODEL = "no model is set, and no local model server was found"
NO_MODEL_HINT = """\
do one of the following:
  1. set an API key, such as OPENAI_API_KEY or ANTHROPIC_API_KEY, and pass `--model provider/name`
  2. set a default model: `agent config set model provider/name`
  3. start a local server: `ollama run qwen2.5-coder`; ollama, llama.cpp and LM Studio are detected automatically
`agent demo` needs no model."""


def raise_no_model() -> NoReturn:
    """Raise the error that lists the ways to set a model."""
    raise ModelSetupError(NO_MODEL, NO_MODEL_HINT)


async def _probe(server: LocalServer, limit_s: float) -> LocalModel | None:
    try:
        status, body = await fetch(f"http://{HOST}:{server.port}{server.path}", {}, {}, limit_s)
        data: object = json.loads(body) if status == _OK else None
    # Anything may listen on these ports; only the expected response is a model server.
    except (ModelFault, ValueError, RecursionError):
        return None
    listed = objects_at(data, server.list_key) if isinstance(data, dict) else []
    names = [name for item in listed if (name := text_at(item, server.name_key)) and "embed" not in name]
    if not names:
        return None
    return LocalModel(
        model=f"{server.provider}/{names[0]}", api_base=f"http://{HOST}:{server.port}/v1", provider=server.provider
    )
