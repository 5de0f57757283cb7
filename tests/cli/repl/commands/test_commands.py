"""Every slash command, with valid and invalid arguments."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from agent.config.user_commands import load_user_commands
from agent.workspace.request_context import COMPACT_REQUEST
from cli.repl.commands.builtin import COMMANDS, EMPTY_QUEUE, KEY_HELP
from cli.repl.commands.request_commands import user_command
from cli.repl.commands.session_commands import NOTHING_TO_REDO
from cli.repl.commands.setting_commands import NO_LIMITS
from cli.repl.repl import no_run_yet
from cli.repl.request_queue import paused_notice
from cli.repl.slash_commands import OTHER_COMMANDS, SlashCommand, unknown_command
from cli.repl.state import UNREADABLE_SETTINGS
from cli.repl.welcome import NOTHING_FOUND
from tests.cli.repl.repl_harness import ReplHarness
from tests.cli.repl.screens import assert_matches_snapshot
from tests.cli.repl.test_conversation import reply_to
from tests.cli.terminal_user import answer


def logged(harness: ReplHarness) -> list[dict[str, str]]:
    (log,) = Path(harness.environ["AGENT_SANDBOX"], "sessions").glob("*/events.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def write_settings(harness: ReplHarness, settings: str) -> None:
    config = Path(harness.environ["HOME"], ".config", "agent", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(settings)


def write_script(folder: Path, *replies: dict[str, object]) -> str:
    path = folder / "script.jsonl"
    path.write_text("\n".join(map(json.dumps, replies)))
    return f"script:{path}"


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_script(
        tmp_path,
        reply_to("first", answer("The first answer.")),
        reply_to("second", answer("The second answer.")),
        reply_to(COMPACT_REQUEST[:6], answer("All that was said.")),
        {"match": {"purpose": "planner", "contains": "wrong"}, "fault": "auth"},
    )


@pytest.fixture
async def harness(tmp_path: Path, model: str) -> AsyncIterator[ReplHarness]:
    harness = ReplHarness(tmp_path / "home", AGENT_MODEL=model)
    async with harness.serving():
        yield harness


VALID = (
    "/model ollama/qwen3",
    "/model opnai/gpt-5",
    "/theme",
    "/theme light",
    "/mode",
    "/mode never",
    "/budget",
    "/budget 200000",
    "/budget $1.50",
    "/budget 1.5M $2",
    "/budget off",
    "/cost",
    "/queue",
    "/queue clear",
    "/plan",
    "/clear",
    "/help",
    "/help mode",
    "/help /cost",
)
INVALID = (
    "/mode wild",
    "/budget lots",
    "/model nonsense",
    "/model ollama/a b",
    "/model script:gone.jsonl",
    "/search",
    "/resume",
    "/demo now",
    "/theme pink",
    "/queue jump",
    "/queue drop 1",
    "/context rob",
    "/cost please",
    "/exit now",
    "/undo",
    "/redo",
    "/rewind",
    "/stop",
    "/stop s1",
    "/diff",
    "/steps",
    "/why s1",
    "/compact",
    "/fork",
    "/export",
    '/search "half',
    "/help nonsense",
    "!",
    "#",
    "/modle",
    "/",
)


@pytest.mark.parametrize(("name", "lines"), [("valid", VALID), ("invalid", INVALID)])
async def test_replies_to_commands_match_the_golden_screens(
    tmp_path: Path, model: str, name: str, lines: tuple[str, ...]
) -> None:
    screen: list[str] = []
    for number, line in enumerate(lines):
        reply = await ReplHarness(tmp_path / str(number), AGENT_MODEL=model).send(line)
        assert reply.startswith("error: ") == (name == "invalid"), (line, reply)
        screen += [f"> {line}", reply, ""]
    assert_matches_snapshot(f"commands-{name}", "\n".join(screen))


@pytest.mark.parametrize("line", ["/resume run-1", "/resume nonsense"])
async def test_errors_of_the_session_store_are_printed(harness: ReplHarness, line: str) -> None:
    reply = await harness.send(line)
    assert reply.startswith("error: ") and line.split()[1] in reply


async def test_a_model_without_a_key_is_set_with_a_warning(harness: ReplHarness) -> None:
    warning, model = (await harness.send("/model openai/gpt-5")).splitlines()
    assert warning.startswith("warning: ") and "OPENAI_API_KEY" in warning
    assert model == "model: openai/gpt-5"


@pytest.mark.parametrize("line", ["/budget -5", "/budget 0", "/budget $-1", "/budget $nan"])
async def test_an_invalid_limit_is_rejected_and_not_applied(harness: ReplHarness, line: str) -> None:
    assert (await harness.send(line)).startswith("error: ")
    assert await harness.send("/budget") == NO_LIMITS
    await harness.send("first")
    assert harness.ui.events[-1].event.exit_code == 0  # type: ignore[union-attr]


FORWARDED = {
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


@pytest.mark.parametrize("line", FORWARDED)
async def test_a_command_runs_the_agent_command_of_the_same_name(harness: ReplHarness, line: str) -> None:
    assert await harness.send(line) == ""
    assert harness.programs.calls == [FORWARDED[line]]


async def test_session_commands_pass_the_id_of_the_session_or_run(harness: ReplHarness) -> None:
    await harness.send("first")
    session, run = harness.repl.require_session_id(), harness.repl.require_run_id()
    for line in ("/diff", "/undo all --yes", "/export out.md", "/export --format json", "/export", "/steps", "/why s1"):
        await harness.send(line)
    assert harness.programs.calls == [
        ("sessions", "diff", session),
        ("sessions", "undo", session, "--yes"),
        ("sessions", "export", session, "-o", "out.md"),
        ("sessions", "export", session, "--format", "json"),
        ("sessions", "export", session),
        ("runs", "show", run),
        ("runs", "why", run, "s1"),
    ]


async def test_redo_without_undo_is_an_error(harness: ReplHarness) -> None:
    await harness.send("first")
    assert NOTHING_TO_REDO in await harness.send("/redo")


async def test_after_compact_the_history_starts_with_the_summary(harness: ReplHarness) -> None:
    await harness.send("first")
    before = harness.repl.require_session_id()
    await harness.send("/compact")
    assert "summaries  " in await harness.send("/context")
    await harness.send("second")
    assert harness.repl.require_session_id() == before
    contexts = [event["content"] for event in logged(harness) if event.get("role") == "context"]
    assert "All that was said." in contexts[-1]
    assert "The first answer." not in contexts[-1]


async def test_fork_continues_in_a_copy(harness: ReplHarness) -> None:
    await harness.send("first")
    original = harness.repl.require_session_id()
    assert (await harness.send("/fork mine")).startswith(f"switched to mine, a copy of {original}\n")
    await harness.send("second")
    assert harness.repl.require_session_id() == "mine"
    assert (await harness.send("/fork mine")).startswith("error: ")


async def test_cost_is_counted_per_session(harness: ReplHarness) -> None:
    await harness.send("first")
    assert "tokens in 1 request, " in await harness.send("/cost")
    await harness.send("/clear")
    assert (await harness.send("/cost")).startswith("0 tokens in 0 requests")


async def test_a_failed_run_pauses_the_queue(harness: ReplHarness) -> None:
    harness.repl.accept("wrong")
    harness.repl.accept("second")
    await harness.wait_idle()
    assert paused_notice(1) in harness.ui.printed
    assert await harness.send("/queue") == "  1. second"
    await harness.send("")
    assert harness.ui.events[-1].event.result == "The second answer."  # type: ignore[union-attr]


async def test_a_new_request_runs_before_a_paused_queue(harness: ReplHarness) -> None:
    harness.repl.accept("wrong")
    harness.repl.accept("second")
    await harness.wait_idle()
    await harness.send("first")
    results = [envelope.event.result for envelope in harness.ui.events if hasattr(envelope.event, "result")]
    assert results[-2:] == ["The first answer.", "The second answer."]


async def test_a_paused_queue_can_be_cleared(harness: ReplHarness) -> None:
    harness.repl.accept("wrong")
    harness.repl.accept("second")
    await harness.wait_idle()
    assert await harness.send("/queue clear") == EMPTY_QUEUE
    assert not harness.repl.queue.is_paused


async def test_unreadable_settings_fail_the_request_and_not_the_repl(harness: ReplHarness) -> None:
    write_settings(harness, "model = [broken")
    reply = await harness.send("first")
    assert reply.startswith("error: ") and "config.toml" in reply
    assert UNREADABLE_SETTINGS in harness.repl.state.status
    write_settings(harness, "")
    await harness.send("first")
    assert harness.ui.events[-1].event.result == "The first answer."  # type: ignore[union-attr]


async def test_a_user_command_is_a_request_with_its_argument(harness: ReplHarness, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "commands"
    folder.mkdir(parents=True)
    (folder / "first.md").write_text("---\ndescription: Ask it\nargument-hint: WORD\n---\nfirst $ARGUMENTS, please")
    (folder / "Plain.md").write_text("first of all")
    (folder / "empty.md").write_text("---\ndescription: nothing\n---\n")
    (folder / "bad name!.md").write_text("x")
    (folder / "no-text.md").write_bytes(b"\xff\xfe")
    harness.repl.add_commands(map(user_command, load_user_commands(tmp_path / "config", harness.repl.warn)))
    assert len([line for line in harness.ui.printed if line.startswith("warning: ")]) == 3
    assert await harness.send("/help first") == "  /first WORD  Ask it"
    await harness.send("/first thing")
    await harness.send("/plain and then")
    asked = [envelope.event.content for envelope in harness.ui.events if getattr(envelope.event, "role", "") == "user"]
    assert asked == ["first thing, please", "first of all\n\nand then"]


@pytest.mark.parametrize("columns", [40, 20])
async def test_replies_wrap_at_word_boundaries(harness: ReplHarness, columns: int) -> None:
    harness.ui.columns = columns
    for line in ("/help", "/diff", "/nonsense"):
        await harness.send(line)
    harness.repl.print_line(NOTHING_FOUND)
    printed = "\n".join(harness.ui.printed)
    assert all(cell_len(line) <= columns for line in printed.splitlines())
    assert [word for word in printed.split() if word not in _WORDS] == []


# Every other word would be a broken one.
_WORDS = frozenset(
    word
    for text in (
        *(f"/{command.name} {command.usage} {command.help}" for command in COMMANDS),
        *KEY_HELP,
        NOTHING_FOUND,
        f"error: {no_run_yet().message} {no_run_yet().hint}",
        f"error: {unknown_command('nonsense', COMMANDS).message} {unknown_command('nonsense', COMMANDS).hint}",
    )
    for word in text.split()
)


def test_commands_of_other_agents_are_explained() -> None:
    for name, here in (("new", "/clear"), ("permissions", "/rules"), ("add", "@path"), ("status", "/context")):
        assert here in unknown_command(name, COMMANDS).hint
    assert not {command.name for command in COMMANDS} & OTHER_COMMANDS.keys()


async def completions(harness: ReplHarness, name: str, *typed: str) -> list[str]:
    command: SlashCommand = next(command for command in COMMANDS if command.name == name)
    assert command.complete
    return [word for word, _ in command.complete(harness.repl, typed) if word.startswith(typed[-1])]


async def test_arguments_are_completed(harness: ReplHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "AGENT_SANDBOX", "AGENT_MODEL"):
        monkeypatch.setenv(name, harness.environ[name])
    await harness.send("first")
    assert await completions(harness, "mode", "a") == ["ask", "auto-edit"]
    assert await completions(harness, "help", "mo") == ["model", "mode"]
    assert await completions(harness, "theme", "") == ["dark", "light"]
    assert await completions(harness, "queue", "") == ["drop", "edit", "clear"]
    assert "show" in await completions(harness, "tools", "s")
    assert "run_command" in await completions(harness, "tools", "show", "run")
    assert await completions(harness, "sessions", "show", harness.repl.require_session_id()[:6]) == [
        harness.repl.require_session_id()
    ]
    assert await completions(harness, "resume", harness.repl.require_session_id()[:6]) == [
        harness.repl.require_session_id()
    ]
    assert await completions(harness, "resume", "run-") == [], "there is no run to resume"
    assert await completions(harness, "undo", "a") == ["all"]
    assert await completions(harness, "undo", "--y") == ["--yes"]
    assert await completions(harness, "budget", "") == ["off"]
    assert "anthropic/" in await completions(harness, "model", "anth")


def test_every_command_has_short_help_and_its_usage() -> None:
    for command in COMMANDS:
        assert command.help.endswith(".") and len(command.help) <= 45, command.name
        assert command.usage or not command.complete, command.name
