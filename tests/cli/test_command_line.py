"""What is typed after `agent`: commands, help, typos, and a request for the prompt."""

import re

import pytest

from agent.vocabulary.errors import UsageError
from cli.command_line import HELP_HINT, CommandLine, read_command_line
from cli.command_table import COMMANDS
from tests.cli.terminal_user import User

DEFAULTS = {entry.name: entry.default for entry in COMMANDS}


def read(*words: str) -> CommandLine:
    return read_command_line(words, DEFAULTS)


@pytest.mark.parametrize(
    ("words", "command", "arguments"),
    [
        ((), None, []),
        (("run", "fix it", "--model", "m"), "run", ["run", "fix it", "--model", "m"]),
        (("-p", "fix it", "--model", "m"), "run", ["run", "--model", "m", "--", "fix it"]),
        # `-p` as a flag of its own, as in other agents.
        (("-p", "--model", "m", "fix it"), "run", ["run", "--model", "m", "fix it"]),
        (("--model", "m", "fix it", "-p"), "run", ["run", "--model", "m", "fix it"]),
        (("fix the bug", "-p"), "run", ["run", "fix the bug"]),
        (("-p", "- the first point"), "run", ["run", "--", "- the first point"]),
        (("-p", "-"), "run", ["run", "--", "-"]),
        (("--model", "m", "-C", "src"), None, ["--model", "m", "-C", "src"]),
        (("help",), None, ["--help"]),
        (("help", "run"), "run", ["run", "--help"]),
        (("help", "sessions", "list"), "sessions", ["sessions", "list", "--help"]),
        (("sessions",), "sessions", ["sessions", "list"]),
        (("runs", "--json"), "runs", ["runs", "list", "--json"]),
        (("memory",), "memory", ["memory", "show"]),
        (("rules",), "rules", ["rules", "list"]),
        (("tools",), "tools", ["tools", "list"]),
        (("config",), "config", ["config", "show"]),
        (("sessions", "--help"), "sessions", ["sessions", "--help"]),
        (("sessions", "show", "x"), "sessions", ["sessions", "show", "x"]),
        (("doctor",), "doctor", ["doctor"]),
        (("--version", "run"), None, ["--version"]),
        # The value of a flag is no command.
        (("--model", "run"), None, ["--model", "run"]),
        (("--show-completion",), None, ["--show-completion", ""]),
    ],
)
def test_the_command_is_found(words: tuple[str, ...], command: str | None, arguments: list[str]) -> None:
    assert read(*words) == CommandLine(command=command, arguments=arguments)


@pytest.mark.parametrize(
    ("words", "request_text", "arguments"),
    [
        (("fix the bug",), "fix the bug", []),
        (("--model", "m", "fix the bug", "-C", "src"), "fix the bug", ["--model", "m", "-C", "src"]),
        (("-c", "go on"), "go on", ["-c"]),
        (("hello",), "hello", []),
        (("run the tests",), "run the tests", []),
        (("--", "nonsense"), "nonsense", []),
    ],
)
def test_one_text_that_is_no_command_is_a_request(
    words: tuple[str, ...], request_text: str, arguments: list[str]
) -> None:
    assert read(*words) == CommandLine(command=None, arguments=arguments, request=request_text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sesions",), "unknown command 'sesions', did you mean sessions?"),
        (("sesions", "list"), "unknown command 'sesions', did you mean sessions?"),
        (("resum",), "unknown command 'resum', did you mean resume?"),
        (("sessoin",), "unknown command 'sessoin', did you mean sessions?"),
        (("hepl",), "unknown command 'hepl', did you mean help?"),
        (("help", "chek"), "unknown command 'chek', did you mean check?"),
        (("fix", "the", "bug"), "unknown command 'fix'"),
        (("fix the bug", "and that one"), "expected one request, but 'and that one' is a second one"),
        (("--model", "m", "run", "x"), "--model before a command applies only to the prompt"),
        (("-c", "run"), "-c before a command applies only to the prompt"),
    ],
)
def test_mistakes_point_to_the_right_command(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert caught.value.message == message
    assert "agent run" not in caught.value.hint or "run" in words


@pytest.mark.slow
def test_without_a_terminal_a_request_names_agent_run(user: User) -> None:
    ended = user.agent("fix the 'bug'")
    assert (ended.exit_code, ended.stdout) == (2, "")
    hint = re.search("use `agent run (.*)`", ended.stderr)
    assert hint and hint[1] == "'fix the '\"'\"'bug'\"'\"''"
    word = user.agent("nonsense")
    assert (word.exit_code, word.stderr) == (2, f"error: unknown command 'nonsense'\nhint: {HELP_HINT}\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sessions", "runs", "memory", "rules", "tools", "config"])
def test_a_group_alone_shows_what_is_there(user: User, name: str) -> None:
    alone, full = user.agent(name), user.agent(name, DEFAULTS[name])
    assert alone.exit_code == 0 and alone.stdout
    assert alone == full


@pytest.mark.slow
def test_help_of_a_command_is_its_help(user: User) -> None:
    assert user.agent("help", "run") == user.agent("run", "--help")
    assert user.agent("help") == user.agent("--help")


def test_words_of_other_agents_are_explained() -> None:
    for word, hint in (
        ("login", "OPENAI_API_KEY"),
        ("init", "`/init`"),
        ("models", "agent config set model"),
        ("version", "agent --version"),
        ("history", "`agent sessions`"),
        ("undo", "agent sessions undo"),
        ("diff", "agent sessions diff"),
    ):
        with pytest.raises(UsageError, match=f"unknown command '{word}'") as caught:
            read(word)
        assert hint in caught.value.hint


def test_wrong_flags_and_arguments_are_errors_like_others(user: User) -> None:
    for words, error, hint in (
        (("run", "--yolo", "x"), "no such option: --yolo", "here it is --approval-mode yolo"),
        (("run", "-m", "gpt", "x"), "no such option: -m", "here it is --model"),
        (("run", "--allowed-tools", "x", "y"), "no such option: --allowed-tools", "here it is --allow"),
        (("run", "--mcp-config", "x", "y"), "no such option: --mcp-config", "here it is --mcp"),
        (
            ("-r", "x", "--fork-session"),
            "no such option: --fork-session",
            "here it is --fork of `agent run`, or `/fork` at the prompt",
        ),
        (("check", "ls", "-la"), "no such option: -l", "quote the command: agent check 'ls -la'"),
        (("run", "--modle", "gpt", "x"), "no such option: --modle, did you mean --model?", "see `agent run --help`"),
        (("--bogus",), "no such option: --bogus", "see `agent --help`"),
        (("run", "fix", "it"), "unexpected argument: it", 'put the task in quotes: agent run "…"'),
        (
            ("run", "--max-steps", "x", "y"),
            "invalid value for '--max-steps': 'x' is not a valid int",
            "see `agent run --help`",
        ),
        (("sessions", "show"), "missing argument 'SESSION'", "see `agent sessions show --help`"),
    ):
        ended = user.agent(*words)
        assert (ended.exit_code, ended.stdout, ended.stderr) == (2, "", f"error: {error}\nhint: {hint}\n")
