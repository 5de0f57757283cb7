"""ExecutorClient against a loopback executor: path, keys, headers, and what is not accepted."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from agent.service.executor_client import ExecutorClient, ExecutorUnreachable
from agent.vocabulary.task_config import TaskConfig


class Executor(BaseHTTPRequestHandler):
    seen: list[tuple[str, dict[str, str], dict[str, object]]]
    reply: bytes

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, dict(self.headers), body))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.reply)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def executor() -> Iterator[tuple[str, type[Executor]]]:
    handler = type("Handler", (Executor,), {"seen": [], "reply": b'{"status": "accepted", "session_id": "s1"}'})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()
    thread.join()


async def send(client: ExecutorClient, url: str) -> str:
    config = TaskConfig(model="m")
    return await client.execute_task(url, "s1", "count", "http://cb/", "token", config, "http://cb", "sdk1")


async def test_a_task_is_posted_with_all_keys_and_trace_headers(executor: tuple[str, type[Executor]]) -> None:
    url, handler = executor
    client = ExecutorClient(trace_id="f" * 32, token="secret")
    assert await send(client, url) == "s1"
    [(path, headers, body)] = handler.seen
    assert path == "/v1/tasks/execute"
    assert body == {
        "session_id": "s1",
        "prompt": "count",
        "callback_url": "http://cb/",
        "callback_token": "token",
        "config": {"model": "m"},
        "callback_base_url": "http://cb",
        "sdk_session_id": "sdk1",
    }
    assert headers["X-Trace-ID"] == "f" * 32
    assert len(headers["X-Request-ID"]) == 32
    assert headers["Authorization"] == "Bearer secret"


async def test_an_executor_that_is_away_or_refuses_may_be_tried_again(executor: tuple[str, type[Executor]]) -> None:
    url, handler = executor
    handler.reply = b'{"status": "busy"}'
    with pytest.raises(ExecutorUnreachable, match="did not accept") as refused:
        await send(ExecutorClient(), url)
    assert refused.value.exit_code == 75
    handler.reply = b"no JSON"
    with pytest.raises(ExecutorUnreachable, match="cannot be reached"):
        await send(ExecutorClient(), url)
    with pytest.raises(ExecutorUnreachable, match="cannot be reached"):
        await send(ExecutorClient(timeout_s=5), "http://127.0.0.1:1")
