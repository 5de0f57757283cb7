"""`agent mcp serve`: another agent runs tasks, sees their state and answers their questions."""

import asyncio
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2
import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.cli.terminal_user import User, lead_call, lead_reply, plan, step
from tests.tooling.mcp.test_hostile_servers import command_lines

pytestmark = pytest.mark.slow


def parameters(user: User, *words: str) -> StdioServerParameters:
    command, *arguments = user.command("mcp", "serve", "-C", str(user.home), *words)
    return StdioServerParameters(
        command=command, args=arguments, env=user.environment(AGENT_PLANNING="auto"), cwd=user.home
    )


async def use(client: Client, tool: str, **arguments: object) -> dict[str, object]:
    result = await client.call_tool(tool, arguments)
    content = result.content[0]
    assert isinstance(content, mcp_types.TextContent)
    return {"error": content.text} if result.is_error else json.loads(content.text)


async def test_a_run_reports_progress_and_returns_its_answer(user: User) -> None:
    model = user.script(lead_call("list_directory", path="."), lead_reply("Two files."))
    seen: list[str | None] = []

    async def progress(number: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async with Client(parameters(user, "--model", model)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run", "plan", "status", "answer"]
        result = await client.call_tool("run", {"prompt": "count"}, progress_callback=progress)
        done = json.loads(result.content[0].text)  # type: ignore[union-attr]
        again = await use(client, "status", run_id=done["run_id"])
    assert (done["status"], done["answer"], done["exit_code"]) == ("done", "Two files.", 0)
    assert (again["answer"], seen) == ("Two files.", ["count", "list_directory"])


async def test_questions_and_approvals_are_answered_by_a_tool(user: User) -> None:
    model = user.script(
        lead_call("ask_user", question="Which color?"),
        lead_call("run_command", command="rm -r work/project"),
        lead_reply("Blue."),
    )
    project = user.home / "work" / "project"
    project.mkdir(parents=True)
    async with Client(parameters(user, "--model", model)) as client:
        asked = await use(client, "run", prompt="paint")
        assert [(w["kind"], w["text"]) for w in waiting(asked)] == [("question", "Which color?")]
        asked = await use(client, "answer", run_id=asked["run_id"], id=waiting(asked)[0]["id"], answer="blue")
        assert [(w["kind"], w["options"]) for w in waiting(asked)] == [("approval", ["allow", "deny"])]
        done = await use(client, "answer", run_id=asked["run_id"], id=waiting(asked)[0]["id"], answer="allow")
        late = await use(client, "answer", run_id=asked["run_id"], id="q-1", answer="x")
    assert (done["answer"], project.exists()) == ("Blue.", False)
    assert "q-1 is not waiting for an answer" in str(late["error"])


def waiting(state: dict[str, object]) -> Sequence[dict[str, object]]:
    found = state["waiting_for"]
    assert isinstance(found, list)
    return found


async def test_a_client_that_can_ask_its_user_does(user: User) -> None:
    model = user.script(lead_call("ask_user", question="Which color?"), lead_reply("Green."))
    asked: list[str] = []

    async def ask(context: object, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"answer": "green"})

    async with Client(parameters(user, "--model", model), mode="legacy", elicitation_callback=ask) as client:
        done = await use(client, "run", prompt="paint")
    assert (done["answer"], asked) == ("Green.", ["Which color?"])


async def test_a_plan_is_returned_and_nothing_is_run(user: User) -> None:
    model = user.script(plan(step("a"), step("b", "a")))
    async with Client(parameters(user, "--model", model)) as client:
        planned = await use(client, "plan", prompt="two steps")
    assert (planned["status"], planned["exit_code"]) == ("done", 0)
    assert 'id = "a"' in str(planned["plan"])


async def test_wrong_folders_and_runs_are_refused(user: User) -> None:
    async with Client(parameters(user, "--model", user.script())) as client:
        outside = await use(client, "run", prompt="x", folder="/etc")
        above = await use(client, "run", prompt="x", folder="..")
        empty = await use(client, "run", prompt=" ")
        unknown = await use(client, "status", run_id="run-1")
    assert all("is not a folder below" in str(reply["error"]) for reply in (outside, above))
    assert ("the prompt is empty" in str(empty["error"]), "no run run-1" in str(unknown["error"])) == (True, True)


@asynccontextmanager
async def http_server(user: User, *words: str) -> AsyncIterator[tuple[str, str]]:
    program = await asyncio.create_subprocess_exec(
        *user.command("mcp", "serve", "--http", "-C", str(user.home), *words),
        env=user.environment(AGENT_PLANNING="auto"),
        cwd=user.home,
        stderr=subprocess.PIPE,
    )
    try:
        assert program.stderr is not None
        lines = [(await program.stderr.readline()).decode() for _ in range(2)]
        yield lines[0].split()[-1], re.sub(r"^.*Bearer ", "", lines[1]).strip()
    finally:
        program.terminate()
        await program.wait()


async def test_over_http_a_token_is_needed_and_stays_the_same(user: User) -> None:
    model = user.script(lead_reply("Hello."))
    async with http_server(user, "--model", model) as (url, token):
        assert url.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            await asyncio.to_thread(urllib.request.urlopen, url)
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert (await use(client, "run", prompt="hi"))["answer"] == "Hello."
    async with http_server(user, "--model", model) as (_, again):
        assert again == token
    stored = user.data / "mcp" / "serve-token"
    assert (stored.read_text().strip(), stored.stat().st_mode & 0o777) == (token, 0o600)


async def test_a_client_that_goes_away_ends_its_runs(user: User) -> None:
    model = user.script(lead_call("run_command", command="sleep 543.21"), lead_reply("x"))
    async with Client(parameters(user, "--model", model, "--approval-mode", "yolo")) as client:
        state = await use(client, "run", prompt="wait", wait_s=0.01)
        assert state["status"] == "running"
    for _ in range(600):
        if not any("543.21" in line for line in command_lines()):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the command still runs")
