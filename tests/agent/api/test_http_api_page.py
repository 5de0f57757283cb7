"""docs/http-api.md: every endpoint has a curl example, and every example works."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from agent.service.task import TaskState
from agent.service.workspaces.layout import WorkspaceStore
from tests.agent.api.page_scene import busy_server, write_end
from tests.agent.api.served import TOKEN, Server, WrittenRun, serve
from tests.house.source_tree import ROOT
from tests.programs import needs

PAGE = (ROOT / "docs" / "http-api.md").read_text()
_COMMAND = re.compile(r"^curl .*?[^\\]$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"\$URL(/[^\s\"?]*)")
_VARIABLE = re.compile(r"^\$|^(triage|ada)$")
# A container needs an engine; what a wrong one gets is the same reply as ever.
_NOT_FOUND = "/executor/containers/"


def examples() -> list[str]:
    """Return the commands of the page in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [command for block in blocks for command in _COMMAND.findall(block)]


def environment(server: Server, task_id: str, session: str) -> dict[str, str]:
    """Return the variables that the examples use."""
    return {
        "PATH": os.environ["PATH"],
        "URL": server.url,
        "TOKEN": TOKEN,
        "TASK": task_id,
        "QUESTION": "q-1",
        "APPROVAL": "a-1",
        "RUN": "run-finished",
        "SESSION": session,
        "CONTAINER": "exec-1",
    }


@needs("curl")
def test_every_example_works_in_the_order_of_the_page(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server, busy_server(server) as running:
        finished = WrittenRun(server.store, "s-finished", "run-finished")
        write_end(finished)
        task = server.task("count", TaskState.QUEUED)
        server.ask(running, "q-1", "Which color?", kind="question")
        WorkspaceStore(server.data / "workspaces").open("ada", "s-finished", "persistent")
        environ = environment(server, task.task_id, "s-finished")
        for command in examples():
            done = subprocess.run(
                ["bash", "-c", command], env=environ, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, command
            check_reply(command, done.stdout)
        assert server.bugs == []
    assert [task.request.schedule for task in server.engine.tasks.by_id.values()].count("triage") == 1


def check_reply(command: str, text: str) -> None:
    """Raise AssertionError unless an example got what the page promises."""
    if "/events" in command:
        assert text.rstrip().endswith('data: {"reason": "ended"}')
    elif "/metrics" in command:
        assert "windlass_http_requests_total" in text
    else:
        code = json.loads(text)["code"]
        assert code == (404 if _NOT_FOUND in command else 0), f"{command}: {text}"


def test_every_endpoint_has_an_example(tmp_path: Path) -> None:
    with serve(tmp_path / "data") as server, server.client() as client:
        document = client.get("/openapi.json").json()
    documented = {
        f"{verb.upper()} {re.sub(r'{[^}]*}', '*', path)}" for path, verbs in document["paths"].items() for verb in verbs
    }
    shown = set()
    for command in examples():
        match = _PATH.search(command)
        assert match, command
        verb = re.search(r"-X (\w+)", command)
        method = verb[1] if verb else "POST" if " -d " in command else "GET"
        shown.add(f"{method} " + "/".join("*" if _VARIABLE.match(part) else part for part in match[1].split("/")))
    assert shown == documented


@pytest.mark.parametrize("word", ["max_request_kb", "requests_per_second", "allowed_hosts", "tls_cert", "tls_key"])
def test_the_settings_on_the_page_exist(word: str) -> None:
    settings = (ROOT / "agent" / "config" / "service_settings.py").read_text()
    assert word in PAGE
    assert f"    {word}: " in settings
