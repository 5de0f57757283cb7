"""`agent mcp`, and runs with MCP servers, as a user sees them: the real program, real servers, the real sandbox."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal_user import User, lead_call, lead_reply
from tests.tooling.mcp.mcp_harness import SERVERS
from tests.tooling.mcp.test_hostile_servers import command_lines

pytestmark = pytest.mark.slow

LEAD = {"AGENT_PLANNING": "auto"}


def configure(user: User, **servers: object) -> Path:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def hostile(mode: str, **more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(SERVERS / "hostile.py"), mode], **more}


def notes(**more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(SERVERS / "notes.py")], **more}


@pytest.fixture
def folder(user: User) -> Path:
    created = user.home / "project"
    created.mkdir()
    return created


def test_servers_are_listed_without_starting_them(user: User) -> None:
    configure(user, boom=hostile("crash-start"), off={"url": "https://example.org/mcp", "disabled": True})
    listed = user.agent("mcp")
    assert (listed.exit_code, listed.stderr) == (0, "")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["boom", "off"]
    document = user.agent("mcp", "list", "--json").document
    assert [(s["name"], s["offered"], s["known_tools"]) for s in document["servers"]] == [
        ("boom", "named", None),
        ("off", "never", None),
    ]


def test_without_servers_the_list_says_how_to_get_some(user: User) -> None:
    listed = user.agent("mcp", "list")
    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "no MCP servers are configured" in listed.stderr


def test_a_test_shows_the_tools_and_the_next_list_knows_them(user: User, folder: Path) -> None:
    configure(user, work=hostile("plain"))
    tested = user.agent("mcp", "test", "-C", str(folder))
    assert (tested.exit_code, tested.stdout.splitlines()[0]) == (0, "work: ok")
    assert "mcp__work__work" in tested.stdout
    assert user.agent("mcp", "list", "--json").document["servers"][0]["known_tools"] == ["work"]
    assert "mcp__work__work" in user.agent("tools", "list").stdout


def test_a_server_that_fails_its_test_is_reported_and_the_others_are_shown(user: User, folder: Path) -> None:
    configure(user, bad=hostile("crash-start"), good=hostile("plain"))
    tested = user.agent("mcp", "test", "--json", "-C", str(folder))
    assert tested.exit_code == 1
    bad, good = tested.document["servers"]
    assert (bad["ok"], good["ok"]) == (False, True)
    assert "no license found" in bad["problem"]


def test_an_unknown_server_is_a_usage_error(user: User) -> None:
    configure(user, notes=hostile("plain"))
    ended = user.agent("mcp", "test", "note")
    assert ended.exit_code == 2
    assert "there is no MCP server 'note', did you mean notes?" in ended.stderr


def test_a_broken_file_is_a_configuration_error(user: User, folder: Path) -> None:
    configure(user).write_text("{")
    assert user.agent("mcp", "list").exit_code == 52
    ended = user.agent("run", "--model", user.script(lead_reply("ok")), "hi", cwd=folder, **LEAD)
    assert (ended.exit_code, "mcp.json is not valid JSON" in ended.stderr) == (52, True)


def test_a_server_that_no_request_names_costs_nothing(user: User, folder: Path) -> None:
    configure(user, work=hostile("plain"))
    words = ("run", "--model", user.script(lead_reply("ok")), "--output-format", "stream-json")
    with_servers = user.agent(*words, "say hi", cwd=folder, **LEAD).events[0]
    named = user.agent(*words, "use work for this", cwd=folder, **LEAD).events[0]
    always = user.agent(*words, "--set", "mcp=always", "say hi", cwd=folder, **LEAD).events[0]
    bare = user.agent(*words, "--bare", "use work", cwd=folder, **LEAD).events[0]
    assert [any("mcp" in tool for tool in init["tools"]) for init in (with_servers, named, always, bare)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_server_that_was_named_stays_offered_in_its_session(user: User, folder: Path) -> None:
    configure(user, work=hostile("plain"))
    model = user.script(lead_reply("ok"), lead_reply("ok"))
    first = user.agent("run", "--model", model, "--session", "s1", "use work", cwd=folder, **LEAD)
    second = user.agent(
        "run", "--model", model, "--session", "s1", "--output-format", "stream-json", "and now?", cwd=folder, **LEAD
    )
    assert first.exit_code == 0
    assert "search_mcp_tools" in second.events[0]["tools"]


def test_a_call_is_asked_about_and_a_rule_for_the_server_allows_it(user: User, folder: Path) -> None:
    configure(user, notes=notes())
    model = user.script(
        lead_call("search_mcp_tools", query="add"),
        {
            "match": {"purpose": "lead"},
            "tool_calls": [
                {"name": "call_mcp_tool", "arguments": {"tool": "mcp__notes__add", "arguments": {"a": 40, "b": 2}}}
            ],
        },
        lead_reply("42"),
    )
    words = ("run", "--model", model, "--output-format", "stream-json", "use notes to add")
    denied = user.agent(*words, cwd=folder, **LEAD)
    assert denied.exit_code == 57
    assert "--allow mcp__notes__add would allow it" in denied.stdout
    allowed = user.agent(*words, "--allow", "mcp__notes", cwd=folder, **LEAD)
    assert allowed.exit_code == 0
    outputs = [event["output"] for event in allowed.events if event["type"] == "tool.completed"]
    assert outputs[-1] == '<web origin="MCP server notes, add">\n42\n</web>'


@pytest.mark.needs("bwrap")
def test_a_known_tool_is_offered_by_name_and_writes_only_in_the_workspace(user: User, folder: Path) -> None:
    configure(user, notes=notes(timeout_ms=60_000))
    assert user.agent("mcp", "test", "-C", str(folder)).exit_code == 0
    model = user.script(
        lead_call("mcp__notes__write_note", path="a.txt", text="hello"),
        lead_call("mcp__notes__write_note", path=str(user.home / "b.txt"), text="outside"),
        lead_reply("done"),
    )
    ended = user.agent(
        *("run", "--model", model, "--allow", "mcp__notes", "--output-format", "stream-json", "use notes"),
        cwd=folder,
        **LEAD,
    )
    results = [event for event in ended.events if event["type"] == "tool.completed"]
    # In the sandbox the home folder is an empty one of its own.
    assert [event["status"] for event in results] == ["ok", "ok"]
    assert (folder / "a.txt").read_text() == "hello"
    assert not (user.home / "b.txt").exists()


def test_a_key_of_this_program_is_never_sent_to_a_server(user: User, folder: Path) -> None:
    configure(user, work=hostile("plain"))
    assert user.agent("mcp", "test", "-C", str(folder)).exit_code == 0
    key = "sk-ant-api03-" + "a1B2" * 12
    model = user.script(lead_call("mcp__work__work", note=f"the key is {key}"), lead_reply("done"))
    ended = user.agent(
        *("run", "--model", model, "--approval-mode", "yolo", "--output-format", "stream-json", "use work"),
        cwd=folder,
        ANTHROPIC_API_KEY=key,
        **LEAD,
    )
    assert [event["status"] for event in ended.events if event["type"] == "tool.completed"] == ["blocked"]


def test_a_file_of_servers_for_one_run(user: User, folder: Path) -> None:
    path = user.home / "task.json"
    path.write_text(json.dumps({"mcpServers": {"work": hostile("plain")}}))
    model = user.script(lead_call("search_mcp_tools"), lead_call("mcp__work__work"), lead_reply("done"))
    ended = user.agent(
        *("run", "--model", model, "--mcp", str(path), "--allow", "mcp__work", "--output-format", "stream-json", "go"),
        cwd=folder,
        **LEAD,
    )
    assert [e["status"] for e in ended.events if e["type"] == "tool.completed"] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [("[]", 'expected an object with "mcpServers"'), ('{"mcpServers": {"x": {}}}', "needs either a command or a url")],
)
def test_a_wrong_file_for_one_run_ends_it(user: User, folder: Path, content: str, problem: str) -> None:
    path = user.home / "task.json"
    path.write_text(content)
    ended = user.agent("run", "--model", user.script(), "--mcp", str(path), "go", cwd=folder, **LEAD)
    assert (ended.exit_code, problem in ended.stderr) == (52, True)


def test_a_tool_of_a_server_can_be_called_by_hand(user: User, folder: Path) -> None:
    configure(user, work=hostile("plain"))
    assert user.agent("mcp", "test", "-C", str(folder)).exit_code == 0
    called = user.agent("tools", "call", "mcp__work__work", "--allow", "mcp__work", cwd=folder)
    assert (called.exit_code, "done" in called.stdout) == (0, True)
    assert user.agent("tools", "call", "mcp__work__work", cwd=folder).exit_code == 57


def test_servers_are_imported_from_claude_code_and_vs_code(user: User) -> None:
    (user.home / ".claude.json").write_text(
        json.dumps({"mcpServers": {"gh": {"type": "http", "url": "https://example.org/mcp", "autoApprove": ["x"]}}})
    )
    refused = user.agent("mcp", "import", stdin="")
    assert (refused.exit_code, (user.home / ".config/agent/mcp.json").exists()) == (2, False)
    assert "import gh https://example.org/mcp\n  left out: autoApprove" in refused.stderr
    assert user.agent("mcp", "import", "--yes").exit_code == 0
    code = user.home / "settings.json"
    code.write_text('// mine\n{"mcp": {"servers": {"db": {"command": "db", "env": {"KEY": "${input:db-key}"},},}}}')
    imported = user.agent("mcp", "import", str(code), "--yes", "--json")
    assert imported.document["imported"] == ["db"]
    saved = user.home / ".config/agent/mcp.json"
    assert json.loads(saved.read_text())["mcpServers"]["db"]["env"] == {"KEY": "${DB_KEY}"}
    assert saved.stat().st_mode & 0o777 == 0o600
    assert [s["name"] for s in user.agent("mcp", "list", "--json").document["servers"]] == ["gh", "db"]


def test_the_doctor_names_the_servers(user: User) -> None:
    configure(user, work=hostile("plain"), broken={})
    found = user.agent("doctor", "--json").document["findings"]
    assert [(f["state"], f["detail"]) for f in found if f["name"] == "mcp"] == [
        ("problem", "MCP server broken: needs either a command or a url"),
        ("ok", "work; `agent mcp test` starts them"),
    ]


def test_no_server_survives_a_run_that_is_killed(user: User, folder: Path) -> None:
    configure(user, **{"hang-call": hostile("hang-call")})
    assert user.agent("mcp", "test", "-C", str(folder)).exit_code == 0
    model = user.script(lead_call("mcp__hang-call__work"), lead_reply("done"))
    words = ("run", "--model", model, "--allow", "mcp__hang-call", "--output-format", "stream-json", "use hang-call")
    program = subprocess.Popen(
        user.command(*words),
        cwd=folder,
        env=user.environment(**LEAD),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert program.stdout is not None
        while b'"tool.started"' not in program.stdout.readline():
            pass
        wait_until(lambda: bool(running("hang-call")))
    finally:
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()
    wait_until(lambda: not running("hang-call"))


def running(mode: str) -> list[str]:
    return [line for line in command_lines() if f"hostile.py\0{mode}" in line]


def wait_until(condition: "object") -> None:
    assert callable(condition)
    for _ in range(600):
        if condition():
            return
        signal.sigtimedwait([signal.SIGUSR2], 0.1)
    raise AssertionError("it did not happen in a minute")


def test_a_server_installed_with_npm_runs_in_the_sandbox_as_configured(user: User, folder: Path) -> None:
    modules = user.home / "tools" / "node_modules"
    (modules / "server" / "dist").mkdir(parents=True)
    (modules / ".bin").mkdir()
    program = modules / "server" / "dist" / "index"
    program.write_text(f"#!/usr/bin/env python3\n{(SERVERS / 'hostile.py').read_text()}")
    program.chmod(0o755)
    (modules / ".bin" / "server").symlink_to("../server/dist/index")
    configure(user, work={"command": str(modules / ".bin" / "server"), "args": ["plain"]})
    tested = user.agent("mcp", "test", "-C", str(folder))
    assert (tested.exit_code, tested.stdout.splitlines()[:1]) == (0, ["work: ok"]), tested.stderr


def test_a_server_that_does_not_start_says_why_and_what_its_sandbox_lacks(user: User, folder: Path) -> None:
    node = "echo \"Error: Cannot find module 'x'\" >&2; echo '    at Module._load (node:internal:1038:27)' >&2; exit 1"
    configure(user, node={"command": "sh", "args": ["-c", node]}, gone={"command": "no-such-program"})
    said = user.agent("mcp", "test", "-C", str(folder)).stderr
    assert "node could not be started: it ended with exit code 1: Error: Cannot find module 'x'. Its sandbox" in said
    assert 'with allow_net, read_dirs or "sandbox": false' in said
    assert "gone could not be started: there is no program or folder no-such-program." in said
