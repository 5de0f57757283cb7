"""The first minute without a model: what is found is offered, and what is chosen is kept."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.repl.welcome import LATER, NOTHING_FOUND, detect_models, welcome
from tests.cli.repl.terminal_session import ENTER, TerminalSession, ctrl

Open = Callable[..., TerminalSession]


class FakeUser:
    """Somebody who is asked one thing."""

    def __init__(self, answer: str = "") -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.printed: list[str] = []

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.asked += options
        return self.answer or options[0]


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> None:
        return None

    monkeypatch.setattr("cli.repl.welcome.find_local_server", nothing)


@pytest.mark.usefixtures("no_server")
async def test_a_key_in_the_environment_is_an_offer_that_is_kept_when_chosen(tmp_path: Path) -> None:
    person, environ = FakeUser(), {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
    await welcome(environ, ask=person.ask, say=person.printed.append)
    config = tmp_path / ".config" / "agent" / "config.toml"
    assert person.asked[0].startswith("anthropic/") and person.asked[-1] == LATER
    assert f'model = "{person.asked[0].partition(" ")[0]}"' in config.read_text()
    assert person.printed == [f"{person.asked[0].partition(' ')[0]} is kept in {config}"]
    assert "sk-ant" not in config.read_text()


@pytest.mark.usefixtures("no_server")
async def test_later_keeps_nothing_and_other_words_are_a_model(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-0123456789"}
    config = tmp_path / ".config" / "agent" / "config.toml"
    await welcome(environ, ask=FakeUser(LATER).ask, say=lambda text: None)
    assert not config.exists()
    await welcome(environ, ask=FakeUser("openai/gpt-5").ask, say=lambda text: None)
    assert 'model = "openai/gpt-5"' in config.read_text()


@pytest.mark.usefixtures("no_server")
async def test_with_nothing_found_it_says_what_would_do(tmp_path: Path) -> None:
    person = FakeUser()
    await welcome({"HOME": str(tmp_path)}, ask=person.ask, say=person.printed.append)
    assert (person.asked, person.printed) == ([], [NOTHING_FOUND])


class _Ollama(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"models": [{"name": "nomic-embed-text"}, {"name": "qwen2.5-coder:7b"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A local model server on a port of its own."""
    from agent.model import local_server

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ollama)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = local_server.LocalServer(
        provider="ollama", port=server.server_address[1], path="/api/tags", list_key="models", name_key="name"
    )

    async def found() -> local_server.LocalModel | None:
        return await local_server.find_local_server((place,), limit_s=20)

    monkeypatch.setattr("cli.repl.welcome.find_local_server", found)
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("ollama")
async def test_a_server_on_this_machine_is_an_offer() -> None:
    assert [str(offer) for offer in await detect_models({})] == [
        "ollama/qwen2.5-coder:7b (ollama runs on this machine)"
    ]


@pytest.mark.slow
def test_a_choice_at_the_prompt_is_written_to_the_settings_and_shown(sit: Open) -> None:
    seat = sit(DEEPSEEK_API_KEY="sk-0123456789abcdef0123456789abcdef")
    seat.wait_for("type a number")
    seat.pause()
    seat.send("1" + ENTER)
    seat.wait_for("is kept in")
    seat.wait_for("deepseek/deepseek-chat · ask")
    assert 'model = "deepseek/deepseek-chat"' in (seat.user.home / ".config/agent/config.toml").read_text()
    seat.send(ctrl("d"))
    assert seat.wait_exit() == 0


@pytest.mark.slow
def test_the_prompt_works_without_any_model(sit: Open) -> None:
    seat = sit()
    seat.wait_for("/demo shows a whole run")
    seat.send_line("do something")
    seat.wait_for("no model is set")
    seat.send_line("/cost")
    seat.wait_for("0 tokens")
