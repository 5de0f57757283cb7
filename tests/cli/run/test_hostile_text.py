"""Text from models, files, names and commands reaches a terminal without control sequences."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.cli.screen.hostile import HOSTILE, find_foreign
from tests.cli.terminal_user import User, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow
PRINTING = f"python3 -c {shlex.quote(f'print({HOSTILE!a})')}"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """A user whose session, memory, files and settings contain hostile text."""
    # The workspace must contain no private folder, which Landlock cannot hide.
    environ = {"AGENT_CONFIG_DIR": str(tmp_path_factory.mktemp("config"))}
    user = User(home=tmp_path_factory.mktemp("hostile"), environ=environ)
    user.agent("memory", "add", "--", f"note {HOSTILE}")
    user.agent("config", "set", "api_base", f"http://localhost/{HOSTILE}")
    yield user


def model(user: User) -> str:
    first = step("s1") | {"title": f"Title {HOSTILE}", "instruction": f"Do {HOSTILE}"}
    return user.script(
        plan(first, step("s2", "s1") | {"title": HOSTILE}),
        step_call("s1", "write_file", path="a\x1b[8m\u202eb.txt", content=f"one\n{HOSTILE}\n\ttwo\n"),
        step_call("s1", "run_command", command=PRINTING),
        step_call("s1", HOSTILE, argument=HOSTILE),
        step_call("s1", "read_file", path=f"no{HOSTILE}"),
        step_reply("s1", f"first {HOSTILE}"),
        step_reply("s2", f"second {HOSTILE}"),
        {"match": {"purpose": "composer"}, "text": f"# Answer\n\n{HOSTILE} &#8238; &#27;[2J\n\n```\n{HOSTILE}\n```"},
    )


def terminal_output(user: User, *words: str, types: str = "", **environ: str) -> bytes:
    """Return all bytes that a command writes to a terminal."""
    command, *arguments = user.command(*words)
    more = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **environ}
    child = pexpect.spawn(
        command, arguments, env=user.environment(**more), cwd=str(user.home), timeout=60, dimensions=(40, 100)
    )
    if types:
        child.send(types)
    child.expect(pexpect.EOF)
    child.close()
    return bytes(child.before)


def run_hostile(user: User, *flags: str) -> bytes:
    words = ("run", "-C", ".", "--session", "s", "--approval-mode", "yolo", *flags, f"Please {HOSTILE}")
    return terminal_output(user, *words, AGENT_MODEL=model(user))


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize(
    "flags", [(), ("--plain",), ("-q",), ("--output-format", "json"), ("--output-format", "stream-json")]
)
def test_a_run_writes_no_foreign_sequences_to_the_terminal(user: User, flags: tuple[str, ...]) -> None:
    text = run_hostile(user, *flags)
    assert b"the end" in text
    assert find_foreign(text) == []


PAGES = (
    "sessions list", "sessions list --json", "sessions show s", "sessions show s --json", "sessions search end",
    "sessions search end --json", "sessions export s", "sessions export s --format json", "sessions diff s",
    "sessions diff s --by-step", "sessions undo s", "runs list", "runs list --json", "runs show RUN",
    "runs show RUN --json", "runs why RUN s1", "runs why RUN s1 --json", "runs events RUN", "memory show",
    "memory show --json", "config show", "config get api_base",
)  # fmt: skip


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_writes_no_foreign_sequences_to_the_terminal(user: User, page: str) -> None:
    log = user.data / "sessions" / "s" / "events.jsonl"
    if not log.exists():
        run_hostile(user)
    run = re.findall(r"run-\d+-\w+", log.read_text())[0]
    text = terminal_output(user, *page.replace("RUN", run).split(), types="n\r")
    assert b"Traceback" not in text
    assert len(text) > 20
    assert find_foreign(text) == []


COMMAND_LINES = (
    ("exec", "--", PRINTING),
    ("exec", "--", PRINTING.replace("print(", "print(30000 * ")),
    ("tools", "call", "run_command", f"command={PRINTING}"),
    ("tools", "call", "read_file", f"path={HOSTILE}"),
    ("tools", "show", HOSTILE),
    ("check", HOSTILE),
    ("check", "--json", HOSTILE),
    ("memory", "add", "--", f"another {HOSTILE}"),
    ("rules", "add", "--allow", f"git push {HOSTILE}"),
    ("rules", "list"),
    ("run", "x", "--model", f"openai/{HOSTILE}"),
    ("run", "x", "-f", HOSTILE),
    ("run", "x", "--plan", "bad.json"),
    ("run", "x", "--plan", "bad.toml"),
    ("run", "x", "--set", HOSTILE),
    ("run", "x", "--session", HOSTILE),
    ("runs", "show", HOSTILE),
    ("resume", HOSTILE),
    (f"no{HOSTILE}".replace(" ", "_"), "x"),
    ("run", f"--no{HOSTILE}"),
    ("run", "x", "--model", "script:bad.jsonl"),
)


@pytest.mark.parametrize("words", COMMAND_LINES, ids=range(len(COMMAND_LINES)))
def test_errors_and_single_calls_write_no_foreign_sequences_to_the_terminal(user: User, words: tuple[str, ...]) -> None:
    Path(user.home, "bad.toml").write_text(f"x = '{HOSTILE}")
    Path(user.home, "bad.jsonl").write_text("{" + HOSTILE)
    steps = [{"id": HOSTILE, "title": "t", "instruction": "i", "depends_on": [f"z{HOSTILE}"], "tool": HOSTILE}]
    Path(user.home, "bad.json").write_text(json.dumps({"request": "x", "steps": steps}))
    text = terminal_output(user, *words)
    assert find_foreign(text) == []
