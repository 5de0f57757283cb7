"""What `pip install .` installs, without any extra, is a complete program."""

import fcntl
import http.server
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.version import VERSION
from tests.cli.repl.terminal_session import TerminalSession, ctrl
from tests.cli.terminal_user import User
from tests.house.source_tree import ROOT
from tests.provider.replies import Calls, Text
from tests.provider.threaded import ThreadedProvider

pytestmark = pytest.mark.slow

EXTRAS = ("mcp", "fastapi", "uvicorn", "docker", "opentelemetry", "pypdf", "PIL")
PAGE = b"<html><head><title>Winches</title></head><body><article><h1>Winches</h1><p>A windlass lifts weights.</p>"
# Only guards against hanging; pip downloads everything again.
INSTALL_LIMIT_S = 1200


def _install(folder: Path) -> str:
    """Install the checkout into a new environment, with the versions of the lock file; return why it failed."""
    python = folder / "bin" / "python"
    pinned = subprocess.run(
        [sys.executable, ROOT / ".ci" / "constraints.py", ROOT / "uv.lock"], capture_output=True, check=True
    )
    constraints = folder.with_name("constraints.txt")
    constraints.write_bytes(pinned.stdout)
    with_uv = (
        ["uv", "venv", "--quiet", "--python", sys.executable, folder],
        ["uv", "pip", "install", "--quiet", "--python", python, "--constraint", constraints, ROOT],
    )
    with_pip = (
        [sys.executable, "-m", "venv", folder],
        [python, "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", constraints, ROOT],
    )
    try:
        return _run_all(with_uv)
    except FileNotFoundError:
        return _run_all(with_pip)


def _run_all(commands: tuple[list[str | Path], ...]) -> str:
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
        if done.returncode != 0:
            return done.stderr or done.stdout
    return ""


def _install_once(folder: Path) -> str:
    """Install unless another worker has done so; return why it failed."""
    result = folder.with_name("result.txt")
    with folder.with_name("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            result.write_text(_install(folder))
        return result.read_text()


@pytest.fixture(scope="module")
def program() -> Path:
    """The program `agent` of a clean environment, which all workers share."""
    parent = Path(tempfile.gettempdir()) / "plain-install"
    parent.mkdir(exist_ok=True)
    folder = parent / "venv"
    if problem := _install_once(folder):
        reason = f"nothing can be installed here: {problem[-500:]}"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return folder / "bin" / "agent"


@pytest.fixture
def user(tmp_path: Path) -> User:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    return User(home=home, environ={"PYTHONPATH": "", "AGENT_PLANNING": "auto"})


def run(program: Path, user: User, *words: str, **environ: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [program, *words],
        env=user.environment(**environ),
        cwd=user.home / "project",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a web page on loopback."""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def test_a_plain_install_has_no_package_of_an_extra(program: Path) -> None:
    source = f"from importlib.util import find_spec; print([name for name in {EXTRAS} if find_spec(name)])"
    done = subprocess.run([program.with_name("python"), "-I", "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_provider_behind_litellm_calls_a_tool(program: Path, user: User) -> None:
    (user.home / "project" / "notes.txt").write_text("the lamp is green\n")
    # One after the other: the first compiles litellm, which takes ten seconds.
    for model in ("cerebras/llama-3.3-70b", "azure_ai/claude-sonnet-4-5"):
        with ThreadedProvider(Calls(("read_file", {"path": "notes.txt"})), Text("It is green.")) as provider:
            name = model.partition("/")[0].upper()
            keys = {f"{name}_API_BASE": provider.base_url, f"{name}_API_KEY": "key-0123456789"}
            code, stdout, stderr = run(program, user, "run", "--model", model, "-C", ".", "which color?", **keys)
        assert (code, stdout) == (0, "It is green.\n"), f"{model}: {stderr}"
        assert b"the lamp is green" in provider.requests[1].raw, model


def test_the_demo_runs(program: Path, user: User) -> None:
    code, stdout, stderr = run(program, user, "demo")
    assert code == 0 and stdout.strip(), stderr


def test_a_page_is_fetched_and_its_text_extracted(program: Path, user: User, page: str) -> None:
    words = ("tools", "call", "fetch_page", f"url={page}", "--set", "web_allow_loopback=true")
    code, stdout, stderr = run(program, user, *words)
    assert code == 0 and "A windlass lifts weights." in stdout and "<p>" not in stdout, stderr


def test_commands_are_judged_and_run(program: Path, user: User) -> None:
    assert "block" in run(program, user, "check", "rm -rf /")[1]
    assert run(program, user, "exec", "--", "echo", "hello")[:2] == (0, "hello\n")


def test_the_setup_is_checked(program: Path, user: User) -> None:
    code, stdout, stderr = run(program, user, "doctor")
    assert code in (0, 1) and "sandbox" in stdout and "Traceback" not in stderr


def test_the_prompt_opens_and_answers(program: Path, user: User) -> None:
    model = user.script({"match": {"purpose": "lead"}, "text": "Hello there."})
    terminal = TerminalSession(user, program=(str(program),), model=model)
    try:
        terminal.wait_for(VERSION)
        terminal.send_line("hello")
        terminal.wait_for("Hello there.")
        terminal.send(ctrl("d"))
        assert terminal.wait_exit() == 0
    finally:
        terminal.close()
