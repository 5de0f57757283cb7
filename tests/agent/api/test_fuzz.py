"""Random requests to every endpoint, with the real queue: no 5xx, no traceback, no effect without the token."""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.api.app import build_api
from agent.service.dbos_engine.engine import DbosEngine
from agent.service.task import TaskQuery
from tests.agent.api.page_scene import write_beginning, write_end
from tests.agent.api.served import TOKEN, Server, WrittenRun, serve
from tests.examples import examples

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
TEXT = st.text(max_size=40) | st.sampled_from(
    ["\0", "\ud800", "../..", "%00", "'; drop table tasks; --", "\u202e", "9" * 400, "-1", "null", "true", "s1", "last"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
FIELDS: Mapping[str, st.SearchStrategy[Any]] = {
    "prompt": st.just("work") | JSON,
    "task": st.fixed_dictionaries({"prompt": st.just("work") | JSON}) | JSON,
    "cron": st.sampled_from(["* * * * *", "0 0 31 2 *", "61 * * * *", "@daily", "* * * * * *"]) | JSON,
    "zone": st.sampled_from(["UTC", "Europe/Berlin", "../etc/passwd", "Nowhere"]) | JSON,
    "decision": st.sampled_from(["allow", "deny"]) | JSON,
    "run_at": st.datetimes().map(lambda time: f"{time.isoformat()}Z") | JSON,
    "event": st.sampled_from(["task_completed", "tool_call"]) | JSON,
    "mode": st.sampled_from(["immediate", "nightly", "scheduled"]) | JSON,
}
OTHER_FIELDS = ("config", "session_id", "priority", "cwd", "backend", "callback_url", "user_id", "name", "answer")
MORE_FIELDS = (*OTHER_FIELDS, "command", "remember", "remark", "data", "unknown")
BODIES = st.fixed_dictionaries({}, optional={**dict.fromkeys(MORE_FIELDS, JSON), **FIELDS}) | JSON
NAMES = TEXT.filter(lambda text: text not in (".", "..", ""))


# To be described, endpoints need nothing that works.
PARTS: Any = SimpleNamespace(executors=None)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, httpx.Client, DbosEngine]]:
    data = tmp_path_factory.mktemp("fuzz") / "data"
    queue = DbosEngine(data)
    with serve(data, queue) as server, server.client() as client:
        run = WrittenRun(server.store, "s1", "run-1")
        write_beginning(run, "t1")
        write_end(run)
        yield server, client, queue
        assert server.bugs == []
    asyncio.run(queue.close())


@cache
def operations() -> list[str]:
    """Return all endpoints, which are the same for every server."""
    document = build_api(PARTS).openapi()
    return [f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs]


@pytest.mark.parametrize("operation", operations())
@settings(examples(EXAMPLES), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(name=NAMES, body=BODIES, query=st.dictionaries(TEXT, TEXT, max_size=3), key=TEXT, number=TEXT)
@example(name="s1", body={"prompt": "work"}, query={}, key="", number="1")
@example(name="/", body={}, query={}, key="", number="")
@example(
    name="run-1", body={"prompt": "work", "config": {}}, query={"limit": "0"}, key="k", number="99999999999999999999"
)
def test_no_request_breaks_the_server(
    fuzzed: tuple[Server, httpx.Client, DbosEngine],
    operation: str,
    name: str,
    body: object,
    query: dict[str, str],
    key: str,
    number: str,
) -> None:
    _, client, _ = fuzzed
    reply = send(client, operation, name, body, query, {"Idempotency-Key": key, "Last-Event-ID": number})
    assert reply.status_code < 500, reply.text
    assert "Traceback" not in reply.text
    if reply.headers["content-type"].startswith("application/json") and "openapi" not in operation:
        assert set(reply.json()) == {"code", "message", "data"}


@pytest.mark.parametrize("operation", operations())
@settings(examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(body=BODIES, token=st.sampled_from(["", "wrong", TOKEN[:-1], f"{TOKEN} x"]))
@example(body={"prompt": "work"}, token="")
def test_nothing_has_an_effect_without_the_token(
    fuzzed: tuple[Server, httpx.Client, DbosEngine], operation: str, body: object, token: str
) -> None:
    server, _, queue = fuzzed
    before = asyncio.run(_state(queue))
    with server.client(token) as client:
        reply = send(client, operation, "s1", body, {}, {})
    expected = 200 if operation == "GET /api/v1/health" else 401
    assert reply.status_code == expected
    assert asyncio.run(_state(queue)) == before


async def _state(queue: DbosEngine) -> tuple[object, object]:
    tasks = await queue.tasks.list(TaskQuery(limit=500))
    return [(task.task_id, task.state) for task in tasks], await queue.schedules.list()


def send(
    client: httpx.Client, operation: str, name: str, body: object, query: dict[str, str], headers: dict[str, str]
) -> httpx.Response:
    """Send a request to an endpoint."""
    verb, _, path = operation.partition(" ")
    for parameter in ("task_id", "question_id", "session_id", "run_id", "name", "container_id", "user_id"):
        path = path.replace(f"{{{parameter}}}", _quote(name))
    content = _json(body) if verb in ("POST", "PUT", "DELETE") else None
    sent = {"content-type": "application/json", **{key: value for key, value in headers.items() if _fits(value)}}
    readable = {_plain(key): _plain(value) for key, value in query.items()}
    return client.request(verb, path, params=readable, content=content, headers=sent, timeout=60)


def _quote(text: str) -> str:
    return quote(text, safe="", errors="replace")


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _fits(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()


def _json(body: object) -> bytes:
    return json.dumps(body).encode()
