"""Nobody without the token gets anything, and no other page can use a browser that has it."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.api.access import Access, BrowserSessions, check_access
from agent.api.guard import RateLimiter
from agent.config.token_file import is_placeholder, load_or_create_token
from agent.service.task import TaskState
from agent.vocabulary.errors import ConfigError
from tests.agent.api.served import TOKEN, Server, serve
from tests.house.source_tree import ROOT

PROTECTED = (
    "/api/v1/tasks",
    "/api/v1/sessions",
    "/api/v1/runs/x/events",
    "/metrics",
    "/openapi.json",
    "/api/v1/no-such",
)


def test_the_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / "serve-token"
    token = load_or_create_token(path)
    assert (load_or_create_token(path), path.stat().st_mode & 0o777) == (token, 0o600)
    assert len(token) > 40
    assert [file.name for file in path.parent.iterdir()] == ["serve-token"]


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "serve-token"
    load_or_create_token(path)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="other users may read"):
        load_or_create_token(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_a_server_for_others_needs_a_token_of_its_own(host: str) -> None:
    with pytest.raises(ConfigError, match="without a token of your own"):
        check_access(Access(token="x" * 40, listens_on=host), has_own_token=False)
    with pytest.raises(ConfigError, match="without a token of your own"):
        check_access(Access(token="change-this-token-in-production", listens_on=host), has_own_token=True)
    with pytest.raises(ConfigError, match="too short"):
        check_access(Access(token="short", listens_on=host), has_own_token=True)
    check_access(Access(token="x" * 40, listens_on=host), has_own_token=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_a_server_for_this_machine_needs_no_setup(host: str) -> None:
    check_access(Access(token="x" * 40, listens_on=host), has_own_token=False)


def test_the_tokens_of_examples_are_placeholders() -> None:
    assert all(map(is_placeholder, ("change-this-token-in-production", "Changeme ", "SECRET")))
    assert not is_placeholder("k8XhGm3Yb1")


def test_requests_without_the_token_get_401(server: Server) -> None:
    wrong = ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xff")
    with server.client(token="") as client:
        for path, header in itertools.product(PROTECTED, wrong):
            headers = {"Authorization": header.encode("latin-1")} if header else {}
            reply = client.get(path, headers=headers)  # type: ignore[arg-type]
            assert (reply.status_code, reply.json()["code"]) == (401, 401), (path, header)
            assert reply.headers["www-authenticate"] == "Bearer"


def test_health_needs_no_token_and_tells_no_more_than_the_version(server: Server) -> None:
    with server.client(token="") as client:
        reply = client.get("/api/v1/health")
    assert reply.status_code == 200
    assert set(reply.json()["data"]) == {"status", "service", "version"}


def test_a_name_that_was_rebound_to_this_machine_is_refused(server: Server) -> None:
    names = ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1")
    for host in (*names, "a b", "@"):
        with server.client(Host=host) as client:
            assert client.get("/api/v1/tasks").status_code in (400, 421), host


def test_the_names_of_this_machine_are_known(server: Server) -> None:
    with server.client() as client:
        for host in ("localhost", "127.0.0.1:9", "[::1]:8001", "windlass.localhost", "LOCALHOST."):
            assert client.get("/api/v1/tasks", headers={"Host": host}).status_code == 200, host


def test_requests_of_other_pages_are_refused_even_with_the_token(server: Server) -> None:
    origins = ("http://evil.example", "null", "http://127.0.0.1:1", "https://localhost.evil")
    with server.client() as client:
        for origin, method in itertools.product(origins, ("GET", "POST")):
            body = {"prompt": "x"} if method == "POST" else None
            reply = client.request(method, "/api/v1/tasks", json=body, headers={"Origin": origin})
            assert reply.status_code == 403, (origin, method)
            assert "access-control-allow-origin" not in reply.headers
    assert server.engine.tasks.by_id == {}


def test_images_and_scripts_of_other_pages_get_nothing(server: Server) -> None:
    with server.client(**{"Sec-Fetch-Mode": "no-cors"}) as client:
        for site in ("cross-site", "same-site"):
            assert client.get("/api/v1/tasks", headers={"Sec-Fetch-Site": site}).status_code == 403, site


def test_an_allowed_origin_may_call_and_no_other(tmp_path: Path) -> None:
    with serve(tmp_path / "data", origins=("https://board.example",)) as server:
        with server.client(Origin="https://board.example") as client:
            reply = client.get("/api/v1/tasks")
            preflight = client.options("/api/v1/tasks", headers={"Access-Control-Request-Method": "POST"})
        with server.client(Origin="https://other.example") as client:
            refused = client.get("/api/v1/tasks")
    assert reply.headers["access-control-allow-origin"] == "https://board.example"
    assert "access-control-allow-credentials" not in reply.headers
    assert (preflight.status_code, refused.status_code) == (204, 403)


def test_a_large_body_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with serve(tmp_path / "data", max_body_bytes=1000) as server, server.client() as client:
        by_length = client.post("/api/v1/tasks", json={"prompt": "x" * 2000})
        by_count = client.post("/api/v1/tasks", content=(b"x" * 600 for _ in range(3)))
        small = client.post("/api/v1/tasks", json={"prompt": "x"})
    assert (by_length.status_code, by_count.status_code, small.status_code) == (413, 413, 201)


def test_a_client_that_asks_too_often_is_told_so(tmp_path: Path) -> None:
    with serve(tmp_path / "data", requests_per_s=0.01) as server, server.client() as client:
        reply = client.get("/api/v1/tasks")
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")


def test_guesses_in_the_form_of_the_login_run_out(tmp_path: Path) -> None:
    with serve(tmp_path / "data", requests_per_s=1) as server, server.client() as client:
        del client.headers["authorization"]
        replies = [client.post("/login", data={"token": "wrong"}).status_code for _ in range(2)]
    assert replies == [401, 429]


def test_a_bucket_refills_and_guesses_empty_it() -> None:
    now = [0.0]
    limiter = RateLimiter(10.0, lambda: now[0])
    assert [limiter.take("a") for _ in range(21)] == [True] * 20 + [False]
    now[0] = 0.5
    assert [limiter.take("a") for _ in range(6)] == [True] * 5 + [False]
    assert limiter.take("b", 100.0)
    assert not limiter.take("b")


def test_every_reply_forbids_scripts_of_others_and_framing(server: Server) -> None:
    with server.client() as client:
        replies = [client.get(path) for path in ("/", "/api/v1/tasks", "/nothing", "/static/page.js", "/docs")]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "server" not in reply.headers or "uvicorn" in reply.headers["server"]


def test_the_callback_token_opens_the_callback_and_nothing_else(tmp_path: Path) -> None:
    with (
        serve(tmp_path / "data", callback_token="only-for-callbacks") as server,
        server.client("only-for-callbacks") as client,
    ):
        assert client.get("/api/v1/tasks").status_code == 401
        assert client.post("/ui/tasks", data={"prompt": "x"}).status_code == 401
    assert server.engine.tasks.by_id == {}


FORMS = re.findall(r'router\.post\("([^"]+)"', (ROOT / "agent" / "api" / "page" / "forms.py").read_text())


def test_a_form_needs_the_token_of_its_own_session(server: Server) -> None:
    task = server.task("a", TaskState.RUNNING)
    server.ask(task, "a-1", "rm x")
    cookie, other = server.sessions.new_cookie(), server.sessions.new_cookie()
    form = {"prompt": "x", "decision": "allow", "text": "x", "action": "remove"}
    tokens = ("", "x", server.sessions.csrf_token(other), server.sessions.csrf_token(""))
    for path, wrong in itertools.product(FORMS, tokens):
        address = path.replace("{task_id}", task.task_id).replace("{question_id}", "a-1").replace("{name}", "x")
        # Each request is one of a new browser, which has been sent no cookie.
        with server.client(token="", Cookie=f"windlass={cookie}") as client:
            assert client.post(address, data={**form, "csrf": wrong}).status_code == 403, (path, wrong)
    assert list(server.engine.tasks.by_id.values()) == [replace(task, waiting=1)]
    assert server.engine.questions.by_id["a-1"].state == "open"


def test_the_api_needs_the_csrf_token_of_a_session_to_change_anything(server: Server) -> None:
    cookie = server.sessions.new_cookie()
    with server.client(token="", Cookie=f"windlass={cookie}") as client:
        refused = client.post("/api/v1/tasks", json={"prompt": "x"})
        right = {"X-CSRF-Token": server.sessions.csrf_token(cookie)}
        allowed = client.post("/api/v1/tasks", json={"prompt": "x"}, headers=right)
        read = client.get("/api/v1/tasks")
    assert (refused.status_code, allowed.status_code, read.status_code) == (403, 201, 200)


class TestBrowserSessions:
    def test_a_code_works_once_and_not_for_long(self) -> None:
        now = [1000.0]
        sessions = BrowserSessions(TOKEN, lambda: now[0])
        code, late = sessions.new_code(), sessions.new_code()
        assert (sessions.redeem(code), sessions.redeem(code), sessions.redeem("")) == (True, False, False)
        now[0] += 901
        assert not sessions.redeem(late)

    def test_a_cookie_expires_cannot_be_changed_and_ends_with_its_token(self) -> None:
        now = [1000.0]
        sessions = BrowserSessions(TOKEN, lambda: now[0])
        cookie = sessions.new_cookie()
        later = f"9{cookie}"
        assert (sessions.is_valid(cookie), sessions.is_valid(later), sessions.is_valid("")) == (True, False, False)
        assert BrowserSessions(TOKEN, lambda: now[0]).is_valid(cookie)
        assert not BrowserSessions("another token", lambda: now[0]).is_valid(cookie)
        now[0] += 12 * 3600
        assert not sessions.is_valid(cookie)

    def test_each_session_has_its_own_form_token(self) -> None:
        sessions = BrowserSessions(TOKEN)
        first, second = sessions.new_cookie(), sessions.new_cookie()
        assert sessions.is_csrf_token(sessions.csrf_token(first), first)
        assert not sessions.is_csrf_token(sessions.csrf_token(first), second)
        assert not sessions.is_csrf_token("", first)
