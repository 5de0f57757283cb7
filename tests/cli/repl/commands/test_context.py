"""`/context`, `/compact` and the meter in the status line, with a lead that keeps one conversation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.config.user_dirs import data_dir
from agent.protocol.events import ContextCompacted, RunStarted
from agent.sessions.resume.conversation import COMPACT_REQUEST, read_conversation
from agent.sessions.store import SessionStore
from agent.vocabulary.compaction import SUMMARY_PREFIX
from cli.repl.commands.session_commands import COMPACTED
from tests.cli.repl.commands.test_commands import write_script
from tests.cli.repl.repl_harness import ReplHarness


def lead_reply(text: str = "", *, to: str, **more: object) -> dict[str, object]:
    """Script the lead's reply to a message that contains `to`."""
    return {"match": {"purpose": "lead", "contains": to}, "text": text, "repeat": True, **more}


def usage(sent: int, received: int) -> dict[str, int]:
    return {"input_tokens": sent, "output_tokens": received, "requests": 1}


READ = [{"name": "read_file", "arguments": {"path": "notes.txt"}}]
SCRIPT = (
    lead_reply(to="read the notes", tool_calls=READ, usage=usage(3000, 40)),
    lead_reply("It says: buy milk.", to="buy milk", usage=usage(3200, 8)),
    lead_reply("Good day.", to="hello", usage=usage(1600, 4)),
    lead_reply("The notes said milk.", to=COMPACT_REQUEST[:30], usage=usage(3300, 6)),
)


@asynccontextmanager
async def open_repl(folder: Path, *script: dict[str, object], **environ: str) -> AsyncIterator[ReplHarness]:
    model = write_script(folder, *script)
    harness = ReplHarness(folder / "home", AGENT_MODEL=model, AGENT_PLANNING="auto", **environ)
    (harness.repl.state.cwd / "notes.txt").write_text("buy milk\n")
    async with harness.serving():
        yield harness


def parts(reply: str) -> dict[str, str]:
    """Return the rows of /context by name."""
    rows = [line[2:].split("  ", 1) for line in reply.splitlines() if " tokens  " in line]
    return {name: rest.strip() for name, rest in rows}


async def test_context_shows_the_tokens_of_each_part_against_the_window(tmp_path: Path) -> None:
    async with open_repl(tmp_path, *SCRIPT) as harness:
        (harness.repl.state.cwd / "AGENTS.md").write_text("Use tabs.\n")
        await harness.send("read the notes")
        shown = parts(await harness.send("/context"))
    assert list(shown) == [
        "system text",
        "tools",
        "environment",
        "project notes",
        "requests",
        "replies",
        "tool calls",
        "tool results",
        "total",
        "left",
        "window",
    ]
    # The last request had 3,200 tokens according to the provider; its reply has been added since.
    assert shown["total"].startswith("3.2k tokens") and shown["total"].endswith("10% of the window")
    assert shown["left"].endswith("before the oldest parts are shortened")


async def test_without_numbers_of_the_provider_the_total_is_an_estimate(tmp_path: Path) -> None:
    async with open_repl(tmp_path, lead_reply("Good day.", to="hello")) as harness:
        await harness.send("hello")
        assert "estimated" in parts(await harness.send("/context"))["total"]
        assert "ctx" not in harness.repl.state.status


async def test_context_of_a_new_session_shows_what_the_first_request_will_have(tmp_path: Path) -> None:
    async with open_repl(tmp_path, *SCRIPT) as harness:
        (harness.repl.state.cwd / "AGENTS.md").write_text("Use tabs.\n")
        harness.repl.shell_output = "$ ls\na.txt\n"
        assert list(parts(await harness.send("/context"))) == [
            "system text",
            "tools",
            "project notes",
            "! output",
            "total",
            "left",
            "window",
        ]
        assert "! output" not in parts(await harness.send("/context drop")) and not harness.repl.shell_output


async def test_context_lists_what_was_shortened_and_where_the_whole_text_is(tmp_path: Path) -> None:
    long = {"match": {"purpose": "lead"}, "text": "So be it. " * 6000}
    summary = {"match": {"purpose": "summary"}, "text": "It was long.", "repeat": True}
    async with open_repl(tmp_path, {**long, "repeat": True}, summary) as harness:
        for _ in range(3):
            await harness.send("tell me a long story")
        shortened = [one for one in harness.ui.events if isinstance(one.event, ContextCompacted)]
        reply = await harness.send("/context")
    assert shortened
    last = reply[reply.index("shortened so far:") :]
    assert last.count("summarized") == len(shortened) and " → " in last
    assert f"agent runs events {shortened[-1].run_id} --type context" in last
    assert "summaries" in parts(reply)


async def test_the_status_line_shows_how_full_the_window_is_after_every_reply(tmp_path: Path) -> None:
    async with open_repl(tmp_path, *SCRIPT) as harness:
        assert "ctx" not in harness.repl.state.status
        await harness.send("hello")
        (started,) = (one.event for one in harness.ui.events if isinstance(one.event, RunStarted))
        assert started.context_window == 32_000
        assert " · ctx 5% · " in harness.repl.state.status
        await harness.send("read the notes")
        assert " · ctx 10% · " in harness.repl.state.status
        first = harness.repl.require_session_id()
        await harness.send("/clear")
        assert "ctx" not in harness.repl.state.status
        await harness.send(f"/resume {first}")
        assert " · ctx 10% · " in harness.repl.state.status


async def test_after_compact_the_conversation_begins_with_the_summary(tmp_path: Path) -> None:
    async with open_repl(tmp_path, *SCRIPT) as harness:
        await harness.send("read the notes")
        full = harness.repl.state.status
        before = conversation(harness)
        reply = await harness.send("/compact")
        assert conversation(harness) == [("user", f"{SUMMARY_PREFIX}The notes said milk.")]
        sizes = reply[reply.index(COMPACTED) :]
        assert " → " in sizes and sizes.endswith("tokens")
        assert harness.repl.state.status != full and "ctx" in harness.repl.state.status
        assert len(before) == 4
        await harness.send("hello")
        now = conversation(harness)
    assert now[0] == ("user", f"{SUMMARY_PREFIX}The notes said milk.")
    assert now[1][1].endswith("hello") and now[2] == ("assistant", "Good day.")


async def test_cost_tells_reads_and_writes_of_the_cache(tmp_path: Path) -> None:
    cached = {**usage(5000, 20), "cache_read_tokens": 3000, "cache_write_tokens": 1500}
    async with open_repl(tmp_path, lead_reply("Good day.", to="hello", usage=cached)) as harness:
        await harness.send("hello")
        assert await harness.send("/cost") == (
            "5.0k tokens (3.0k read from and 1.5k written to the cache) in 1 request, $0.0000"
        )


def conversation(harness: ReplHarness) -> list[tuple[str, str]]:
    folder = SessionStore(data_dir(harness.environ)).find(harness.repl.require_session_id())
    return [(message.role, message.content) for message in read_conversation(folder.events, lambda tool: None)]
