"""`Windlass`, the API for Python programs."""

import asyncio
import errno
import json
import re
import signal
import sys
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.app import Windlass, WindlassConfig
from agent.protocol.commands import ResolveApproval, Submit
from agent.protocol.events import (
    ApprovalRequested,
    Event,
    MessageAdded,
    RunCompleted,
    RunStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.vocabulary.errors import AgentError, UsageError
from agent.vocabulary.task_config import TaskConfig
from tests.cli.terminal_user import lead_call, lead_reply
from tests.tooling.mcp.mcp_harness import SERVERS
from tests.tooling.mcp.test_hostile_servers import command_lines

HOST = {"backend": "host", "planning": "auto"}


def write_script(folder: Path, *replies: object) -> str:
    path = folder / "script.jsonl"
    path.write_text("\n".join(json.dumps(reply) for reply in replies))
    return f"script:{path}"


def config(tmp_path: Path, *replies: object, **more: object) -> WindlassConfig:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    environ = {"HOME": str(tmp_path), "AGENT_SANDBOX": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    settings = {**HOST, "model": write_script(tmp_path, *replies)}
    return WindlassConfig(**{"settings": settings, "cwd": work, "environ": environ, **more})


async def collect(windlass: Windlass, prompt: str) -> list[Event]:
    return [event async for event in windlass.run(prompt)]


async def test_a_run_yields_its_events_and_leaves_its_outcome(tmp_path: Path) -> None:
    async with Windlass(config(tmp_path, lead_reply("Hello."))) as windlass:
        assert windlass.outcome is None
        events = await collect(windlass, "greet")
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunCompleted)
    assert windlass.outcome is not None
    assert (windlass.outcome.answer, windlass.outcome.exit_code) == ("Hello.", 0)


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_requests_share_one_session(tmp_path: Path, ephemeral: bool) -> None:
    async with Windlass(config(tmp_path, lead_reply("Yes."), ephemeral=ephemeral)) as windlass:
        await collect(windlass, "one")
        session = windlass.session_id
        async with aclosing(windlass.submit(Submit(prompt="two"))) as envelopes:
            numbers = [envelope.seq async for envelope in envelopes if envelope.is_durable]
        assert windlass.session_id == session
    # The second run continues the log of the first.
    assert numbers[0] > 1
    stored = list((tmp_path / "data" / "sessions").glob("*")) if (tmp_path / "data").exists() else []
    assert [folder.name for folder in stored] == ([] if ephemeral else [session])


async def test_an_approval_is_answered_while_the_run_waits(tmp_path: Path) -> None:
    call = lead_call("run_command", command="touch made")
    async with Windlass(config(tmp_path, call, lead_reply("Done."), answers=True)) as windlass:
        async for event in windlass.run("make it"):
            if isinstance(event, ApprovalRequested):
                assert await windlass.answer(ResolveApproval(approval_id=event.approval_id, decision="allow"))
        assert not await windlass.answer(ResolveApproval(approval_id="a1", decision="allow"))
    assert (tmp_path / "work" / "made").exists()


async def test_without_answers_what_needs_approval_is_denied(tmp_path: Path) -> None:
    call = lead_call("run_command", command="touch made")
    async with Windlass(config(tmp_path, call, lead_reply("Done."))) as windlass:
        await collect(windlass, "make it")
    assert windlass.outcome is not None
    assert windlass.outcome.denials
    assert not (tmp_path / "work" / "made").exists()


async def test_an_interrupted_run_still_ends_with_its_result(tmp_path: Path) -> None:
    call = lead_call("run_command", command="sleep 600")
    base = config(tmp_path, call, lead_reply("Done."))
    async with Windlass(base) as windlass:
        windlass.configure(approval_mode="yolo")
        last: Event | None = None
        async for event in windlass.run("wait"):
            if isinstance(event, ToolStarted):
                windlass.interrupt()
            last = event
    assert isinstance(last, RunCompleted)
    assert last.exit_code == 130


async def test_leaving_the_loop_ends_the_run_and_the_next_one_can_start(tmp_path: Path) -> None:
    calls = (lead_call("run_command", command="sleep 600"), lead_reply("Done."))
    base = config(tmp_path, *calls)
    async with Windlass(base) as windlass:
        windlass.configure(approval_mode="yolo")
        async for event in windlass.run("wait"):
            if isinstance(event, ToolStarted):
                break
        windlass.configure(model=write_script(tmp_path, lead_reply("Next.")))
        await collect(windlass, "next")
        assert windlass.outcome is not None
        assert windlass.outcome.answer == "Next."


async def test_a_cancelled_task_leaves_no_run_behind(tmp_path: Path) -> None:
    base = config(tmp_path, lead_call("run_command", command="sleep 600"), lead_reply("Done."))
    async with Windlass(base) as windlass:
        windlass.configure(approval_mode="yolo")
        started = asyncio.Event()

        async def follow() -> None:
            async for event in windlass.run("wait"):
                if isinstance(event, ToolStarted):
                    started.set()

        task = asyncio.create_task(follow())
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_what_keeps_a_run_from_starting_is_raised(tmp_path: Path) -> None:
    async with Windlass(config(tmp_path, lead_reply("Hello."), settings={"concurrency": 0})) as windlass:
        with pytest.raises(UsageError, match="concurrency"):
            await collect(windlass, "greet")
    async with Windlass(config(tmp_path, lead_reply("Hello."), cwd=tmp_path / "missing")) as windlass:
        with pytest.raises(AgentError, match="not an existing folder"):
            await collect(windlass, "greet")


async def test_it_prints_nothing_and_leaves_signals_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with Windlass(config(tmp_path, lead_reply("Hello."))) as windlass:
        events = await collect(windlass, "greet")
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert any(isinstance(event, MessageAdded) for event in events)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
async def test_an_mcp_server_keeps_its_state_from_one_request_to_the_next(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(SERVERS / "hostile.py"), "counts"], "sandbox": False}
    changed = {**server, "env": {"ANY": "thing"}}
    call = lead_call("mcp__counts__work")
    async with Windlass(config(tmp_path)) as windlass:
        windlass.configure(approval_mode="yolo")

        async def results(configured: object, call: object) -> list[str]:
            windlass.configure(model=write_script(tmp_path, call, lead_reply("Done.")))
            task = TaskConfig(mcp_config={"mcpServers": {"counts": configured}})
            windlass.config = replace(windlass.config, task=task)
            return [event.output for event in await collect(windlass, "go") if isinstance(event, ToolCompleted)]

        search = lead_call("search_mcp_tools", query="")
        steps = ((server, search), (server, call), (server, call), (changed, search), (changed, call))
        texts = [text for configured, step in steps for text in await results(configured, step)]
    assert re.findall(r"call \d", "\n".join(texts)) == ["call 1", "call 2", "call 1"]
    assert not [line for line in command_lines() if "hostile.py\0counts" in line]


async def test_a_session_file_that_cannot_be_written_is_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agent.sessions.views.session_summary.refresh_session", fail)
    async with Windlass(config(tmp_path, lead_reply("Hello."))) as windlass:
        await collect(windlass, "greet")
    assert windlass.outcome is not None
    assert (windlass.outcome.exit_code, windlass.outcome.answer) == (0, "Hello.")
    assert windlass.outcome.warnings == ("SESSION.json was not written: No space left on device",)


async def outputs(windlass: Windlass, prompt: str = "go") -> list[str]:
    return [event.output for event in await collect(windlass, prompt) if isinstance(event, ToolCompleted)]


async def test_the_variables_of_a_task_reach_its_commands_and_secret_ones_are_masked(tmp_path: Path) -> None:
    task = TaskConfig(env_overrides={"STAGE": "production", "SHOP_TOKEN": "hunter", "DB": "pg://u:x9f3k2@db/shop"})
    call = lead_call("run_command", command='echo "$STAGE, $SHOP_TOKEN, $DB"')
    async with Windlass(config(tmp_path, call, lead_reply("Done."), task=task)) as windlass:
        windlass.configure(approval_mode="yolo")
        assert await outputs(windlass) == ["production, [REDACTED], [REDACTED]"]


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND", "https_proxy", "a b"])
async def test_a_variable_that_changes_what_programs_load_is_refused(tmp_path: Path, name: str) -> None:
    task = TaskConfig(env_overrides={name: "/work/evil"})
    async with Windlass(config(tmp_path, lead_reply("Done."), task=task)) as windlass:
        with pytest.raises(AgentError, match="env_overrides") as caught:
            await collect(windlass, "go")
    assert caught.value.exit_code == 42


async def test_a_mount_can_be_read_and_only_a_writable_one_changed(tmp_path: Path) -> None:
    for name in ("data", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "in.txt").write_text("tea")
    task = TaskConfig(
        local_mounts=(str(tmp_path / "data"), {"host_path": str(tmp_path / "results"), "access_mode": "rw"})
    )
    calls = [
        lead_call("read_file", path=str(tmp_path / "data" / "in.txt")),
        lead_call("write_file", path=str(tmp_path / "data" / "new.txt"), content="x"),
        lead_call("write_file", path=str(tmp_path / "results" / "new.txt"), content="x"),
    ]
    async with Windlass(config(tmp_path, *calls, lead_reply("Done."), task=task)) as windlass:
        windlass.configure(approval_mode="yolo")
        events = await collect(windlass, "go")
    assert [event.status for event in events if isinstance(event, ToolCompleted)] == ["ok", "blocked", "ok"]
    assert [(tmp_path / name / "new.txt").exists() for name in ("data", "results")] == [False, True]


@pytest.mark.parametrize(
    ("mount", "problem"),
    [
        ("/nowhere/at/all", "/nowhere/at/all"),
        ({"path": "data"}, "absolute path"),
        ({"path": "/", "mode": "append"}, "unknown mode"),
        ({"path": "/usr", "target": "/data"}, "cannot be mounted at /data"),
    ],
)
async def test_a_mount_that_cannot_be_had_is_an_error(tmp_path: Path, mount: object, problem: str) -> None:
    async with Windlass(config(tmp_path, lead_reply("Done."), task=TaskConfig(local_mounts=(mount,)))) as windlass:
        with pytest.raises(AgentError, match=problem):
            await collect(windlass, "go")


async def test_a_step_can_use_an_agent_of_the_task_with_its_tools_and_instructions(tmp_path: Path) -> None:
    agents = {"reader": {"description": "reads files", "prompt": "Quote the lines.", "tools": ["read_file"]}}
    step = {"id": "a", "instruction": "Look.", "profile": "reader"}
    script = (
        {"match": {"purpose": "lead", "contains": "reader: reads files"}, **_call("plan", steps=[step])},
        {"match": {"step": "a", "contains": "Quote the lines"}, **_call("run_command", command="echo hi")},
        {"match": {"step": "a"}, "text": "seen"},
        lead_reply("Done."),
    )
    async with Windlass(config(tmp_path, *script, task=TaskConfig(agents=agents))) as windlass:
        events = await collect(windlass, "go")
    completed = [(event.name, event.status) for event in events if isinstance(event, ToolCompleted)]
    assert ("run_command", "ok") not in completed
    assert windlass.outcome is not None
    assert windlass.outcome.answer == "Done."


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (TaskConfig(agents={"a": {"tools": ["read_flie"]}}), "unknown tool 'read_flie'"),
        (TaskConfig(agents={"a": {"rights": "all"}}), "unknown field agents.a.rights"),
        (TaskConfig(permission_mode="readonly"), "unknown permission_mode 'readonly'"),
    ],
)
async def test_a_right_of_a_task_that_is_not_known_is_an_error_not_ignored(
    tmp_path: Path, task: TaskConfig, problem: str
) -> None:
    async with Windlass(config(tmp_path, lead_reply("Done."), task=task)) as windlass:
        try:
            events = await collect(windlass, "go")
        except AgentError as error:
            assert problem in error.message
        else:
            assert isinstance(events[-1], RunCompleted)
            assert windlass.outcome is not None
            assert problem in (windlass.outcome.error or "")


def _call(name: str, **arguments: object) -> dict[str, object]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}
