"""Commands do not load heavy libraries they do not need, checked in the real process."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from agent.version import VERSION
from tests.house.program import PYTHON, FinishedProcess, run_agent, run_python
from tests.house.source_tree import LAYERS, ROOT, modules
from tests.provider.replies import Text
from tests.provider.threaded import ThreadedProvider

pytestmark = pytest.mark.slow

HEAVY = (
    "litellm",
    "openai",
    "pydantic",
    "httpx",
    "prompt_toolkit",
    "trafilatura",
    "lxml",
    "platformdirs",
    "jsonschema",
    "tomlkit",
)
# What a first request could do with, but should not wait for.
AFTER_FIRST_REQUEST = (
    *("typer", "rich", "shutil", "tempfile", "random", "secrets", "difflib", "filecmp", "tomllib", "ctypes"),
    *("tree_sitter", "cli.typer_program", "cli.run.terminal_approvals", "cli.screen.markdown"),
    *("agent.backends.sandbox.detect", "agent.backends.sandbox.runner", "agent.backends.sandbox.git.config_entries"),
    *("agent.backends.egress.host_rules", "agent.planning.manifest_file", "agent.planning.plan_text"),
    *("agent.model.reply.textual_calls", "agent.model.reply.call_arguments", "agent.sessions.checkpoints.keeper"),
    *("agent.memory.after_run", "agent.workspace.worktrees", "tooling.files.temp_dir", "tooling.images.prepare"),
    *("tooling.patch.hunks", "tooling.safety.shell.shell_judge", "tooling.web.http.web_client", "tooling.invoke"),
    *("tooling.tools.run_command", "tooling.tools.read_file", "tooling.files.change_file", "agent.memory.triggers"),
    *("agent.model.http.response_parser", "agent.model.wire.reply_stream", "agent.model.fault_mapping", "zlib"),
    *("agent.sessions.views.session_summary", "agent.sessions.views.task_list", "agent.execution.result.structured"),
    *("agent.config.edit", "tooling.tool_catalog", "importlib.util"),
)
MOST_OWN_MODULES = 235
_NOTE_AT_FIRST_REQUEST = """
import sys
from agent.model.http.connection import Connection
write, noted = Connection.write, sys.argv.pop(1)
def note_and_write(connection, data):
    with open(noted, "x") as file:
        file.write("\\n".join(sys.modules))
    Connection.write = write
    return connection.write(data)
Connection.write = note_and_write
from cli.main import main
main()
"""
HELLO = ROOT / "examples" / "hello.jsonl"


def loaded_among(names: tuple[str, ...], finished: FinishedProcess) -> list[str]:
    assert finished.exit_code == 0, finished.stderr
    return [name for name in names if name in finished.loaded_modules]


def test_version_loads_no_library_and_only_four_modules(tmp_path: Path) -> None:
    finished = run_agent(tmp_path, "--version")
    bare = run_python(tmp_path, ("-c", "pass")).loaded_modules
    assert loaded_among((*HEAVY, "rich", "typer", "asyncio"), finished) == []
    assert VERSION in finished.stdout
    extra = {name.partition(".")[0] for name in finished.loaded_modules - bare} - sys.stdlib_module_names
    assert extra <= set(LAYERS)
    own = {name for name in finished.loaded_modules if name.partition(".")[0] in LAYERS}
    assert own <= {"cli", "cli.main", "agent", "agent.version"}


def test_help_loads_no_heavy_library(tmp_path: Path) -> None:
    finished = run_agent(tmp_path, "--help")
    assert loaded_among(HEAVY, finished) == []
    assert "run" in finished.stdout


def test_config_loads_neither_heavy_libraries_nor_the_engine(tmp_path: Path) -> None:
    finished = run_agent(tmp_path, "config", "show")
    assert loaded_among((*HEAVY, "rich.console", "asyncio", "agent.app", "agent.engine"), finished) == []


@pytest.mark.parametrize("words", [("ru",), ("sessions", "show", ""), ("config", "set", "model", "openai/")])
def test_completion_loads_neither_heavy_libraries_nor_the_engine(tmp_path: Path, words: tuple[str, ...]) -> None:
    finished = run_agent(tmp_path, "__complete", "zsh", *words)
    assert loaded_among((*HEAVY, "rich.console", "asyncio", "agent.app", "agent.engine"), finished) == []


@pytest.mark.parametrize("words", [("sessions", "list"), ("sessions", "search", "x"), ("runs", "list")])
def test_listings_load_neither_heavy_libraries_nor_the_engine(tmp_path: Path, words: tuple[str, ...]) -> None:
    run_agent(tmp_path, "run", "--model", f"script:{HELLO}", "x")
    finished = run_agent(tmp_path, *words)
    assert loaded_among((*HEAVY, "rich.console", "asyncio", "agent.app", "agent.engine"), finished) == []


def test_help_of_the_program_loads_no_parser(tmp_path: Path) -> None:
    assert loaded_among(("typer", "asyncio", "cli.typer_program"), run_agent(tmp_path, "--help")) == []


def test_help_of_a_command_does_not_load_what_does_the_work(tmp_path: Path) -> None:
    finished = run_agent(tmp_path, "run", "--help")
    assert loaded_among((*HEAVY, "rich", "asyncio", "agent.app", "cli.run.run_task"), finished) == []


def test_a_first_request_is_sent_before_anything_loads_that_it_does_not_need(tmp_path: Path) -> None:
    loaded = _loaded_before_first_request(tmp_path)
    assert [name for name in (*HEAVY, *AFTER_FIRST_REQUEST) if name in loaded] == []
    own = sorted(name for name in loaded if name.partition(".")[0] in LAYERS)
    assert len(own) <= MOST_OWN_MODULES, f"{len(own)} modules of our own: load later what a first request does not need"


def _loaded_before_first_request(home: Path) -> set[str]:
    """Return the modules that a run has loaded when it writes its first request."""
    noted = home / "loaded.txt"
    with ThreadedProvider(otherwise=Text("Done.")) as provider:
        environ = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "AGENT_SANDBOX": str(home / "data"),
            "AGENT_API_BASE": provider.base_url,
            "AGENT_API_KEY": "sk-0123456789abcdef",
        }
        words = [PYTHON, "-c", _NOTE_AT_FIRST_REQUEST, noted, "run", "--model", "openai/some", "say hello"]
        done = subprocess.run(words, env=environ, cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(noted.read_text().split())


def test_a_run_with_a_scripted_model_loads_no_provider_and_no_terminal_library(tmp_path: Path) -> None:
    finished = run_agent(tmp_path, "run", "--model", f"script:{HELLO}", "say hello")
    assert loaded_among((*HEAVY, "rich"), finished) == []
    assert finished.stdout.strip()


def test_no_pattern_is_compiled_while_a_module_loads() -> None:
    assert [source.name for source in modules() if any(map(_compiles, source.tree.body))] == [], "use lazy_pattern"


def _compiles(statement: ast.AST) -> bool:
    """Whether a statement of a module compiles a pattern when it is run, outside of functions."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return False
    is_call = isinstance(statement, ast.Call) and ast.unparse(statement.func) == "re.compile"
    return is_call or any(map(_compiles, ast.iter_child_nodes(statement)))


def test_a_module_loaded_in_another_thread_is_noticed(tmp_path: Path) -> None:
    source = "import threading; t = threading.Thread(target=__import__, args=('httpx',)); t.start(); t.join()"
    assert loaded_among(HEAVY, run_python(tmp_path, ("-c", source))) == ["httpx"]


def test_a_failing_program_fails_the_check(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        loaded_among(HEAVY, run_python(tmp_path, ("-c", "raise SystemExit(3)")))
