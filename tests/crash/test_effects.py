"""Effects outside the workspace happen once, whenever the run is killed: a real server counts them."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent.vocabulary.unfinished import DONE_CALL, UNKNOWN_EFFECT
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import User, lead_call, lead_reply
from tests.crash.test_kills import read_log
from tests.docs.grammar import broken_rules
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("curl")]
LIMIT_S = 60
HOST = ("--backend", "host", "--approval-mode", "yolo")
SESSION = "s"


@dataclass
class CountingServer:
    """Counts POST requests by their key; holds the response back until `answers` is set."""

    keys: list[str] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    answers: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def command(self) -> str:
        key = '-H "Idempotency-Key: $AGENT_IDEMPOTENCY_KEY"'
        return f"curl -sS --max-time 50 -X POST {key} http://127.0.0.1:{self.port}/deploy"


@contextmanager
def serve() -> Iterator[CountingServer]:
    server = CountingServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.keys.append(self.headers["Idempotency-Key"])
            server.arrived.set()
            server.answers.wait(LIMIT_S)
            self.send_response(200)
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(b"deployed")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.answers.set()
            http.shutdown()


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with serve() as server:
        yield server


def plan_argv(user: User, server: CountingServer) -> tuple[str, ...]:
    folder = user.home / "work"
    folder.mkdir(exist_ok=True)
    steps = [{"id": "deploy", "title": "Deploy", "tool": "run_command", "args": {"command": server.command}}]
    file = user.home / "plan.json"
    file.write_text(json.dumps({"request": "deploy", "steps": steps}))
    return ("run", "--plan", str(file), "-C", str(folder), "--session", SESSION, *HOST)


def kill_during_request(user: User, server: CountingServer, argv: tuple[str, ...]) -> None:
    """Kill the run after the server has received the request and before it responds."""
    with subprocess.Popen(
        user.command(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=user.environment(), cwd=user.home
    ) as process:
        assert server.arrived.wait(LIMIT_S)
        process.kill()
    server.answers.set()


def effects_of(user: User) -> list[dict[str, object]]:
    return json.loads(user.agent("runs", "effects", "--json").stdout)


def test_an_effect_in_doubt_is_not_repeated_and_listed_in_the_result(user: User, server: CountingServer) -> None:
    kill_during_request(user, server, plan_argv(user, server))
    for _ in range(2):
        ended = user.agent("resume", SESSION, *HOST, "--output-format", "stream-json")
        assert len(server.keys) == 1
        result = ended.events[-1]
        assert (ended.exit_code, len(result["effects_in_doubt"])) == (54, 1)  # type: ignore[arg-type]
        assert server.keys[0] in str(result["effects_in_doubt"])
        assert broken_rules(ended.events) == []
    (effect,) = effects_of(user)
    assert (effect["kind"], effect["status"], effect["is_in_doubt"]) == ("command", "started", True)
    assert effect["effect_id"] == server.keys[0]
    assert "in doubt" in user.agent("runs", "effects").stdout


def cut_log_after(user: User, status: str) -> None:
    """Cut the log as a kill would have cut it: right after an effect was recorded with a status."""
    path = user.data / "sessions" / SESSION / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    at = next(n for n, event in enumerate(events) if event["type"] == "effect" and event["status"] == status)
    path.write_bytes(b"".join(lines[: at + 1]))
    shutil.rmtree(path.parent / "steps")


def test_an_effect_that_is_recorded_done_is_never_repeated(user: User, server: CountingServer) -> None:
    server.answers.set()
    assert user.agent(*plan_argv(user, server)).exit_code == 0
    cut_log_after(user, "done")
    ended = user.agent("resume", SESSION, *HOST)
    assert (ended.exit_code, len(server.keys)) == (0, 1)
    assert DONE_CALL in ended.stdout


def test_a_model_that_repeats_a_call_in_doubt_is_told_that_it_is_unknown(user: User, server: CountingServer) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    (user.home / "work").mkdir()
    call = lead_call("run_command", command=server.command)
    model = user.script(call, lead_reply("It is unknown."))
    argv = ("run", "deploy", "--model", model, "-C", str(user.home / "work"), "--session", SESSION, *HOST)
    kill_during_request(user, server, argv)
    ended = user.agent("resume", SESSION, *HOST, "--model", model)
    assert (len(server.keys), ended.stdout.strip()) == (1, "It is unknown.")
    outputs = [event["output"] for event in read_log(user, SESSION) if event["type"] == "tool.completed"]
    assert outputs == [UNKNOWN_EFFECT]


def test_an_identical_call_after_a_known_result_is_a_new_effect(user: User, server: CountingServer) -> None:
    server.answers.set()
    user.environ["AGENT_PLANNING"] = "auto"
    (user.home / "work").mkdir()
    call = lead_call("run_command", command=server.command)
    model = user.script(call, call, lead_reply("twice"))
    ended = user.agent("run", "deploy twice", "--model", model, "-C", str(user.home / "work"), *HOST)
    assert (ended.exit_code, len(set(server.keys)), len(server.keys)) == (0, 2, 2)
    assert [effect["status"] for effect in effects_of(user)] == ["done", "done"]


@pytest.mark.parametrize(
    ("answer", "requests", "exit_code"), [("1", 2, 0), ("2", 1, 0), ("3", 1, 54)], ids=["again", "was-done", "skip"]
)
def test_on_a_terminal_an_effect_in_doubt_is_asked_about(
    user: User, server: CountingServer, answer: str, requests: int, exit_code: int
) -> None:
    kill_during_request(user, server, plan_argv(user, server))
    terminal = PtyTerminal(user, "resume", SESSION, *HOST)
    assert "it may have been done" in terminal.wait_for("your answer: ")
    terminal.send_line(answer)
    assert (terminal.wait_exit()[0], len(server.keys)) == (exit_code, requests)
    # A server that has seen the key can tell that it is the same request.
    assert len(set(server.keys)) == 1


def test_killed_anywhere_the_effect_happens_at_most_once(user: User, server: CountingServer) -> None:
    server.answers.set()
    user.agent(*plan_argv(user, server))
    path = user.data / "sessions" / SESSION / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"type": "effect"' in line)
    # From then on the result is in the step cache.
    last = next(n for n, line in enumerate(lines) if b'"type": "step.completed"' in line)
    for count in range(first + 1, last + 1):
        path.write_bytes(b"".join(lines[:count]))
        shutil.rmtree(path.parent / "steps", ignore_errors=True)
        user.agent("resume", SESSION, *HOST)
        assert len(server.keys) == 1, f"after {count} lines"
