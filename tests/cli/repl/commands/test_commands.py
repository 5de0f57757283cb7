"""Every slash command, with right arguments and wrong ones."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from cli.repl.commands.builtin import COMMANDS, KEY_HELP, user_command
from cli.repl.commands.user_commands import load_user_commands
from cli.repl.slash_commands import SlashCommand
from cli.repl.welcome import NOTHING_FOUND
from tests.cli.repl.test_conversation import reply_to
from tests.cli.repl.ui.headless_tui import ReplHarness
from tests.cli.terminal_user import answer


def logged(talk: ReplHarness) -> list[dict[str, str]]:
    (log,) = Path(talk.environ["AGENT_SANDBOX"], "sessions").glob("*/events.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def write_settings(talk: ReplHarness, settings: str) -> None:
    config = Path(talk.environ["HOME"], ".config", "agent", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(settings)


def write_script(folder: Path, *replies: dict[str, object]) -> str:
    path = folder / "script.jsonl"
    path.write_text("\n".join(map(json.dumps, replies)))
    return f"script:{path}"


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[ReplHarness]:
    model = write_script(
        tmp_path,
        reply_to("first", answer("The first answer.")),
        reply_to("second", answer("The second answer.")),
        reply_to("Sum up", answer("All that was said.")),
        {"match": {"purpose": "planner", "contains": "wrong"}, "fault": "auth"},
    )
    talk = ReplHarness(tmp_path / "home", AGENT_MODEL=model)
    working = asyncio.ensure_future(talk.repl.queue.run())
    yield talk
    talk.repl.queue.stop()
    await working


RIGHT = {
    "/model ollama/qwen3": "model: ollama/qwen3",
    "/model openai/gpt-5": "warning: no key is set for this provider: set OPENAI_API_KEY to use openai/gpt-5"
    "\nmodel: openai/gpt-5",
    "/model opnai/gpt-5": "warning: there is no known provider 'opnai', did you mean openai?\nmodel: opnai/gpt-5",
    "/theme": "theme: dark",
    "/mode never": "approval mode: never",
    "/mode": "approval mode: ask",
    "/budget": "a run may cost: no limit of tokens, no limit of money",
    "/budget 200000": "a run may cost: 200k of tokens, no limit of money",
    "/budget $1.50": "a run may cost: no limit of tokens, $1.50 of money",
    "/budget 1.5M $2": "a run may cost: 1.5M of tokens, $2.00 of money",
    "/budget off": "a run may cost: no limit of tokens, no limit of money",
    "/cost": "0 tokens in 0 requests, $0.0000",
    "/queue": "nothing is queued",
    "/queue clear": "nothing is queued",
    "/plan": "there is no plan yet",
    "/clear": "a new session",
    "/theme light": "theme: light",
    "/help mode": "  /mode [MODE]  Show or choose when you are asked.",
    "/help /cost": "  /cost  What this session has cost.",
}


@pytest.mark.parametrize("line", RIGHT)
async def test_a_command_does_what_it_says(talk: ReplHarness, line: str) -> None:
    assert await talk.send(line) == RIGHT[line]


WRONG = {
    "/mode wild": "error: there is no mode 'wild'\n  one of ask, auto-edit, never, yolo",
    "/budget lots": "error: 'lots' is no limit\n  /budget 200k for tokens, /budget $1.50 for money,"
    " /budget off for the limits\n  of your settings",
    "/model nonsense": "error: 'nonsense' is no model\n  provider/name, such as openai/gpt-5-mini; Tab lists them",
    "/model ollama/a b": "error: 'ollama/a b' is no model\n  provider/name, such as openai/gpt-5-mini; Tab lists them",
    "/model script:gone.jsonl": "error: there is no script gone.jsonl",
    "/search": "error: what shall be found?\n  /search some words; with --deep in all that was said and done",
    "/resume": "error: there is no other session to go on in",
    "/resume run-1": "error: there is no run 'run-1'\n  `agent runs list` shows them",
    "/resume nonsense": "error: there is no session 'nonsense'\n  `agent sessions list` shows them",
    "/demo now": "error: /demo takes no argument\n  /help lists what the commands take",
    "/theme pink": "error: there is no theme 'pink'\n  one of dark, light",
    "/queue jump": "error: the queue cannot 'jump'\n  /queue shows it; /queue drop 2, edit 2 or clear change it",
    "/queue drop 1": "error: there is no request 1 in the queue\n  /queue shows what waits",
    "/cost please": "error: /cost takes no argument\n  /help lists what the commands take",
    "/exit now": "error: /exit takes no argument\n  /help lists what the commands take",
    "/undo": "error: nothing has been done in this session yet\n  ask for something first",
    "/redo": "error: nothing has been done in this session yet\n  ask for something first",
    "/diff": "error: nothing has been done in this session yet\n  ask for something first",
    "/steps": "error: nothing has been done in this session yet\n  ask for something first",
    "/why s1": "error: nothing has been done in this session yet\n  ask for something first",
    "/compact": "error: nothing has been done in this session yet\n  ask for something first",
    "/fork": "error: nothing has been done in this session yet\n  ask for something first",
    "/export": "error: nothing has been done in this session yet\n  ask for something first",
    '/search "half': "error: '\"half' cannot be read: No closing quotation\n  quote words as in a shell",
    "/help nonsense": "error: there is no command /nonsense; /help lists them",
    "!": "error: which command?\n  !command runs a command of yours, such as !git status",
    "#": "error: what shall be remembered?\n  #note remembers something, such as #use tabs",
    "/modle": "error: there is no command /modle, did you mean mode?; /help lists them",
    "/": "error: there is no command /; /help lists them",
}


@pytest.mark.parametrize("line", WRONG)
async def test_a_wrong_argument_is_told_clearly(talk: ReplHarness, line: str) -> None:
    assert await talk.send(line) == WRONG[line]


@pytest.mark.parametrize("line", ["/budget -5", "/budget 0", "/budget $-1", "/budget $nan"])
async def test_a_limit_that_is_none_is_refused_and_forgotten(talk: ReplHarness, line: str) -> None:
    assert (await talk.send(line)).startswith("error: ")
    assert await talk.send("/budget") == "a run may cost: no limit of tokens, no limit of money"
    await talk.send("first")
    assert talk.ui.events[-1].event.exit_code == 0  # type: ignore[union-attr]


HANDED_ON = {
    "/tools": ("tools", "list"),
    "/tools show run_command": ("tools", "show", "run_command"),
    "/rules": ("rules", "list"),
    "/rules add 'git push'": ("rules", "add", "git push"),
    "/memory": ("memory", "show"),
    "/sessions": ("sessions", "list"),
    "/sessions show x": ("sessions", "show", "x"),
    "/search two words": ("sessions", "search", "two", "words"),
    "/doctor": ("doctor",),
    "/demo": ("demo",),
    "#use tabs": ("memory", "add", "-", "< use tabs"),
}


@pytest.mark.parametrize("line", HANDED_ON)
async def test_what_the_command_line_does_is_handed_to_it(talk: ReplHarness, line: str) -> None:
    assert await talk.send(line) == ""
    assert talk.programs.calls == [HANDED_ON[line]]


async def test_what_concerns_the_session_names_it(talk: ReplHarness) -> None:
    await talk.send("first")
    session, run = talk.repl.require_session_id(), talk.repl.require_run_id()
    for line in ("/diff", "/undo all --yes", "/export out.md", "/export --format json", "/export", "/steps", "/why s1"):
        await talk.send(line)
    assert talk.programs.calls == [
        ("sessions", "diff", session),
        ("sessions", "undo", session, "--yes"),
        ("sessions", "export", session, "-o", "out.md"),
        ("sessions", "export", session, "--format", "json"),
        ("sessions", "export", session),
        ("runs", "show", run),
        ("runs", "why", run, "s1"),
    ]


async def test_a_redo_without_an_undo_says_so(talk: ReplHarness) -> None:
    await talk.send("first")
    assert "nothing was taken back in this session" in await talk.send("/redo")


async def test_after_compact_the_history_begins_with_the_summary(talk: ReplHarness) -> None:
    await talk.send("first")
    before = talk.repl.require_session_id()
    await talk.send("/compact")
    assert "history  " in await talk.send("/context")
    await talk.send("second")
    assert talk.repl.require_session_id() == before
    contexts = [event["content"] for event in logged(talk) if event.get("role") == "context"]
    assert "what was said and done before: All that was said." in contexts[-1]
    assert "The first answer." not in contexts[-1]


async def test_a_fork_goes_on_in_a_copy(talk: ReplHarness) -> None:
    await talk.send("first")
    original = talk.repl.require_session_id()
    assert await talk.send("/fork mine") == f"you are in mine now, a copy of {original}\n/resume {original} goes back"
    await talk.send("second")
    assert talk.repl.require_session_id() == "mine"
    assert await talk.send("/fork mine") == "error: session mine already exists\n  choose another id, or omit it"


async def test_the_cost_of_a_session_is_summed_up_and_begins_anew_with_another(talk: ReplHarness) -> None:
    await talk.send("first")
    assert "tokens in 1 request, " in await talk.send("/cost")
    await talk.send("/clear")
    assert (await talk.send("/cost")).startswith("0 tokens in 0 requests")


async def test_what_waits_is_held_back_by_a_run_that_failed(talk: ReplHarness) -> None:
    talk.repl.accept("wrong")
    talk.repl.accept("second")
    await talk.wait_idle()
    assert "1 request waits: Enter goes on, /queue shows, /queue clear drops" in talk.ui.printed
    assert await talk.send("/queue") == "  1. second"
    await talk.send("")
    assert talk.ui.events[-1].event.result == "The second answer."  # type: ignore[union-attr]


async def test_a_new_request_goes_before_what_is_held(talk: ReplHarness) -> None:
    talk.repl.accept("wrong")
    talk.repl.accept("second")
    await talk.wait_idle()
    await talk.send("first")
    results = [envelope.event.result for envelope in talk.ui.events if hasattr(envelope.event, "result")]
    assert results[-2:] == ["The first answer.", "The second answer."]


async def test_what_is_held_can_be_dropped(talk: ReplHarness) -> None:
    talk.repl.accept("wrong")
    talk.repl.accept("second")
    await talk.wait_idle()
    assert await talk.send("/queue clear") == "nothing is queued"
    assert not talk.repl.queue.is_paused


async def test_settings_that_cannot_be_read_end_the_request_and_not_the_repl(talk: ReplHarness) -> None:
    write_settings(talk, "model = [broken")
    said = await talk.send("first")
    assert said.startswith("error: ") and "config.toml" in said
    assert "the settings cannot be read" in talk.repl.state.status
    write_settings(talk, "")
    await talk.send("first")
    assert talk.ui.events[-1].event.result == "The first answer."  # type: ignore[union-attr]


async def test_a_command_of_ones_own_is_a_request_with_its_argument(talk: ReplHarness, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "commands"
    folder.mkdir(parents=True)
    (folder / "first.md").write_text("---\ndescription: Ask it\nargument-hint: WORD\n---\nfirst $ARGUMENTS, please")
    (folder / "Plain.md").write_text("first of all")
    (folder / "empty.md").write_text("---\ndescription: nothing\n---\n")
    (folder / "bad name!.md").write_text("x")
    (folder / "no-text.md").write_bytes(b"\xff\xfe")
    talk.repl.add_commands(map(user_command, load_user_commands(tmp_path / "config", talk.repl.warn)))
    assert len([said for said in talk.ui.printed if said.startswith("warning: ")]) == 3
    assert await talk.send("/help first") == "  /first WORD  Ask it"
    await talk.send("/first thing")
    await talk.send("/plain and then")
    asked = [envelope.event.content for envelope in talk.ui.events if getattr(envelope.event, "role", "") == "user"]
    assert asked == ["first thing, please", "first of all\n\nand then"]


@pytest.mark.parametrize("columns", [40, 20])
async def test_in_a_narrow_window_no_word_is_broken(talk: ReplHarness, columns: int) -> None:
    talk.ui.columns = columns
    for line in ("/help", "/diff", "/context", "/nonsense"):
        await talk.send(line)
    talk.repl.print_line(NOTHING_FOUND)
    said = "\n".join(talk.ui.printed)
    assert all(cell_len(line) <= columns for line in said.splitlines())
    assert [word for word in said.split() if word not in _WORDS] == []


# Nothing else may appear: half a word would.
_WORDS = frozenset(
    word
    for text in (
        *(f"/{command.name} {command.usage} {command.help}" for command in COMMANDS),
        *KEY_HELP,
        NOTHING_FOUND,
        "error: nothing has been done in this session yet ask for something first",
        "history 0 characters characters, at most 6.0k, 0 requests so far memory in all about 0 tokens",
        "error: there is no command /nonsense; /help lists them",
    )
    for word in text.split()
)


async def completions(talk: ReplHarness, name: str, *typed: str) -> list[str]:
    command: SlashCommand = next(command for command in COMMANDS if command.name == name)
    assert command.complete
    return [word for word, _ in command.complete(talk.repl, typed) if word.startswith(typed[-1])]


async def test_arguments_complete(talk: ReplHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "AGENT_SANDBOX", "AGENT_MODEL"):
        monkeypatch.setenv(name, talk.environ[name])
    await talk.send("first")
    assert await completions(talk, "mode", "a") == ["ask", "auto-edit"]
    assert await completions(talk, "help", "mo") == ["model", "mode"]
    assert await completions(talk, "theme", "") == ["dark", "light"]
    assert await completions(talk, "queue", "") == ["drop", "edit", "clear"]
    assert "show" in await completions(talk, "tools", "s")
    assert "run_command" in await completions(talk, "tools", "show", "run")
    assert await completions(talk, "sessions", "show", talk.repl.require_session_id()[:6]) == [
        talk.repl.require_session_id()
    ]
    assert await completions(talk, "resume", talk.repl.require_session_id()[:6]) == [talk.repl.require_session_id()]
    assert await completions(talk, "resume", "run-") == [], "there is nothing to go on with"
    assert await completions(talk, "undo", "a") == ["all"]
    assert await completions(talk, "undo", "--y") == ["--yes"]
    assert await completions(talk, "budget", "") == ["off"]
    assert "anthropic/" in await completions(talk, "model", "anth")


def test_every_command_has_help_and_says_what_it_takes() -> None:
    for command in COMMANDS:
        assert command.help.endswith(".") and len(command.help) <= 45, command.name
        assert command.usage or not command.complete, command.name
