"""Commands do not load heavy libraries they do not need, checked in the real process."""

import sys
from pathlib import Path

import pytest

from agent.version import VERSION
from tests.house.program import FinishedProcess, run_agent, run_python
from tests.house.source_tree import LAYERS, ROOT

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
    assert loaded_among((*HEAVY, "rich", "asyncio", "agent.app", "agent.engine"), finished) == []


@pytest.mark.parametrize("words", [("ru",), ("sessions", "show", ""), ("config", "set", "model", "openai/")])
def test_completion_loads_neither_heavy_libraries_nor_the_engine(tmp_path: Path, words: tuple[str, ...]) -> None:
    finished = run_agent(tmp_path, "__complete", "zsh", *words)
    assert loaded_among((*HEAVY, "rich.console", "asyncio", "agent.app", "agent.engine"), finished) == []


@pytest.mark.parametrize("words", [("sessions", "list"), ("sessions", "search", "x"), ("runs", "list")])
def test_listings_load_neither_heavy_libraries_nor_the_engine(tmp_path: Path, words: tuple[str, ...]) -> None:
    run_agent(tmp_path, "run", "--model", f"script:{HELLO}", "x")
    finished = run_agent(tmp_path, *words)
    assert loaded_among((*HEAVY, "rich.console", "asyncio", "agent.app", "agent.engine"), finished) == []


def test_a_run_with_a_scripted_model_loads_no_provider_and_no_terminal_library(tmp_path: Path) -> None:
    finished = run_agent(tmp_path, "run", "--model", f"script:{HELLO}", "say hello")
    assert loaded_among((*HEAVY, "rich"), finished) == []
    assert finished.stdout.strip()


def test_a_module_loaded_in_another_thread_is_noticed(tmp_path: Path) -> None:
    source = "import threading; t = threading.Thread(target=__import__, args=('httpx',)); t.start(); t.join()"
    assert loaded_among(HEAVY, run_python(tmp_path, ("-c", source))) == ["httpx"]


def test_a_failing_program_fails_the_check(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        loaded_among(HEAVY, run_python(tmp_path, ("-c", "raise SystemExit(3)")))
