"""The candidates for the word at the cursor."""

import pytest

from cli.command_table import COMMANDS
from cli.completion.candidates import FILES, SOURCES
from cli.completion.command_tree import CommandNode, build_tree
from cli.completion.complete import Completions, complete_words
from cli.completion.model_values import KEY_SET, LOCAL, NEEDS_KEY, sort_models
from cli.typer_program import build_application
from tests.cli.terminal_user import User, one_step, step_reply

pytestmark = pytest.mark.usefixtures("user")
MODES = ["ask", "auto-edit", "never", "yolo", "plan", "review"]


def complete(*words: str) -> Completions:
    return complete_words(words, build_application)


def offered_words(line: str) -> list[str]:
    """Return the candidates for the last word of a line."""
    completions = complete(*line.split(" "))
    assert completions.kind == "words"
    return [item.word for item in completions.items]


def offered_kind(line: str) -> str:
    completions = complete(*line.split(" "))
    assert completions.items == ()
    return completions.kind


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ru", ["run", "runs", "rules"]),
        ("sessions f", ["fork", "fsck"]),
        ("nonsense ", []),
        ("--ver", ["--version"]),
        ("run --mod", ["--model"]),
        ("run -q --qui", []),
        ("run --allow a --al", ["--allow-net", "--allow"]),
        ("run -C", ["-C"]),
        ("run -- --mod", []),
        ("run hello --approval-mode ", MODES),
        ("run --approval-mode=au", ["--approval-mode=auto-edit"]),
        ("--approval-mode yolo -p hello --output-format s", ["stream-json"]),
        ("-p hello --mod", ["--model"]),
        ("tools call --approval-mode y", ["yolo"]),
        ("run --backend s", ["sandbox"]),
        ("run --replan s", ["surprise"]),
        ("run --on-approval f", ["fail"]),
        ("memory add --tag D", ["DECISION"]),
        ("run --profile ", ["default", "reviewer", "planner", "developer", "work"]),
        ("config get max_t", ["max_turns", "max_tokens"]),
        ("config get keys.open", ["keys.openai", "keys.openrouter"]),
        ("config set replan a", ["always"]),
        ("config set web_cache ", ["true", "false"]),
        ("config set max_tokens 1", []),
        ("run --set web_cache=f", ["web_cache=false"]),
        ("run --set web_rob", ["web_robots="]),
        ("rules rm ", ["git push"]),
        ("tools show man", ["manage_tasks", "manage_jobs"]),
        ("tools call read_file ", ["path=", "offset=", "limit=", "more="]),
        ("tools call read_file path=x of", ["offset="]),
        ("run --deny write_", ["write_file"]),
        ("runs events last --type approval", ["approval.requested", "approval.resolved"]),
    ],
)
def test_matching_words_are_offered(line: str, offered: list[str]) -> None:
    assert offered_words(line) == offered


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("run -C ", "folders"),
        ("run --plan x", "plans"),
        ("run --plan=x", "plans"),
        ("plan --save ", "plans"),
        ("run -f ", "files"),
        ("run --model script:x", "files"),
        ("exec -- ", "files"),
        ("tools call read_file path=x", "files"),
    ],
)
def test_files_are_left_to_the_shell(line: str, files: str) -> None:
    assert offered_kind(line) == files


def test_newer_models_come_first_and_those_made_for_something_else_last() -> None:
    names = [
        "ft:gpt-4o",
        "gpt-4-0613",
        "gpt-audio",
        "gpt-4o",
        "gpt-4.1-2025-04-14",
        "gpt-5.4-mini",
        "gpt-5",
    ]
    assert sort_models(names) == [
        "gpt-5.4-mini",
        "gpt-5",
        "gpt-4o",
        "gpt-4.1-2025-04-14",
        "gpt-4-0613",
        "gpt-audio",
    ]


def test_configured_models_are_offered_before_providers() -> None:
    offered = offered_words("run --model ")
    assert offered[:2] == ["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5"]
    assert "anthropic/" in offered and "ollama/" in offered and offered[-1] == "script:"
    assert "anthropic/claude-sonnet-4-5" in offered_words("run --planner-model anthropic/cl")
    assert "model=openai/gpt-5-mini" in offered_words("run --set model=openai/gpt-5")
    assert offered_words("run --model together/")[0].startswith("together/")
    states = {item.word: item.description for item in complete("run", "--model", "").items}
    assert (states["openai/"], states["groq/"], states["ollama/"]) == (KEY_SET, NEEDS_KEY, LOCAL)


def test_invalid_settings_give_no_candidates(user: User) -> None:
    (user.home / "config" / "config.toml").write_text("model = ")
    assert complete("run", "--model", "") == Completions()


@pytest.mark.slow
def test_steps_are_offered_with_their_status(user: User) -> None:
    model = user.script(*one_step(step_reply("s1", "done")))
    assert user.agent("run", "--model", model, "--session", "one", "go").exit_code == 0
    items = complete("runs", "why", "last", "").items
    assert [(item.word, item.description) for item in items] == [("s1", "ok: done")]


def test_completion_creates_no_files(user: User) -> None:
    for line in ("sessions show ", "runs show ", "resume ", "runs why last "):
        assert offered_words(line) == []
    assert not user.data.exists()


def test_every_source_belongs_to_an_existing_parameter() -> None:
    known: set[str] = set()
    for entry in COMMANDS:
        _collect(build_tree(build_application(entry.name)).commands[entry.name], (entry.name,), known)
    assert [name for name in (*SOURCES, *FILES) if name not in known] == []


def _collect(command: CommandNode, path: tuple[str, ...], known: set[str]) -> None:
    for parameter in command.parameters:
        known |= {parameter.name, " ".join((*path, parameter.name))}
    for name, subcommand in command.commands.items():
        _collect(subcommand, (*path, name), known)
