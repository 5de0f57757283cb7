"""The executor over HTTP: who may send tasks, what is accepted, and what is reported back."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from agent.api.access import Access
from agent.api.executor_server import ExecutorOptions, RunningTasks, build_executor
from agent.sessions.store import SessionLock, SessionStore
from tests.agent.hooks.callback_server import Receiver, receiver
from tests.cli.terminal_user import lead_call, lead_reply
from tests.house.source_tree import ROOT

TOKEN = "a token of at least sixteen characters"
LIMIT_S = 60


class Client:
    """A manager of the executor."""

    def __init__(self, http: httpx.AsyncClient, told: Receiver) -> None:
        self.http = http
        self.told = told

    async def execute(
        self, token: str = TOKEN, headers: Mapping[str, str] | None = None, **body: object
    ) -> httpx.Response:
        given = {
            "session_id": "s1",
            "prompt": "do it",
            "callback_url": self.told.url,
            "callback_token": "callback-token",
            "config": {},
            **body,
        }
        given = {name: value for name, value in given.items() if value is not None}
        return await self.http.post(
            "/v1/tasks/execute", json=given, headers={"Authorization": f"Bearer {token}", **(headers or {})}
        )

    async def end(self, count: int = 1) -> list[object]:
        """Wait until tasks have ended, and return all events."""
        await asyncio.to_thread(wait_for, self.told, "task_completed", "task_failed", count=count)
        return self.told.events


def wait_for(told: Receiver, *names: str, count: int = 1) -> None:
    deadline = time.monotonic() + LIMIT_S
    while sum(event in names for event in told.events) < count:
        assert time.monotonic() < deadline, told.events
        time.sleep(0.02)


def options(tmp_path: Path, *replies: object, **more: object) -> ExecutorOptions:
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps(reply) for reply in replies))
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    environ = {"HOME": str(tmp_path), "AGENT_SANDBOX": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    settings = {"model": f"script:{script}", "backend": "host", "planning": "auto", "approval_mode": "auto-edit"}
    given = {"environ": environ, "settings": settings, "workspace": workspace, **more}
    return ExecutorOptions(**given)  # type: ignore[arg-type]


@pytest.fixture
def told() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@asynccontextmanager
async def open_client(given: ExecutorOptions, told: Receiver) -> AsyncIterator[Client]:
    tasks = RunningTasks(given)
    transport = httpx.ASGITransport(build_executor(tasks, Access(token=TOKEN)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        try:
            yield Client(http, told)
        finally:
            await tasks.close()


async def test_a_task_is_accepted_at_once_and_reported_to_its_callback(tmp_path: Path, told: Receiver) -> None:
    write = lead_call("write_file", path="a.txt", content="1\n")
    async with open_client(options(tmp_path, write, lead_reply("Done.")), told) as client:
        answer = await client.execute(headers={"X-Trace-ID": "t" * 32})
        assert (answer.status_code, answer.json()) == (200, {"status": "accepted", "session_id": "s1"})
        assert await client.end() == ["task_started", "tool_call", "agent_response", "task_completed"]
    assert (tmp_path / "workspace" / "a.txt").read_text() == "1\n"
    for request in told.taken:
        assert request.body["session_id"] == "s1"
        assert request.headers["Authorization"] == "Bearer callback-token"
        assert request.headers["X-Trace-ID"] == "t" * 32


async def test_a_second_task_of_a_session_continues_its_conversation(tmp_path: Path, told: Receiver) -> None:
    async with open_client(options(tmp_path, lead_reply("One."), lead_reply("Two.")), told) as client:
        await client.execute()
        await client.end()
        await client.execute(sdk_session_id="s1", prompt="again")
        await client.end(2)
    events = (tmp_path / "data" / "sessions" / "s1" / "events.jsonl").read_text()
    assert events.count('"type": "result"') + events.count('"type":"result"') == 2


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
async def test_without_the_token_nothing_is_accepted(tmp_path: Path, told: Receiver, authorization: str) -> None:
    async with open_client(options(tmp_path, lead_reply("Hi.")), told) as client:
        answer = await client.execute(headers={"Authorization": authorization})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        cancelled = await client.http.post("/v1/tasks/s1/cancel", headers={"Authorization": authorization})
        assert cancelled.status_code == 401
    assert told.events == []


async def test_health_needs_no_token(tmp_path: Path, told: Receiver) -> None:
    async with open_client(options(tmp_path), told) as client:
        answer = await client.http.get("/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"


async def test_requests_of_pages_and_huge_ones_are_refused(tmp_path: Path, told: Receiver) -> None:
    async with open_client(options(tmp_path, lead_reply("Hi.")), told) as client:
        assert (await client.execute(headers={"Origin": "http://evil.example"})).status_code == 403
        assert (await client.execute(prompt="x" * 5_000_000)).status_code == 413
    assert told.events == []


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"session_id": "../x"}, "session_id"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"surprise": 1}, "surprise"),
        ({"config": {"modle": "x"}}, "modle"),
        ({"callback_url": "http://[", "config": {}}, ""),
    ],
)
async def test_a_wrong_request_says_what_is_wrong(
    tmp_path: Path, told: Receiver, wrong: dict[str, object], named: str
) -> None:
    async with open_client(options(tmp_path, lead_reply("Hi."), sockets=tmp_path), told) as client:
        answer = await client.execute(**wrong)
    assert answer.status_code == 422, answer.text
    assert named in answer.text
    assert "callback-token" not in answer.text


async def test_one_task_at_a_time_and_it_can_be_cancelled(tmp_path: Path, told: Receiver) -> None:
    slow = {**lead_reply("late"), "delay_ms": 600_000}
    async with open_client(options(tmp_path, slow), told) as client:
        await client.execute()
        for session in ("s1", "s2"):
            assert (await client.execute(session_id=session)).status_code == 409
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.http.post("/v1/tasks/s2/cancel", headers=headers)).status_code == 404
        assert (await client.http.post("/v1/tasks/s1/cancel", headers=headers)).status_code == 200
        assert (await client.end())[-1] == "task_failed"
    assert told.taken[-1].data["error_message"] == "interrupted"


async def test_a_task_that_cannot_start_is_reported(tmp_path: Path, told: Receiver) -> None:
    given = options(tmp_path, lead_reply("Hi."))
    (tmp_path / "data").mkdir(mode=0o700)
    lock = SessionLock(SessionStore(tmp_path / "data").open("s1"))
    given = options(tmp_path, lead_reply("Hi."), settings={**given.settings, "session_wait_s": 0})
    async with open_client(given, told) as client:
        await client.execute()
        assert await client.end() == ["task_failed"]
    lock.release()
    assert "session s1 is busy" in str(told.taken[-1].data["error_message"])


async def test_a_server_that_ends_reports_the_tasks_it_ends(tmp_path: Path, told: Receiver) -> None:
    slow = {**lead_reply("late"), "delay_ms": 600_000}
    async with open_client(options(tmp_path, slow), told) as client:
        await client.execute()
        await asyncio.to_thread(wait_for, told, "task_started")
    assert told.events[-1] == "task_failed"


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path, told: Receiver) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps(lead_reply("Done.")))
    environ = {"HOME": str(tmp_path), "AGENT_SANDBOX": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    argv = [sys.executable, "-c", "from cli.main import main; main()", "executor", "--port", "0"]
    with subprocess.Popen(
        [*argv, "--model", f"script:{script}", "--backend", "host"],
        env=environ,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr
        address = program.stderr.readline().split()[-1]
        token = Path(program.stderr.readline().split()[-1]).read_text().strip()
        body = {"session_id": "s1", "prompt": "x", "callback_url": told.url}
        answer = httpx.post(f"{address}/v1/tasks/execute", json=body, headers={"Authorization": f"Bearer {token}"})
        assert answer.json() == {"status": "accepted", "session_id": "s1"}
        wait_for(told, "task_completed", "task_failed")
        program.send_signal(signal.SIGTERM)
        assert program.wait(LIMIT_S) == -signal.SIGTERM
    assert told.events[-1] == "task_completed"


@pytest.mark.slow
@pytest.mark.parametrize("token", ["", "change-this-token-in-production", "short"])
def test_beyond_this_machine_it_listens_only_with_a_token_of_its_own(tmp_path: Path, token: str) -> None:
    environ = {"HOME": str(tmp_path), "AGENT_SANDBOX": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", "from cli.main import main; main()", "executor", "--host", "0.0.0.0", "--port", "0"],
        env={**environ, "INTERNAL_API_TOKEN": token},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 52
    assert "token" in done.stderr
