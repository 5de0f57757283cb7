"""Tools are sent through the real litellm to a server on loopback, with none of the optional packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source_tree import ROOT
from tests.provider.replies import Calls
from tests.provider.threaded import ThreadedProvider

pytestmark = pytest.mark.slow

SEND_TOOLS = """
import asyncio, importlib.abc, os, sys

class WithoutExtras(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"mcp", "fastapi", "uvicorn", "docker", "opentelemetry", "pypdf", "PIL"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, WithoutExtras())
from agent.config.settings import Settings
from agent.model.faults import ModelFault
from agent.model.litellm_client import LitellmClient
from agent.model.port import ModelRequest
from agent.vocabulary.message import Message

TOOL = {"type": "function", "function": {"name": "ls", "description": "List a folder.", "parameters": {
    "type": "object", "properties": {"path": {"type": "string"}}}}}

async def main():
    client = LitellmClient(Settings(api_key="key-123456"), lambda model, usage: None)
    for model in sys.argv[1:]:
        request = ModelRequest(model=model, messages=(Message(role="user", content="hi"),), tools=(TOOL,))
        try:
            *_, reply = [item async for item in client.stream(request)]
            print(model, *[f"{call.name} {call.arguments['path']}" for call in reply.message.tool_calls])
        except ModelFault as fault:
            print(model, fault)
    await client.close()

asyncio.run(main())
"""


def send_tools(provider: ThreadedProvider, home: Path, *models: str) -> dict[str, str]:
    """Send a request with a tool to each model; return the calls or the fault by model."""
    bases = {f"{name}_API_BASE": provider.base_url for name in ("CEREBRAS", "AZURE_AI", "PERPLEXITY")}
    done = subprocess.run(
        [sys.executable, "-c", SEND_TOOLS, *models],
        cwd=home,
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "HOME": str(home), **bases},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_tools_reach_every_kind_of_provider_without_the_optional_packages(tmp_path: Path) -> None:
    # The formats of OpenAI, Anthropic and the Responses API, of which our provider speaks the first two.
    openai, anthropic, responses = "cerebras/llama-3.3-70b", "azure_ai/claude-sonnet-4-5", "azure_ai/gpt-5.4-pro"
    with ThreadedProvider(otherwise=Calls(("ls", {"path": "."}))) as provider:
        found = send_tools(provider, tmp_path, openai, anthropic, responses)
    assert (found[openai], found[anthropic]) == ("ls .", "ls .")
    assert "No module named" not in found[responses] and "cannot import" not in found[responses]
    assert ["tools" in request.body for request in provider.requests] == [True, True, True]
