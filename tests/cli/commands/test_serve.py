"""`agent serve` as users start it: the real program, the real queue, curl."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.cli.terminal_user import User, lead_call, lead_reply
from tests.docs.grammar import broken_rules
from tests.programs import needs

pytestmark = pytest.mark.slow

LIMIT_S = 120
_ADDRESS = re.compile(r"listening on (https?://\S+)")


@contextmanager
def served(user: User, *words: str, **environ: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run the server on a free port; yield its address and process."""
    process = subprocess.Popen(
        user.command("serve", "--port", "0", *words),
        env=user.environment(**environ),
        cwd=user.home,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if found := _ADDRESS.search(line):
                break
        assert lines, "it printed nothing"
        assert found, lines
        yield found[1], process
    finally:
        process.terminate()
        process.wait(LIMIT_S)
        process.stderr.close()


def token_of(user: User, **environ: str) -> str:
    shown = user.agent("serve", "--show-token", **environ)
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout.strip()


def get(url: str, token: str = "", context: ssl.SSLContext | None = None, **body: object) -> tuple[int, object]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} if token else {}
    request = urllib.request.Request(url, headers=headers, data=json.dumps(body).encode() if body else None)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=LIMIT_S) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_task_is_created_and_canceled_over_http(user: User) -> None:
    with served(user) as (url, _):
        token = token_of(user)
        status, created = get(f"{url}/api/v1/tasks", token, prompt="count the files")
        assert isinstance(created, dict)
        task_id = created["data"]["task_id"]
        _, shown = get(f"{url}/api/v1/tasks/{task_id}", token)
        refused, _ = get(f"{url}/api/v1/tasks")
        same = user.agent("task", "show", task_id, "--json")
    assert isinstance(shown, dict)
    assert (status, refused, shown["data"]["status"]) == (201, 401, "queued")
    assert json.loads(same.stdout)["task_id"] == task_id


@needs("bwrap")
def test_a_task_asks_is_answered_and_approved_and_its_events_are_streamed(user: User) -> None:
    model = user.script(
        lead_call("ask_user", question="Which color?", options=["red", "blue"]),
        lead_call("run_command", command="rm -r old"),
        lead_reply("Painted."),
    )
    project = user.home / "project"
    (project / "old").mkdir(parents=True)
    environ = {"AGENT_MODEL": model, "AGENT_PLANNING": "auto"}
    worker = subprocess.Popen(user.command("worker", "--quiet"), env=user.environment(**environ), cwd=user.home)
    try:
        with served(user, **environ) as (url, _):
            token = token_of(user)
            _, created = get(f"{url}/api/v1/tasks", token, prompt="paint", cwd=str(project))
            task = f"{url}/api/v1/tasks/{_data(created)['task_id']}"
            question = _waiting(url, token, "question")
            assert question["card"] == "Which color?\n  1. red\n  2. blue"
            get(f"{url}/api/v1/questions/{question['question_id']}/answer", token, answer="blue")
            approval = _waiting(url, token, "approval")
            assert str(approval["card"]).startswith(f"allow this?  rm -r old\n  in {project}\n  because it deletes")
            get(f"{url}/api/v1/approvals/{approval['question_id']}", token, decision="allow")
            done = _wait_for(lambda: _data(get(task, token)[1]), lambda shown: shown["status"] == "completed")
            request = urllib.request.Request(
                f"{url}/api/v1/runs/{done['run_id']}/events", headers={"Authorization": f"Bearer {token}"}
            )
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=LIMIT_S) as stream:
                events = [json.loads(line[6:]) for line in stream.read().splitlines() if line.startswith(b"data: ")]
    finally:
        worker.terminate()
        worker.wait(LIMIT_S)
    assert (done["answer"], done["exit_code"], (project / "old").exists()) == ("Painted.", 0, False)
    assert (events[0]["type"], events[-2]["type"], events[-1]) == ("init", "result", {"reason": "ended"})
    assert broken_rules(events[:-1]) == []


def _data(reply: object) -> dict[str, object]:
    assert isinstance(reply, dict)
    found: dict[str, object] = reply["data"]
    return found


def _waiting(url: str, token: str, kind: str) -> dict[str, object]:
    def ask() -> dict[str, object]:
        _, reply = get(f"{url}/api/v1/questions", token)
        assert isinstance(reply, dict)
        return next((found for found in reply["data"] if found["kind"] == kind), {})

    return _wait_for(ask, bool)


def _wait_for(
    look: Callable[[], dict[str, object]], is_there: Callable[[dict[str, object]], bool]
) -> dict[str, object]:
    deadline = time.monotonic() + LIMIT_S
    while not is_there(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_the_token_is_the_same_after_a_restart_and_private(user: User) -> None:
    with served(user):
        first = token_of(user)
    with served(user) as (url, _):
        assert get(f"{url}/api/v1/tasks", first)[0] == 200
    assert (user.data / "serve-token").stat().st_mode & 0o777 == 0o600


def test_neither_token_nor_code_is_printed_where_it_would_be_logged(user: User) -> None:
    with served(user) as (_, process):
        token = token_of(user)
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        rest = process.stderr.read()
    assert token not in rest
    assert "#" not in rest
    assert "agent serve --show-token" in rest


def test_on_a_terminal_the_link_logs_in_once(user: User) -> None:
    words = user.command("serve", "--port", "0")
    terminal = pexpect.spawn(
        words[0], words[1:], env=user.environment(), cwd=str(user.home), timeout=LIMIT_S, encoding="utf-8"
    )
    terminal.expect(r"open http://windlass\.localhost:(\d+)/login#(\S+)")
    port, code = terminal.match.groups()
    replies = []
    for _ in range(2):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/login", data=f"code={code}".encode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
        try:
            replies.append(opener.open(request, timeout=LIMIT_S).status)
        except urllib.error.HTTPError as error:
            replies.append(error.code)
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert replies == [303, 401]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        (("--host", "0.0.0.0"), {}, "without a token of your own"),
        (
            ("--host", "0.0.0.0"),
            {"AGENT_INTERNAL_API_TOKEN": "change-this-token-in-production"},
            "without a token of your own",
        ),
        (("--host", "0.0.0.0"), {"AGENT_INTERNAL_API_TOKEN": "short"}, "too short"),
        (("--tls-cert", "/nothing.pem"), {}, "both a certificate and its key"),
        (
            ("--tls-cert", "/nothing.pem", "--tls-key", "/nothing.pem"),
            {},
            "cannot be used: No such file",
        ),
        (("--allow-origin", "example.org"), {}, "is not an origin"),
        (("--host", "no.such.host.invalid"), {"AGENT_INTERNAL_API_TOKEN": "x" * 30}, "cannot listen on"),
    ],
)
def test_a_server_that_cannot_be_safe_or_work_is_refused(
    user: User, words: tuple[str, ...], environ: dict[str, str], message: str
) -> None:
    ended = user.agent("serve", "--port", "0", *words, **environ)
    assert (ended.exit_code, message in ended.stderr) == (52, True), ended.stderr
    assert "hint: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_in_use_is_named(user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = user.agent("serve", "--port", str(listener.getsockname()[1]))
    assert (ended.exit_code, "Address already in use" in ended.stderr) == (52, True), ended.stderr


@needs("openssl")
def test_it_serves_over_tls(user: User) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=user.home, check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(cafile=str(user.home / "cert.pem"))
    files = ("--tls-cert", str(user.home / "cert.pem"), "--tls-key", str(user.home / "key.pem"))
    with served(user, *files) as (url, _):
        assert url.startswith("https://")
        assert get(f"{url}/api/v1/tasks", token_of(user), context)[0] == 200


def test_a_server_for_others_takes_the_token_of_its_owner_and_warns_without_tls(user: User) -> None:
    own = {"AGENT_INTERNAL_API_TOKEN": "Nq3vTzt9yQ1mZ0aa7c"}
    with served(user, "--host", "0.0.0.0", **own) as (url, process):
        address = url.replace("0.0.0.0", "127.0.0.1")
        assert get(f"{address}/api/v1/tasks", own["AGENT_INTERNAL_API_TOKEN"])[0] == 200
        assert get(f"{address}/api/v1/tasks", "x" * 30)[0] == 401
        process.terminate()
        assert process.stderr
        assert "unencrypted" in process.stderr.read()


def test_it_ends_soon_after_a_signal_even_with_open_streams(user: User, tmp_path: Path) -> None:
    model = user.script({"match": {"purpose": "planner"}, "text": json.dumps({"answer": "hello"})})
    assert user.agent("run", "--model", model, "--session", "s1", "hello").exit_code == 0
    with served(user) as (url, process):
        token = token_of(user)
        _, runs = get(f"{url}/api/v1/runs", token)
        assert isinstance(runs, dict)
        host, port = url.removeprefix("http://").split(":")
        path = f"/api/v1/runs/{runs['data'][0]['run_id']}/events"
        with socket.create_connection((host, int(port))) as stream:
            stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
            assert stream.recv(15).startswith(b"HTTP/1.1 200")
            process.terminate()
            started = time.monotonic()
            process.wait(LIMIT_S)
            assert time.monotonic() - started < LIMIT_S
    assert process.returncode in (0, -signal.SIGTERM, 143)


def test_without_the_extra_its_name_and_install_line_are_given(user: User) -> None:
    hidden = user.home / "hidden" / "fastapi"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'fastapi'\", name='fastapi')")
    path = os.pathsep.join([str(hidden.parent), user.environment()["PYTHONPATH"]])
    ended = subprocess.run(
        user.command("serve"), env=user.environment(PYTHONPATH=path), cwd=user.home, capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert (ended.returncode, "pip install 'windlass[server,queue]'" in ended.stderr) == (52, True), ended.stderr
