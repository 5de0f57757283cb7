"""First start without a model: detected models are offered and the choice is saved."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.config.load import load_settings
from cli.repl.state import ReplState
from cli.repl.ui.approval_cards import QUESTION_HINT
from cli.repl.welcome import KEPT, NOT_NOW, NOT_SENT, NOTHING_FOUND, detect_models, saved_model, welcome
from tests.cli.repl.terminal_session import ENTER, OpenTerminal, ctrl
from tests.provider.replies import Text
from tests.provider.server import Provider
from tests.provider.threaded import ThreadedProvider


class FakeRepl:
    """A REPL whose user gives these answers (an empty one is the first option); records what happens."""

    def __init__(self, home: Path, *answers: str, can_edit: bool = True, **environ: str) -> None:
        self.state = ReplState(environ={"HOME": str(home), **environ}, cwd=home)
        self.ui = self
        self._answers = list(answers)
        self._can_edit = can_edit
        self.options: tuple[str, ...] = ()
        self.printed: list[str] = []
        self.accepted: list[str] = []
        self.prompt = ""

    @property
    def config(self) -> Path:
        return Path(self.state.environ["HOME"]) / ".config" / "agent" / "config.toml"

    @property
    def saved(self) -> str:
        return self.config.read_text() if self.config.exists() else ""

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.options = options
        return self._answers.pop(0) or options[0]

    def print_line(self, text: str, tone: str = "plain") -> None:
        self.printed.append(text)

    def accept(self, line: str) -> None:
        self.accepted.append(line)
        if line.startswith("/model "):
            self.state.override("model", line.removeprefix("/model "))

    def set_text(self, text: str) -> bool:
        self.prompt = text if self._can_edit else ""
        return self._can_edit


OPENAI = {"OPENAI_API_KEY": "sk-0123456789"}


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> None:
        return None

    monkeypatch.setattr("cli.repl.welcome.find_local_server", nothing)


@pytest.mark.usefixtures("no_server")
async def test_a_model_with_a_key_in_the_environment_is_offered_and_saved(tmp_path: Path) -> None:
    repl = FakeRepl(tmp_path, "", ANTHROPIC_API_KEY="sk-ant-0123456789")
    await welcome(repl)
    model = repl.options[0].partition(" ")[0]
    assert repl.options == (f"{model} (ANTHROPIC_API_KEY is set)", NOT_NOW) and model.startswith("anthropic/")
    assert f'model = "{model}"' in repl.saved
    assert repl.printed == [saved_model(model, repl.config)]
    assert "sk-ant" not in repl.saved


@pytest.mark.usefixtures("no_server")
async def test_keys_of_the_settings_are_found_too(tmp_path: Path) -> None:
    repl = FakeRepl(tmp_path, NOT_NOW)
    repl.config.parent.mkdir(parents=True)
    repl.config.write_text('[keys]\nopenai = "sk-0123456789"\n')
    (repl.config.parent / ".env").write_text("GROQ_API_KEY=gsk-0123456789\n")
    await welcome(repl)
    assert [option.partition(" ")[2] for option in repl.options[:2]] == [
        "(its key is in your settings)",
        "(GROQ_API_KEY is set)",
    ]


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("request_text", ["what is this?", "fix the tests", "hello", "why?", "erkläre\nalles"])
async def test_a_request_is_no_model_and_is_sent_once_one_is_chosen(tmp_path: Path, request_text: str) -> None:
    repl = FakeRepl(tmp_path, request_text, "openai/gpt-5", **OPENAI)
    await welcome(repl)
    assert repl.printed == [KEPT.format(request=request_text), saved_model("openai/gpt-5", repl.config)]
    assert (repl.accepted, repl.saved) == ([request_text], 'model = "openai/gpt-5"\n')


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("can_edit", [True, False])
async def test_without_a_choice_a_request_is_not_lost_and_nothing_is_saved(tmp_path: Path, can_edit: bool) -> None:
    repl = FakeRepl(tmp_path, "what is this?", NOT_NOW, can_edit=can_edit, **OPENAI)
    await welcome(repl)
    assert (repl.accepted, repl.saved) == ([], "")
    assert repl.prompt == "what is this?" if can_edit else NOT_SENT.format(request="what is this?") in repl.printed


@pytest.mark.usefixtures("no_server")
async def test_a_command_is_run_and_the_question_asked_again_unless_it_set_a_model(tmp_path: Path) -> None:
    repl = FakeRepl(tmp_path, "/help", "/model groq/x", **OPENAI)
    await welcome(repl)
    assert (repl.accepted, repl.saved) == (["/help", "/model groq/x"], "")


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("opnai/gpt-5", "unknown provider 'opnai', did you mean openai?"),
        ("anthropic/claude-sonnet-4-5", "set ANTHROPIC_API_KEY to use anthropic/claude-sonnet-4-5"),
        ("gemini/gemini-2.5-flash", "set GEMINI_API_KEY"),
        ("gpt5", "'gpt5' is not a model"),
        ("openai", "'openai' is a provider, not a model"),
        ("7", "'7' is not a model"),
        ("script:nowhere.jsonl", "script not found: nowhere.jsonl"),
    ],
)
async def test_a_name_that_cannot_work_is_not_saved_and_the_question_asked_again(
    tmp_path: Path, model: str, problem: str
) -> None:
    repl = FakeRepl(tmp_path, model, NOT_NOW, **OPENAI)
    await welcome(repl)
    assert problem in repl.printed[0] and repl.printed[0].startswith("Not saved: ")
    assert (repl.saved, repl.accepted) == ("", [])


@pytest.mark.usefixtures("no_server")
async def test_a_name_that_is_not_known_is_saved_if_its_server_lists_it(tmp_path: Path) -> None:
    async with Provider() as provider:
        environ = {**OPENAI, "OPENAI_BASE_URL": provider.base_url}
        repl = FakeRepl(tmp_path, "openai/other-model", "test-model", **environ)
        await welcome(repl)
        assert repl.printed[0] == f"Not saved: {provider.base_url} has no model other-model; it has test-model"
        assert repl.saved == 'model = "test-model"\n'
        assert {request.headers["authorization"] for request in provider.requests} == {"Bearer sk-0123456789"}


@pytest.mark.usefixtures("no_server")
async def test_a_server_that_does_not_answer_is_not_saved(tmp_path: Path) -> None:
    async with Provider() as provider:
        environ = {**OPENAI, "OPENAI_BASE_URL": provider.base_url}
        await provider.stop_listening()
        repl = FakeRepl(tmp_path, "my-model", NOT_NOW, **environ)
        await welcome(repl)
        assert repl.printed == [f"Not saved: could not connect to the provider: no answer from {provider.base_url}"]
        assert repl.saved == ""


@pytest.mark.usefixtures("no_server")
async def test_if_nothing_is_found_it_explains_the_options(tmp_path: Path) -> None:
    repl = FakeRepl(tmp_path)
    await welcome(repl)
    assert (repl.options, repl.printed) == ((), [NOTHING_FOUND])


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
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
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
    loaded = load_settings(environ={}, config_dir=Path("/nowhere"))
    assert [str(offer) for offer in await detect_models(loaded)] == [
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
def test_a_first_request_typed_at_the_question_is_sent_after_the_choice(open_terminal: OpenTerminal) -> None:
    with ThreadedProvider(otherwise=Text("It is a test.")) as provider:
        terminal = open_terminal(
            OPENAI_API_KEY="sk-0123456789abcdef", OPENAI_BASE_URL=provider.base_url, AGENT_PLANNING="auto"
        )
        terminal.wait_for(QUESTION_HINT)
        terminal.pause()
        terminal.send("what is this?" + ENTER)
        terminal.wait_for("Your request is kept")
        terminal.pause()
        terminal.send("test-model" + ENTER)
        terminal.wait_for("Saved test-model")
        terminal.wait_for("It is a test.")
        assert (terminal.user.home / ".config/agent/config.toml").read_text() == 'model = "test-model"\n'
        terminal.send(ctrl("d"))
        assert terminal.wait_exit() == 0


@pytest.mark.slow
def test_the_prompt_works_without_any_model(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.wait_for(NOTHING_FOUND.splitlines()[-1])
    terminal.send_line("do something")
    terminal.wait_for("no model is set")
    shown = terminal.wait_for("/model provider/name").partition("no model is set")[2]
    assert [word for word in ("agent config", "agent demo", "--model") if word in shown] == []
    terminal.send_line("/cost")
    terminal.wait_for("0 tokens")
