"""First start without a model: detected models are offered and the choice is saved."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.repl.ui.approval_cards import QUESTION_HINT
from cli.repl.welcome import NOT_NOW, NOTHING_FOUND, detect_models, saved_model, welcome
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, ctrl


class FakeUser:
    """Answers one question and records what was printed."""

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
async def test_a_model_with_a_key_in_the_environment_is_offered_and_saved(tmp_path: Path) -> None:
    user, environ = FakeUser(), {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
    await welcome(environ, ask=user.ask, report=user.printed.append)
    config = tmp_path / ".config" / "agent" / "config.toml"
    model = user.asked[0].partition(" ")[0]
    assert model.startswith("anthropic/") and user.asked[-1] == NOT_NOW
    assert f'model = "{model}"' in config.read_text()
    assert user.printed == [saved_model(model, config)]
    assert "sk-ant" not in config.read_text()


@pytest.mark.usefixtures("no_server")
async def test_declining_saves_nothing_and_any_other_text_is_a_model(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-0123456789"}
    config = tmp_path / ".config" / "agent" / "config.toml"
    await welcome(environ, ask=FakeUser(NOT_NOW).ask, report=lambda text: None)
    assert not config.exists()
    await welcome(environ, ask=FakeUser("openai/gpt-5").ask, report=lambda text: None)
    assert 'model = "openai/gpt-5"' in config.read_text()


@pytest.mark.usefixtures("no_server")
async def test_if_nothing_is_found_it_explains_the_options(tmp_path: Path) -> None:
    user = FakeUser()
    await welcome({"HOME": str(tmp_path)}, ask=user.ask, report=user.printed.append)
    assert (user.asked, user.printed) == ([], [NOTHING_FOUND])


class _Ollama(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"models": [{"name": "nomic-embed-text"}, {"name": "qwen2.5-coder:7b"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A fake Ollama server on a free port."""
    from agent.model import local_server

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ollama)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server_type = local_server.LocalServer(
        provider="ollama", port=server.server_address[1], path="/api/tags", list_key="models", name_key="name"
    )

    async def found() -> local_server.LocalModel | None:
        return await local_server.find_local_server((server_type,), limit_s=20)

    monkeypatch.setattr("cli.repl.welcome.find_local_server", found)
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("ollama")
async def test_a_model_of_a_local_server_is_offered() -> None:
    assert [str(offer) for offer in await detect_models({})] == [
        "ollama/qwen2.5-coder:7b (ollama is running on this machine)"
    ]


@pytest.mark.slow
def test_a_choice_at_the_prompt_is_saved_and_shown_in_the_status_line(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(DEEPSEEK_API_KEY="sk-0123456789abcdef0123456789abcdef")
    terminal.wait_for(QUESTION_HINT)
    terminal.pause()
    terminal.send("1" + ENTER)
    terminal.wait_for("Saved deepseek/deepseek-chat")
    terminal.wait_for("deepseek/deepseek-chat · ask")
    assert 'model = "deepseek/deepseek-chat"' in (terminal.user.home / ".config/agent/config.toml").read_text()
    terminal.send(ctrl("d"))
    assert terminal.wait_exit() == 0


@pytest.mark.slow
def test_the_prompt_works_without_any_model(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.wait_for(NOTHING_FOUND.splitlines()[-1])
    terminal.send_line("do something")
    terminal.wait_for("no model is set")
    terminal.send_line("/cost")
    terminal.wait_for("0 tokens")
